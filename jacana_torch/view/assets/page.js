"use strict";
/* The page: controls, keyboard, and what they say of links. State that a colleague may want goes into the address. */
(() => {
  const { KINDS, make, draw } = JacanaDraw;
  const { unpack, judge, summary, select, FILTERS, KEYS, GOLD_POSSIBLE, FOUND_POSSIBLE } = JacanaPairs;
  const { list, percent } = JacanaList;
  const $ = (id) => document.getElementById(id);

  const data = JSON.parse($("data").textContent);
  const pairs = unpack(data);
  const comparing = data.files.length > 1;
  const links = pairs.flatMap((pair) => pair.links);
  const has = {
    comparison: comparing,
    confidence: links.some((link) => link.confidence !== null),
    possible: links.some((link) => link.says & (GOLD_POSSIBLE | FOUND_POSSIBLE)),
  };
  const state = { filter: "all", sort: "position", descending: false, query: "", counting: "sure", mode: "arcs", least: 0 };
  const START = { ...state };
  const root = document.documentElement;

  const page = {
    comparing,
    mode: () => state.mode,
    query: () => state.query,
    least: () => state.least / 100,
    named: (pair) => `Pair ${pair.position + 1}` + (comparing ? `, F1 ${percent(pair.f1)}` : ""),
    about,
  };
  const shelf = list($("pairs"), $("tip"), page);

  /* ---- what a link has to say ---- */

  function about(pair, link) {
    const parts = [make("p", { class: "joined" }, `${pair.source[link.i]} – ${pair.target[link.j]}`)];
    parts.push(make("p", {}, verdict(link)));
    if (link.confidence !== null) {
      const fill = make("i");
      fill.style.width = `${100 * link.confidence}%`;
      parts.push(make("span", { class: "meter" }, fill), make("p", {}, `posterior ${percent(link.confidence)}`));
    }
    return link.why ? [...parts, ...reasons(pair, link)] : parts;
  }

  function verdict(link) {
    const { sign, name } = KINDS[link.kind];
    const possible = link.says & GOLD_POSSIBLE ? ` (possible in ${data.files[0]})` : "";
    const where = { miss: `: in ${data.files[0]} alone`, invention: `: in ${data.files[1]} alone` }[link.kind] || "";
    return `${sign} ${name}${link.kind === "invention" && possible ? possible : where}`.trim();
  }

  /* why: [verdict, 0 where the source word chose and 1 where the target word did, rival, margin, feature, amount, ...] */
  function reasons(pair, link) {
    const [said, side, rival, margin, ...features] = link.why;
    const rows = [];
    for (let k = 0; k < features.length; k += 2) {
      const amount = features[k + 1] / 100;
      rows.push(make("tr", {}, make("td", {}, data.features[features[k]]), make("td", {}, signed(amount))));
    }
    const parts = [];
    if (data.verdicts[said]) parts.push(make("p", {}, data.verdicts[said]));
    if (rows.length) parts.push(make("table", {}, make("tbody", {}, ...rows)));
    if (margin !== null) {
      const others = side ? pair.source : pair.target;
      const other = rival < 0 ? "no link" : `“${others[rival]}”`;
      const ahead = margin < 0 ? "loses by" : "wins by";
      parts.push(make("p", {}, `${ahead} ${Math.abs(margin / 100).toFixed(2)} against ${other}`));
    }
    return parts;
  }

  const signed = (amount) => (amount < 0 ? "−" : "+") + Math.abs(amount).toFixed(2);

  /* ---- showing ---- */

  function show() {
    const kept = select(pairs, state);
    shelf.show(kept);
    scores(kept);
    const all = kept.length === pairs.length;
    $("found").textContent = all ? `${pairs.length} ${pairs.length === 1 ? "pair" : "pairs"}`
      : kept.length ? `${kept.length} of ${pairs.length} pairs` : "No pair is like that.";
    remember();
  }

  function scores(kept) {
    if (!comparing) return;
    const of = summary(kept);
    const figures = [["Precision", of.precision], ["Recall", of.recall], ["F1", of.f1], ["Exact", of.exact]];
    $("scores").replaceChildren(...figures.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, (100 * value).toFixed(2)))));
    $("scores").title = "Macro-averaged over the pairs shown";
  }

  function counted() {
    judge(pairs, comparing, state.counting);
    show();
  }

  function legend() {
    const kinds = (comparing ? ["hit", "miss", "invention"] : ["link"]).concat(has.possible ? ["aside"] : []);
    if (kinds.length < 2) return;
    for (const kind of kinds) {
      const box = make("input", { type: "checkbox", id: `show-${kind}`, checked: "" });
      const sample = draw("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, draw("g", { class: `part ${kind}` },
        draw("path", { class: "line", d: "M2,7H32" }), draw("text", { class: "sign", x: 17, y: 7 }, KINDS[kind].sign)));
      box.addEventListener("change", () => { $("pairs").classList.toggle(`hide-${kind}`, !box.checked); shelf.release(); });
      $("legend").append(make("label", {}, box, sample, KINDS[kind].name));
    }
  }

  /* ---- state in the address, so that a view can be passed on ---- */

  function remember() {
    const said = Object.entries(state).filter(([key, value]) => value !== START[key]);
    const hash = new URLSearchParams(said).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function recall() {
    const said = new URLSearchParams(location.hash.slice(1));
    const among = (key, known) => { if (known.includes(said.get(key))) state[key] = said.get(key); };
    among("filter", Object.keys(FILTERS));
    among("sort", Object.keys(KEYS));
    among("mode", ["arcs", "matrix"]);
    among("counting", ["sure", "all"]);
    state.descending = said.get("descending") === "true";
    state.query = said.get("query") || "";
    state.least = Math.min(Math.max(Number(said.get("least")) || 0, 0), 100);
    for (const key of ["filter", "sort", "counting", "query", "least"]) $(key).value = state[key];
    document.querySelector(`[name=mode][value=${state.mode}]`).checked = true;
    tellOrder();
    tellLeast();
  }

  /* ---- controls ---- */

  function tellOrder() {
    $("order").setAttribute("aria-pressed", String(state.descending));
    $("order").setAttribute("aria-label", state.descending ? "descending" : "ascending");
    $("order").textContent = state.descending ? "↓" : "↑";
  }

  function tellLeast() {
    $("least-said").textContent = `${state.least} %`;
  }

  function turn() {
    state.descending = !state.descending;
    tellOrder();
    show();
  }

  function setMode(mode) {
    state.mode = mode;
    document.querySelector(`[name=mode][value=${mode}]`).checked = true;
    shelf.redraw();
    remember();
  }

  const THEMES = { "": "Auto", dark: "Dark", light: "Light" };
  function theme(next) {
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    $("theme").textContent = THEMES[next];
    $("theme").setAttribute("aria-label", `Colours: ${THEMES[next].toLowerCase()}`);
    try { localStorage.setItem("jacana-theme", next); } catch { /* pages from disk may have no storage */ }
  }
  function nextTheme() {
    const names = Object.keys(THEMES);
    theme(names[(names.indexOf(root.dataset.theme || "") + 1) % names.length]);
  }

  function controls() {
    let waiting = 0;
    $("query").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { state.query = $("query").value; show(); }, 120);
    });
    $("filter").addEventListener("change", () => { state.filter = $("filter").value; show(); });
    $("sort").addEventListener("change", () => { state.sort = $("sort").value; show(); });
    $("counting").addEventListener("change", () => { state.counting = $("counting").value; counted(); });
    $("order").addEventListener("click", turn);
    $("least").addEventListener("input", () => {
      state.least = Number($("least").value);
      tellLeast();
      shelf.weaken();
      remember();
    });
    for (const radio of document.querySelectorAll("[name=mode]")) radio.addEventListener("change", () => setMode(radio.value));
    $("tools").addEventListener("submit", (event) => event.preventDefault());
    $("theme").addEventListener("click", nextTheme);
    $("help-open").addEventListener("click", () => $("help").showModal());
    new ResizeObserver(() => {
      const covering = getComputedStyle($("tools")).position === "sticky";
      root.style.scrollPaddingTop = `${covering ? $("tools").offsetHeight + 8 : 8}px`;
    }).observe($("tools"));
    addEventListener("beforeprint", shelf.print);
    addEventListener("afterprint", shelf.printed);
    matchMedia("print").addEventListener("change", (event) => (event.matches ? shelf.print() : shelf.printed()));
  }

  /* ---- keyboard ---- */

  function toError(by) {
    const total = $("pairs").children.length;
    for (let k = shelf.current() + by; k >= 0 && k < total; k += by) if (shelf.pair(k).errors) return shelf.focus(k);
    return undefined;
  }

  function nextSort() {
    const names = [...$("sort").options].filter((option) => !option.hidden).map((option) => option.value);
    state.sort = names[(names.indexOf(state.sort) + 1) % names.length];
    $("sort").value = state.sort;
    show();
  }

  function letGo() {
    shelf.release();
    if (document.activeElement === $("query")) {
      $("query").value = state.query = "";
      show();
      shelf.focus(0);
    }
  }

  function stepLink(by) {
    if (shelf.current() < 0) shelf.focus(0);
    if (shelf.current() >= 0) shelf.step($("pairs").children[shelf.current()], by);
  }

  const ACTIONS = {
    j: () => shelf.focus(shelf.current() + 1),
    k: () => shelf.focus(Math.max(shelf.current(), 1) - 1),
    l: () => stepLink(1),
    h: () => stepLink(-1),
    g: () => shelf.focus(0),
    G: () => shelf.focus(Infinity),
    n: () => toError(1),
    p: () => toError(-1),
    m: () => setMode(state.mode === "arcs" ? "matrix" : "arcs"),
    "/": () => { $("query").focus(); $("query").select(); },
    s: nextSort,
    r: turn,
    t: nextTheme,
    "?": () => $("help").showModal(),
  };
  const ARROWS = { ArrowDown: "j", ArrowUp: "k", ArrowRight: "l", ArrowLeft: "h" };

  function keyboard(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (event.key === "Escape") return letGo();
    if (event.target.closest('select, input[type="search"]')) return; // letters are for them
    if (ARROWS[event.key] && event.target.closest("input")) return;
    // Arrows scroll the page until a pair is chosen.
    const key = ARROWS[event.key] && shelf.current() >= 0 ? ARROWS[event.key] : event.key;
    if (!Object.hasOwn(ACTIONS, key)) return;
    event.preventDefault();
    ACTIONS[key]();
  }

  /* ---- start ---- */

  $("files").textContent = comparing ? `${data.files[0]} against ${data.files[1]}` : data.files[0];
  for (const element of document.querySelectorAll("[data-needs]")) element.hidden = !has[element.dataset.needs];
  let kept = "";
  try { kept = localStorage.getItem("jacana-theme") || ""; } catch { /* as above */ }
  theme(Object.hasOwn(THEMES, kept) ? kept : "");
  legend();
  controls();
  recall();
  document.addEventListener("keydown", keyboard);
  counted();
  root.dataset.ready = "";
})();
