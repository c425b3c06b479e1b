"use strict";
/* The page: controls, keyboard, and what they say of links. State that a colleague may want goes into the address. */
(() => {
  const { KINDS, make, draw } = JacanaDraw;
  const { unpack, judge, choose, summary, select, panelsOf, FILTERS, KEYS } = JacanaPairs;
  const { list, percent } = JacanaList;
  const { teller } = JacanaAbout;
  const LONG = 40; // words from which on a matrix is legible and curves are not
  const $ = (id) => document.getElementById(id);

  const data = JSON.parse($("data").textContent);
  const pairs = unpack(data);
  const names = data.gold ? data.files.slice(1) : data.files; // of systems
  const together = names.length === 2 && !data.gold;
  const has = {
    gold: data.gold,
    scores: data.gold || together,
    several: names.length > 1,
    chosen: names.length > 1 && !together,
    together,
    confidence: data.confidence,
    possible: data.possible,
  };
  const state = {
    filter: "all", sort: "position", descending: false, query: "", counting: "sure", mode: "auto", least: 0, system: "",
  };
  if (has.several) Object.assign(state, { sort: "differ", descending: true });
  const START = { ...state };
  const root = document.documentElement;

  const page = {
    compared: () => ({ gold: data.gold, systems: names.length, counting: state.counting }),
    panels: () => panelsOf(page.compared(), state.system),
    matrix: (pair) => state.mode === "matrix" || (state.mode === "auto" && pair.longest >= LONG),
    query: () => state.query,
    least: () => state.least / 100,
    named: (pair) => `Pair ${pair.position + 1}` + (has.scores ? `, F1 ${percent(pair.f1)}` : ""),
    system: (panel) => names[panel],
    name: (kind) => ({ first: `${names[0]} only`, second: `${names[1]} only`, both: together ? "in both" : "in all" }[kind] || KINDS[kind].name),
    figure,
  };
  page.about = teller(data, page.name);
  const shelf = list($("pairs"), $("tip"), page);

  function figure(pair, panel) {
    const one = pair.score(panel);
    if (!has.scores) return has.several ? `${pair.differ} differ` : "";
    return one.exact ? (together ? "the same" : "exact") : `${together ? "agree" : "F1"} ${percent(one.f1)}`;
  }

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
    if (!has.scores) return;
    const all = summary(kept, page.compared());
    const score = (value) => (100 * value).toFixed(2);
    if (names.length > 1 && !together) return table(all, score);
    const [of] = all;
    const figures = together ? togetherFigures(of)
      : [["Precision", score(of?.precision ?? 0)], ["Recall", score(of?.recall ?? 0)], ["F1", score(of?.f1 ?? 0)], ["Exact", score(of?.exact ?? 0)]];
    $("scores").replaceChildren(...figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    $("scores").title = together ? "Links of the pairs shown; agreement is 2 × both / all links of A and of B"
      : "Macro-averaged over the pairs shown";
    return undefined;
  }

  function togetherFigures(of) {
    const [both, first, second] = ["both", "first", "second"].map((kind) => (of ? of.total(kind) : 0));
    const agree = both + first + second ? (2 * both) / (2 * both + first + second) : 1;
    return [["Both", both], [`A: ${names[0]} only`, first], [`B: ${names[1]} only`, second], ["Agreement", percent(agree)]];
  }

  function table(all, score) {
    const row = (cells, kind) => make("tr", {}, ...cells.map((cell, k) =>
      make(k && kind === "td" ? "td" : "th", { scope: k ? (kind === "th" ? "col" : null) : kind === "th" ? "col" : "row" }, cell)));
    const body = names.map((name, k) => {
      const of = all[k];
      return row([name, ...(of ? [of.precision, of.recall, of.f1, of.exact] : [0, 0, 0, 0]).map(score)], "td");
    });
    $("table").replaceChildren(make("caption", {}, "Macro-averaged over the pairs shown"),
      make("thead", {}, row(["System", "Precision", "Recall", "F1", "Exact"], "th")), make("tbody", {}, ...body));
    $("table").hidden = false;
  }

  function counted() {
    judge(pairs, page.compared());
    chosen();
  }

  function chosen() {
    choose(pairs, page.compared(), state.system);
    show();
  }

  function legend() {
    const of = data.gold ? ["hit", "miss", "invention"] : together ? ["both", "first", "second"] : has.several ? ["both", "some"] : ["link"];
    const kinds = of.concat(has.possible ? ["aside"] : []);
    if (kinds.length < 2) return;
    for (const kind of kinds) {
      const box = make("input", { type: "checkbox", id: `show-${kind}`, checked: "" });
      const sample = draw("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, draw("g", { class: `part ${kind}` },
        draw("path", { class: "line", d: "M2,7H32" }), draw("text", { class: "sign", x: 17, y: 7 }, KINDS[kind].sign)));
      box.addEventListener("change", () => { $("pairs").classList.toggle(`hide-${kind}`, !box.checked); shelf.release(); });
      $("legend").append(make("label", {}, box, sample, page.name(kind)));
    }
  }

  function offer() {
    for (const element of document.querySelectorAll("[data-needs]")) element.hidden = !has[element.dataset.needs];
    $("system").append(...names.map((name, k) => make("option", { value: k }, name)));
    if (together) {
      for (const [k, kind] of ["first", "second"].entries()) {
        document.querySelector(`#filter [value=${kind}]`).textContent = `with a link of ${names[k]} only`;
      }
      document.querySelector("#sort [value=f1]").textContent = "agreement";
    }
    if (has.several) document.querySelector("#sort [value=differ]").textContent = "links that differ";
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
    among("mode", MODES);
    among("system", ["", ...names.keys()].map(String));
    among("counting", ["sure", "all"]);
    if (said.has("descending")) state.descending = said.get("descending") === "true";
    state.query = said.get("query") || "";
    state.least = Math.min(Math.max(Number(said.get("least")) || 0, 0), 100);
    for (const key of ["filter", "sort", "counting", "query", "least", "system"]) $(key).value = state[key];
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

  const MODES = ["auto", "matrix", "arcs"];
  function setMode(mode) {
    state.mode = mode;
    document.querySelector(`[name=mode][value=${mode}]`).checked = true;
    shelf.redraw();
    remember();
  }

  const THEMES = { "": "auto", dark: "dark", light: "light" };
  function theme(next) {
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    $("theme").textContent = `Colours: ${THEMES[next]}`;
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
    $("system").addEventListener("change", () => { state.system = $("system").value; chosen(); });
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
    for (let k = shelf.current() + by; k >= 0 && k < shelf.count(); k += by) if (shelf.pair(k).errors) return shelf.focus(k);
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
    if (shelf.current() >= 0) shelf.step(by);
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
    m: () => setMode(MODES[(MODES.indexOf(state.mode) + 1) % MODES.length]),
    "+": () => shelf.zoom(1),
    "-": () => shelf.zoom(-1),
    0: () => shelf.zoom(0),
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
    if (ARROWS[event.key] && event.target.closest("input, .pane")) return;
    // Arrows scroll the page until a pair is chosen.
    const key = ARROWS[event.key] && shelf.current() >= 0 ? ARROWS[event.key] : event.key;
    if (!Object.hasOwn(ACTIONS, key)) return;
    event.preventDefault();
    ACTIONS[key]();
  }

  /* ---- start ---- */

  $("files").textContent = data.gold ? `${data.files[0]} against ${names.join(", ")}`
    : together ? `A: ${names[0]}, B: ${names[1]}` : names.join(", ");
  offer();
  let kept = "";
  try { kept = localStorage.getItem("jacana-theme") || ""; } catch { /* as above */ }
  theme(Object.hasOwn(THEMES, kept) ? kept : "");
  legend();
  controls();
  recall();
  document.addEventListener("keydown", keyboard);
  counted();
  root.dataset.ready = "";
  performance.mark("ready");
})();
