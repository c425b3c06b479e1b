"use strict";
/* The list of pairs: what an article shows, and which link stands out. */
const JacanaList = (() => {
  const { KINDS, arcs, matrix, make } = JacanaDraw;
  const { windowed } = JacanaWindow;
  const TALLIED = ["hit", "miss", "invention", "both", "first", "second", "some"];
  const MADE = new Set(["link", "hit", "invention", "both", "first", "second", "some"]);
  const NARROWEST = 340; // pixels of one of several panels
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  /* `host` is where articles go; `tip` shows a link. `page` answers panels(), matrix(pair), query(), least(),
     name(kind), figure(pair, panel) and about(pair, link, panel). */
  function list(host, tip, page) {
    let shown = [];
    let active = 0; // the article that Tab reaches
    const state = new Map(); // number -> {pair, panels: [{panel, links, drawn}], at}
    const shelf = windowed(host, { made, estimated, settled: place });

    function show(pairs) {
      release();
      shown = pairs;
      active = 0;
      state.clear();
      shelf.show(pairs.length);
    }

    function made(k) {
      const pair = shown[k];
      const several = page.panels().length > 1;
      const panels = page.panels().map((panel) => {
        const links = pair.links(panel, page.compared());
        return { panel, links, drawn: (page.matrix(pair) ? matrix : arcs)({ source: pair.source, target: pair.target, links }) };
      });
      const article = make("article", {
        tabindex: -1, "aria-posinset": k + 1, "aria-setsize": shown.length, "aria-label": page.named(pair),
      });
      const inner = panels.map((one) => [...(several ? [caption(pair, one.panel)] : []), one.drawn.element, spoken(pair, one, several)]);
      article.append(heading(pair, several), ...(several
        ? [make("div", { class: "systems" }, ...inner.map((parts) => make("section", { class: "system" }, ...parts)))] : inner[0]));
      state.set(k, { pair, panels, at: null });
      scrolledTogether([...article.querySelectorAll(".pane")]);
      for (const one of panels) {
        seek(one);
        weaken(one);
        listen(k, one);
      }
      return article;
    }

    /* Matrices side by side show the same part of the pair. */
    function scrolledTogether(panes) {
      for (const pane of panes) {
        pane.addEventListener("scroll", () => {
          for (const other of panes) if (other !== pane) other.scrollTo(pane.scrollLeft, pane.scrollTop);
        }, { passive: true });
      }
    }

    /* Everything is put in first and measured afterwards: the browser lays the page out once. */
    function place(numbers) {
      const drawn = numbers.filter((k) => state.has(k)).flatMap((k) => state.get(k).panels.map((one) => one.drawn));
      const measured = drawn.map((one) => one.measure());
      drawn.forEach((one, k) => one.settle(measured[k]));
      reach();
    }

    /* Roughly how tall articles of this width will be, in pixels. */
    function estimated(width) {
      const panels = page.panels().length;
      const beside = Math.max(1, Math.min(panels, Math.floor(width / NARROWEST)));
      const across = Math.max(width / beside - 40, 100);
      const [rows, most] = [Math.ceil(panels / beside), 0.72 * innerHeight + 40];
      const lines = (pair, side) => Math.ceil((pair.letters(side) * 9.5) / across);
      return (k) => {
        const pair = shown[k];
        const tall = page.matrix(pair) ? Math.min(120 + 20 * pair.longest, most) : 90 + 33 * (lines(pair, 0) + lines(pair, 1));
        return 50 + rows * (tall + (panels > 1 ? 30 : 0));
      };
    }

    function tallies(pair, panel) {
      return TALLIED.filter((kind) => pair.count(panel, kind)).map((kind) =>
        make("span", { class: `tally ${kind}` }, `${KINDS[kind].sign} ${pair.count(panel, kind)} ${page.name(kind)}`));
    }

    function heading(pair, several) {
      const line = make("p", { class: "about" }, make("span", {}, `#${pair.position + 1}`));
      if (pair.id !== null) line.append(make("span", { class: "id" }, pair.id));
      line.append(make("span", {}, `${pair.source.length} + ${pair.target.length} words`));
      const [panel] = page.panels();
      if (!several) line.append(...tallies(pair, panel));
      const figure = several ? `${pair.differ} ${pair.differ === 1 ? "link differs" : "links differ"}` : page.figure(pair, panel);
      if (figure) line.append(make("span", { class: "figure" }, figure));
      return line;
    }

    function caption(pair, panel) {
      const figure = page.figure(pair, panel);
      return make("p", { class: "about who" }, make("strong", {}, page.system(panel)), ...tallies(pair, panel),
        ...(figure ? [make("span", { class: "figure" }, figure)] : []));
    }

    /* What eyes see as curves, for those who listen. */
    function spoken(pair, { panel, links }, several) {
      const items = links.map((link) => {
        const sure = link.confidence === null ? "" : `, ${percent(link.confidence)}`;
        return make("li", {}, `${pair.source[link.i]} – ${pair.target[link.j]}: ${page.name(link.kind)}${sure}`);
      });
      const label = several ? `Links of ${page.system(panel)}` : "Links";
      return make("ul", { class: "heard", "aria-label": label }, ...items);
    }

    function seek({ drawn }) {
      const wanted = page.query().toLowerCase().split(/\s+/).filter(Boolean);
      if (!wanted.length) return;
      drawn.words.flat().forEach((word) => {
        const text = word.textContent.toLowerCase();
        word.classList.toggle("sought", wanted.some((one) => text.includes(one)));
      });
    }

    function weaken({ links, drawn }) {
      const least = page.least();
      links.forEach((link, k) =>
        drawn.parts[k].classList.toggle("weak", MADE.has(link.kind) && link.confidence !== null && link.confidence < least));
    }

    function listen(number, one) {
      one.drawn.parts.forEach((part, k) => {
        part.addEventListener("pointerenter", () => point(number, one, k));
        part.addEventListener("pointerleave", release);
        part.addEventListener("click", (event) => { event.stopPropagation(); point(number, one, k); }); // fingers leave at once
      });
      one.drawn.words.forEach((words, side) => words.forEach((word, at) => {
        word.addEventListener("pointerenter", () => {
          release();
          lit = number;
          light(number, (link) => (side ? link.j : link.i) === at);
        });
        word.addEventListener("pointerleave", release);
      }));
    }

    /* What stands out in one panel does so in those beside it. */
    function light(number, chosen) {
      for (const { links, drawn } of state.get(number).panels) drawn.light(links.flatMap((link, k) => (chosen(link) ? [k] : [])));
    }

    let pointed = null; // the article whose link is told of
    let lit = null; // the article in which something stands out
    function point(number, one, k) {
      release();
      const { pair } = state.get(number);
      const link = one.links[k];
      state.get(number).at = { panel: one.panel, k };
      pointed = lit = number;
      light(number, ({ i, j }) => i === link.i && j === link.j);
      tip.replaceChildren(...page.about(pair, link, one.panel));
      tip.hidden = false;
      const box = one.drawn.reach(k);
      const size = tip.getBoundingClientRect();
      const left = Math.min(Math.max((box.left + box.right - size.width) / 2, 8), document.documentElement.clientWidth - size.width - 8);
      const below = box.bottom + 8;
      const top = below + size.height > innerHeight ? box.top - size.height - 8 : below;
      tip.style.left = `${left + scrollX}px`;
      tip.style.top = `${Math.max(top, 4) + scrollY}px`;
    }

    function release() {
      tip.hidden = true;
      if (lit !== null && state.has(lit)) for (const { drawn } of state.get(lit).panels) drawn.light([]);
      pointed = lit = null;
    }

    /* The next link of the focused article that can be seen, or the one before. */
    function step(by) {
      const number = shelf.focused();
      const all = state.get(number).panels.flatMap((one) => one.links.map((_, k) => [one, k]));
      const seen = all.filter(([one, k]) => getComputedStyle(one.drawn.parts[k]).display !== "none");
      if (!seen.length) return;
      const { at } = state.get(number);
      const now = pointed === number ? seen.findIndex(([one, k]) => one.panel === at.panel && k === at.k) : -1;
      const [one, k] = seen[now < 0 ? (by > 0 ? 0 : seen.length - 1) : (now + by + seen.length) % seen.length];
      one.drawn.reveal(k);
      point(number, one, k);
    }

    /* What is being looked at stays where it is, however tall the rest becomes. */
    function redraw() {
      release();
      shelf.again();
    }

    function focus(k) {
      release();
      shelf.focus(k);
      active = Math.max(shelf.focused(), 0);
      reach();
    }

    /* Tab reaches one article: the active one, or the first that is there. */
    function reach() {
      const one = shelf.open.has(active) ? active : Math.min(...shelf.open.keys());
      for (const [k, article] of shelf.open) article.tabIndex = k === one ? 0 : -1;
    }

    document.addEventListener("click", release);
    host.addEventListener("focusin", () => {
      active = Math.max(shelf.focused(), 0);
      reach();
    });

    return {
      show,
      focus,
      step,
      release,
      redraw,
      current: () => shelf.focused(),
      pair: (k) => shown[k],
      count: () => shown.length,
      zoom: (by) => state.get(shelf.focused())?.panels.forEach(({ drawn }) => drawn.zoom(by)),
      weaken: () => { for (const k of shelf.open.keys()) state.get(k).panels.forEach(weaken); },
      print: () => shelf.print(true),
      printed: () => shelf.print(false),
    };
  }

  return { list, percent };
})();
