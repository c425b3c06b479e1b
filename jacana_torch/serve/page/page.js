"use strict";
/* The page sends sentences to /align while they are typed, draws the answers, and asks /explain about the chosen
   words. Neither input nor answers are ever parsed as HTML. */
(() => {
  const { make, arcs, matrix } = JacanaDraw;
  const DEBOUNCE = 180;
  const LONG = 40; // words from which on a matrix is legible and curves are not
  const EXAMPLES = [
    ["She bought a used car last week.", "Last week she purchased a second-hand car."],
    ["The storm forced the airport to close for three hours.", "Because of the storm, the airport was shut for 3 hours."],
    ["Nobody in the village had ever seen such a large whale.", "No one in the village had seen a whale that big before."],
    ["The museum will reopen to visitors in spring.", "In the spring, visitors can go to the museum again."],
  ];
  const at = (id) => document.getElementById(id);
  const state = { models: [], asked: null, aligned: null, drawing: null, chosen: null, asking: null, explaining: null, timer: 0 };

  /* Requests to the server. A newer request cancels the older one. */
  async function ask(kind, path, body) {
    if (state[kind]) state[kind].abort();
    const control = (state[kind] = new AbortController());
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: control.signal,
    });
    const answer = await response.json();
    if (response.ok) return answer;
    const problem = new Error(answer.error.message);
    problem.retry = Number(response.headers.get("Retry-After"));
    throw problem;
  }

  function question() {
    const side = (id) => (at("tokens").checked ? at(id).value.split(/\s+/u).filter(Boolean) : at(id).value);
    const body = { source: side("source"), target: side("target"), model: at("model").value };
    if (at("symmetrize").value) body.symmetrize = at("symmetrize").value;
    return body;
  }

  function complain(problem) {
    if (problem && problem.name === "AbortError") return;
    at("wrong").hidden = !problem;
    const lost = problem instanceof TypeError ? "The server does not answer: is it still running?" : problem && problem.message;
    at("wrong").textContent = problem ? lost : "";
    if (problem && problem.retry) state.timer = setTimeout(align, problem.retry * 1000);
  }

  function soon() {
    clearTimeout(state.timer);
    state.timer = setTimeout(align, DEBOUNCE);
    remember();
  }

  async function align() {
    clearTimeout(state.timer);
    const body = question();
    if (!at("source").value.trim() || !at("target").value.trim()) {
      if (state.asking) state.asking.abort();
      complain(null);
      return clear();
    }
    at("result").classList.add("stale");
    const begun = performance.now();
    try {
      const answer = await ask("asking", "/align", body);
      complain(null);
      show(answer.alignments[0], body);
      const count = answer.alignments[0].sure.length;
      const spent = Math.max(1, Math.round(performance.now() - begun));
      at("said").textContent = `${count} ${count === 1 ? "link" : "links"} by ${answer.model} in ${spent} ms`;
    } catch (problem) {
      if (problem.name !== "AbortError") clear();
      complain(problem);
    }
  }

  /* What is not of these sentences does not stand below what is wrong with them. */
  function clear() {
    show(null);
    at("said").textContent = "";
  }

  function show(aligned, asked = null) {
    const before = state.chosen;
    if (state.explaining) state.explaining.abort();
    state.aligned = aligned;
    state.asked = asked;
    state.chosen = null;
    at("result").hidden = at("why").hidden = !aligned;
    at("result").classList.remove("stale");
    if (!aligned) return;
    const confidence = aligned.confidence || {};
    state.links = aligned.sure.map(([i, j]) => ({ i, j, kind: "link", confidence: confidence[`${i}-${j}`] ?? null }));
    draw();
    list();
    at("why").hidden = !canExplain();
    offer("which-source", aligned.source);
    offer("which-target", aligned.target);
    at("reasons").replaceChildren(make("p", { class: "soft" }, "Choose a link, or any two words, to see the evidence for and against."));
    if (before && before[0] < aligned.source.length && before[1] < aligned.target.length) why(...before);
  }

  function draw() {
    const mode = document.querySelector("input[name=mode]:checked").value;
    const { source, target } = state.aligned;
    const long = Math.max(source.length, target.length) >= LONG;
    state.drawing = (mode === "matrix" || (mode === "auto" && long) ? matrix : arcs)({ source, target, links: state.links });
    state.first = null;
    at("picture").replaceChildren(state.drawing.element);
    state.drawing.place();
    state.drawing.parts.forEach((part, k) => {
      part.addEventListener("click", (event) => (event.stopPropagation(), why(state.links[k].i, state.links[k].j)));
      part.addEventListener("mouseenter", () => state.drawing.light([k]));
      part.addEventListener("mouseleave", relight);
    });
    state.drawing.words.forEach((words, side) =>
      words.forEach((word, k) => word.addEventListener("click", (event) => (event.stopPropagation(), pick(side, k)))));
    const grid = state.drawing.element.querySelector("svg.grid");
    if (grid) grid.addEventListener("click", (event) => clicked(grid, event));
    relight();
  }

  /* Select a word and then one of the other sentence, linked or not, to ask about the two. */
  function pick(side, k) {
    if (state.first && state.first.side !== side) {
      const other = state.first.k;
      return side ? why(other, k) : why(k, other);
    }
    unpick();
    state.first = { side, k };
    state.drawing.words[side][k].classList.add("picked");
    at(side ? "which-target" : "which-source").value = k;
  }

  function unpick() {
    state.first = null;
    for (const word of at("picture").querySelectorAll(".picked")) word.classList.remove("picked");
  }

  /* Cells without a link have no element of their own. */
  function clicked(grid, event) {
    const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(grid.getScreenCTM().inverse());
    const [rows, columns] = state.drawing.words;
    const near = (labels, attribute, value) =>
      labels.findIndex((label) => Math.abs(Number(label.getAttribute(attribute)) - value) <= 10);
    const [i, j] = [near(rows, "y", spot.y), near(columns, "x", spot.x)];
    if (i >= 0 && j >= 0) why(i, j);
  }

  function list() {
    const { source, target } = state.aligned;
    const items = state.links.map(({ i, j, confidence }) => {
      const button = make("button", { type: "button", "aria-pressed": "false", "data-link": `${i}-${j}` },
        `${source[i]} – ${target[j]}`, make("small", {}, confidence === null ? "" : JacanaWhy.percent(confidence)));
      button.addEventListener("click", () => why(i, j));
      return make("li", {}, button);
    });
    at("links").replaceChildren(...items);
    at("pharaoh").value = state.links.map(({ i, j }) => `${i}-${j}`).join(" ");
  }

  function offer(id, tokens) {
    at(id).replaceChildren(...tokens.map((token, k) => make("option", { value: k }, `${k} ${token}`)));
  }

  function relight() {
    const [i, j] = state.chosen || [];
    const k = state.chosen ? state.links.findIndex((link) => link.i === i && link.j === j) : -1;
    state.drawing.light(k < 0 ? [] : [k]);
  }

  function canExplain() {
    const model = state.models.find((one) => one.name === state.asked.model);
    return Boolean(model && model.explains);
  }

  /* Asks about the drawn sentences, which may be older than the typed ones for a moment. */
  async function why(i, j) {
    unpick();
    if (!canExplain()) return;
    state.chosen = [i, j];
    at("which-source").value = i;
    at("which-target").value = j;
    for (const button of at("links").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.link === `${i}-${j}`));
    }
    relight();
    try {
      const answer = await ask("explaining", "/explain", { ...state.asked, link: [i, j], top: 12 });
      at("reasons").replaceChildren(JacanaWhy.explained(answer, answer.links[0]));
    } catch (problem) {
      if (problem.name !== "AbortError") at("reasons").replaceChildren();
      complain(problem);
    }
  }

  /* The sentences are kept in the fragment of the address, which is not sent to a server but can be shared. */
  function remember() {
    const kept = new URLSearchParams({ s: at("source").value, t: at("target").value, m: at("model").value });
    if (at("symmetrize").value) kept.set("j", at("symmetrize").value);
    if (at("tokens").checked) kept.set("k", "1");
    history.replaceState(null, "", `#${kept}`);
  }

  function recall() {
    const kept = new URLSearchParams(location.hash.slice(1));
    const [source, target] = kept.has("s") ? [kept.get("s"), kept.get("t") || ""] : EXAMPLES[0];
    at("source").value = source;
    at("target").value = target;
    at("tokens").checked = kept.has("k");
    if (state.models.some((model) => model.name === kept.get("m"))) at("model").value = kept.get("m");
    offerSymmetrizers(kept.get("j"));
  }

  function offerSymmetrizers(wanted) {
    const model = state.models.find((one) => one.name === at("model").value);
    const options = model.symmetrizers.map((name) => make("option", { value: name }, name));
    const own = model.symmetrize ? `its own way (${model.symmetrize})` : "its own way";
    at("symmetrize").replaceChildren(make("option", { value: "" }, own), ...options);
    at("symmetrize-label").hidden = !model.symmetrizers.length;
    if (model.symmetrizers.includes(wanted)) at("symmetrize").value = wanted;
  }

  function shade(theme) {
    document.documentElement.dataset.theme = theme;
    at("theme").textContent = theme === "dark" ? "Light" : "Dark";
  }

  function listen() {
    for (const id of ["source", "target"]) at(id).addEventListener("input", soon);
    at("model").addEventListener("change", () => (offerSymmetrizers(at("symmetrize").value), remember(), align()));
    for (const id of ["symmetrize", "tokens"]) at(id).addEventListener("change", () => (remember(), align()));
    for (const radio of document.querySelectorAll("input[name=mode]")) {
      radio.addEventListener("change", () => state.aligned && draw());
    }
    at("swap").addEventListener("click", () => {
      [at("source").value, at("target").value] = [at("target").value, at("source").value];
      state.chosen = state.chosen && [...state.chosen].reverse();
      remember();
      align();
    });
    at("example").append(...EXAMPLES.map(([source], k) => make("option", { value: k }, source)));
    at("example").addEventListener("change", () => {
      if (!at("example").value) return;
      [at("source").value, at("target").value] = EXAMPLES[at("example").value];
      at("example").value = "";
      remember();
      align();
    });
    at("ask").addEventListener("submit", (event) => event.preventDefault());
    at("which").addEventListener("submit", (event) => {
      event.preventDefault();
      why(Number(at("which-source").value), Number(at("which-target").value));
    });
    at("copy").addEventListener("click", copy);
    at("theme").addEventListener("click", () => shade(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    addEventListener("resize", () => state.drawing && state.aligned && state.drawing.place());
    addEventListener("hashchange", () => (recall(), align()));
    addEventListener("keydown", (event) => event.key === "Escape" && state.aligned && (unpick(), (state.chosen = null), relight()));
  }

  async function copy() {
    at("pharaoh").select();
    try {
      await navigator.clipboard.writeText(at("pharaoh").value);
      at("copy-said").textContent = "Copied";
    } catch {
      at("copy-said").textContent = "Selected: copy it with the keyboard";
    }
  }

  async function begin() {
    shade(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    listen();
    try {
      const answer = await (await fetch("/models")).json();
      state.models = answer.models;
    } catch (problem) {
      return complain(problem);
    }
    at("model").replaceChildren(...state.models.map(({ name, description }) => make("option", { value: name, title: description }, name)));
    recall();
    align();
  }

  begin();
})();
