"use strict";
/* The long list of pairs: every pair has its place in the page, and is drawn while it is near the window. */
const JacanaList = (() => {
  const { KINDS, arcs, matrix, make } = JacanaDraw;
  const NEAR = "900px 0px";
  const AT_ONCE = 6; // drawn without waiting for the browser to say what is near
  const MADE = new Set(["link", "hit", "invention"]);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  /* `host` is where articles go; `tip` shows a link; `page` answers mode(), query(), least() and about(pair, link). */
  function list(host, tip, page) {
    let shown = [];
    let printing = false; // then what is far from the window is wanted too
    const state = new WeakMap();
    const watch = new IntersectionObserver((entries) => {
      const fresh = entries.filter((entry) => entry.isIntersecting && !drawing(entry.target)).map((e) => e.target);
      for (const entry of entries) if (!entry.isIntersecting && !printing && drawing(entry.target)) clear(entry.target);
      fill(fresh);
    }, { rootMargin: NEAR });
    const widths = new ResizeObserver(() => place(host.querySelectorAll("article")));
    widths.observe(host);

    const drawing = (article) => state.get(article).drawing;
    const pairOf = (article) => state.get(article).pair;

    function show(pairs) {
      watch.disconnect();
      release();
      shown = pairs;
      const articles = pairs.map((pair, k) => {
        const article = make("article", {
          tabindex: k ? -1 : 0, "aria-posinset": k + 1, "aria-setsize": pairs.length, "aria-label": page.named(pair),
        });
        state.set(article, { pair, drawing: null, at: null });
        return article;
      });
      host.replaceChildren(...articles);
      fill(articles.slice(0, AT_ONCE));
      for (const article of articles) watch.observe(article);
    }

    /* Everything is put in first and measured afterwards: the browser lays the page out once. */
    function fill(articles) {
      for (const article of articles) {
        const { pair } = state.get(article);
        const drawn = (page.mode() === "matrix" ? matrix : arcs)(pair);
        state.get(article).drawing = drawn;
        article.replaceChildren(heading(pair), drawn.element, spoken(pair));
        seek(pair, drawn);
        weaken(pair, drawn);
        listen(article, pair, drawn);
      }
      place(articles);
    }

    function place(articles) {
      const ready = [...articles].map(drawing).filter(Boolean);
      const measured = ready.map((drawn) => drawn.measure());
      ready.forEach((drawn, k) => drawn.settle(measured[k]));
    }

    function clear(article) {
      if (article === document.activeElement) return;
      article.style.minHeight = `${article.offsetHeight}px`;
      article.replaceChildren();
      state.get(article).drawing = null;
    }

    function heading(pair) {
      const line = make("p", { class: "about" }, make("span", {}, `#${pair.position + 1}`));
      if (pair.id !== null) line.append(make("span", { class: "id" }, pair.id));
      line.append(make("span", {}, `${pair.source.length} + ${pair.target.length} words`));
      for (const kind of ["hit", "miss", "invention"]) {
        if (pair.count[kind]) {
          line.append(make("span", { class: `tally ${kind}` }, `${KINDS[kind].sign} ${pair.count[kind]} ${KINDS[kind].name}`));
        }
      }
      if (page.comparing) {
        line.append(make("span", { class: "figure" }, pair.exact ? "exact" : `F1 ${percent(pair.f1)}`));
      }
      return line;
    }

    /* What eyes see as curves, for those who listen. */
    function spoken(pair) {
      const items = pair.links.map((link) => {
        const sure = link.confidence === null ? "" : `, ${percent(link.confidence)}`;
        return make("li", {}, `${pair.source[link.i]} – ${pair.target[link.j]}: ${KINDS[link.kind].name}${sure}`);
      });
      return make("ul", { class: "heard", "aria-label": "Links" }, ...items);
    }

    function seek(pair, drawn) {
      const wanted = page.query().toLowerCase().split(/\s+/).filter(Boolean);
      if (!wanted.length) return;
      drawn.words.flat().forEach((word) => {
        const text = word.textContent.toLowerCase();
        word.classList.toggle("sought", wanted.some((one) => text.includes(one)));
      });
    }

    function weaken(pair, drawn) {
      const least = page.least();
      pair.links.forEach((link, k) =>
        drawn.parts[k].classList.toggle("weak", MADE.has(link.kind) && link.confidence !== null && link.confidence < least));
    }

    function listen(article, pair, drawn) {
      drawn.parts.forEach((part, k) => {
        part.addEventListener("pointerenter", () => point(article, k));
        part.addEventListener("pointerleave", release);
      });
      drawn.words.forEach((words, side) => words.forEach((word, at) => {
        word.addEventListener("pointerenter", () => {
          release();
          lit = article;
          drawn.light(pair.links.flatMap((link, k) => ((side ? link.j : link.i) === at ? [k] : [])));
        });
        word.addEventListener("pointerleave", release);
      }));
    }

    let pointed = null; // the article whose link is told of
    let lit = null; // the article in which something stands out
    function point(article, k) {
      release();
      const { pair, drawing: drawn } = state.get(article);
      state.get(article).at = k;
      pointed = lit = article;
      drawn.light([k]);
      tip.replaceChildren(...page.about(pair, pair.links[k]));
      tip.hidden = false;
      const box = drawn.reach(k);
      const size = tip.getBoundingClientRect();
      const left = Math.min(Math.max((box.left + box.right - size.width) / 2, 8), innerWidth - size.width - 8);
      const below = box.bottom + 8;
      const top = below + size.height > innerHeight ? box.top - size.height - 8 : below;
      tip.style.left = `${left + scrollX}px`;
      tip.style.top = `${Math.max(top, 4) + scrollY}px`;
    }

    function release() {
      tip.hidden = true;
      if (lit && drawing(lit)) drawing(lit).light([]);
      pointed = lit = null;
    }

    /* The next link of an article that can be seen, or the one before. */
    function step(article, by) {
      if (!drawing(article)) fill([article]);
      const { at, drawing: drawn } = state.get(article);
      const seen = drawn.parts.map((_, k) => k).filter((k) => drawn.parts[k].getBoundingClientRect().width > 0);
      if (!seen.length) return;
      const now = pointed === article ? seen.indexOf(at) : -1;
      point(article, seen[now < 0 ? (by > 0 ? 0 : seen.length - 1) : (now + by + seen.length) % seen.length]);
    }

    /* What is being looked at stays where it is, however tall the rest becomes. */
    function redraw() {
      release();
      const drawn = articles().filter(drawing);
      const active = drawn.find((one) => one === document.activeElement);
      const anchor = active || drawn.find((one) => one.getBoundingClientRect().bottom > 100);
      const before = anchor ? anchor.getBoundingClientRect().top : 0;
      fill(drawn);
      if (anchor) scrollBy(0, anchor.getBoundingClientRect().top - before);
    }

    function print() {
      printing = true;
      fill(articles().filter((one) => !drawing(one)));
      place(articles());
    }

    function printed() {
      printing = false;
      for (const article of articles()) {
        watch.unobserve(article);
        watch.observe(article);
      }
    }

    const articles = () => [...host.children];
    function focus(k) {
      const all = articles();
      if (!all.length) return;
      const next = all[Math.min(Math.max(k, 0), all.length - 1)];
      for (const one of all) if (one.tabIndex === 0 && one !== next) one.tabIndex = -1;
      next.tabIndex = 0;
      release();
      if (!drawing(next)) fill([next]);
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
    }
    host.addEventListener("focusin", ({ target }) => {
      const article = target.closest("article");
      if (article) for (const one of host.querySelectorAll('article[tabindex="0"]')) if (one !== article) one.tabIndex = -1;
      if (article) article.tabIndex = 0;
    });

    return {
      show,
      focus,
      step,
      release,
      current: () => articles().indexOf(document.activeElement),
      pair: (k) => shown[k],
      redraw,
      weaken: () => articles().filter(drawing).forEach((one) => weaken(pairOf(one), drawing(one))),
      print,
      printed,
    };
  }

  return { list, percent };
})();
