"use strict";
/* The page: it asks for changes one at a time, and shows what the server answers. Nothing counts as saved before. */
(() => {
  const { make } = JacanaDraw;
  const { editor, differences, kinds, key, SAID } = JacanaEditor;
  const $ = (id) => document.getElementById(id);
  const POLL = 10_000; // milliseconds between two looks at what others do
  const LONG = 40; // words of a sentence, from which on only the matrix is shown, unless somebody asks for curves
  const SOON = 1_500; // while a model is fitted, or the server does not answer

  const state = { by: null, pair: null, show: "all", comparing: false, fitting: false, waiting: 0, failed: false, epoch: 0, away: false, ownMode: false, timer: 0 };
  let chain = Promise.resolve(); // of requests, each on what the one before left

  /* ---- asking the server ---- */

  async function ask(path, body) {
    const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    const response = await fetch(path, options);
    const answer = await response.json();
    if (response.ok) return answer;
    const problem = new Error(answer.error.message);
    problem.status = response.status;
    throw problem;
  }

  const query = (values) => new URLSearchParams({ by: state.by, ...values }).toString();
  const fetchPair = (number) => ask(`/pair?${query({ number, show: state.show })}`);

  /* Do one thing after all that was asked for before. After a failure, what is still waiting is dropped. */
  function inTurn(work) {
    const { epoch } = state;
    state.waiting += 1;
    saying();
    const turn = chain.then(async () => {
      if (epoch === state.epoch) await work();
    }).catch(failed).finally(() => {
      state.waiting -= 1;
      saying();
    });
    chain = turn;
    return turn;
  }

  function change(of, after = (answer) => show(answer)) {
    return inTurn(async () => {
      const body = of(state.pair);
      if (!body) return;
      const { pair, version } = state.pair;
      const answer = await ask("/change", { by: state.by, pair, version, show: state.show, ...body });
      complain(null);
      await after(answer);
    });
  }

  async function failed(problem) {
    state.failed = true;
    state.epoch += 1;
    const refused = Boolean(problem.status);
    complain(refused ? `Not saved: ${problem.message}.` : "Not saved: the server does not answer. Is it still running?");
    setAway(!refused);
    saying();
    await recover(refused ? 0 : SOON, refused);
  }

  /* Show what the server has, as soon as it answers. */
  async function recover(pause, told) {
    for (;;) {
      await new Promise((done) => setTimeout(done, pause));
      try {
        if (state.pair) show(await fetchPair(state.pair.pair));
        else await start();
        if (!told) complain("The server is back. This is what it has saved: repeat what is missing.");
        state.failed = false;
        setAway(false);
        return;
      } catch (problem) {
        pause = SOON;
      }
    }
  }

  function setAway(away) {
    state.away = away;
    document.body.classList.toggle("away", away);
    for (const id of ["editor", "decide", "disputed"]) $(id).inert = away;
  }

  function complain(text) {
    $("wrong").hidden = !text;
    $("wrong").textContent = text || "";
  }

  function saying() {
    $("saved").textContent = state.failed ? "Not saved" : state.waiting ? "Saving…" : "Saved";
  }

  /* ---- showing ---- */

  const view = editor({
    curves: $("curves"),
    matrix: $("matrix"),
    pen: () => document.querySelector("[name=pen]:checked").value,
    pointed,
    changed: (cells) => change((pair) => {
      const given = cells(pair);
      return given.length ? { do: "edit", cells: given } : null;
    }),
  });

  function show(pair) {
    const moved = !state.pair || state.pair.pair !== pair.pair;
    const inside = view.focused();
    state.pair = pair;
    $("columns").hidden = false; // what is hidden cannot be measured
    view.show(pair);
    if (moved && !state.ownMode) setMode(Math.max(pair.source.length, pair.target.length) < LONG ? "both" : "matrix");
    if (moved && inside) view.act("focus");
    if (moved) pointed(null);
    $("id").textContent = pair.id || `pair ${pair.pair + 1}`;
    $("status").textContent = pair.status;
    $("status").dataset.status = pair.status;
    $("mistakes").textContent = pair.mistakes === null ? "" : `about ${pair.mistakes.toFixed(1)} mistakes expected`;
    if (moved || document.activeElement !== $("note")) $("note").value = pair.note;
    $("place").textContent = pair.place === null ? `not among the ${pair.of} shown` : `${pair.place + 1} of ${pair.of}`;
    $("previous").disabled = pair.previous === null;
    $("next").disabled = pair.next === null;
    $("undo").disabled = !pair.undo;
    $("redo").disabled = !pair.redo;
    progress(pair.progress);
    dispute(pair);
    remember();
  }

  function progress(counted) {
    $("progress").max = Math.max(1, counted.pairs);
    $("progress").value = counted.accepted;
    const parts = [`${counted.accepted} of ${counted.pairs} ${counted.pairs === 1 ? "pair" : "pairs"} accepted`];
    for (const name of ["skipped", "flagged"]) if (counted[name]) parts.push(`${counted[name]} ${name}`);
    $("counts").textContent = parts.join(", ");
  }

  function pointed(cell) {
    if (!cell) {
      $("cell").textContent = "";
      return;
    }
    const likely = cell.likely === null ? "" : `, posterior ${(100 * cell.likely).toFixed(0)} %`;
    $("cell").textContent = `${state.pair.source[cell.i]} – ${state.pair.target[cell.j]}: ${SAID[cell.kind]}${likely}`;
  }

  /* The cells on which annotators differ, each with what they say and a choice. */
  function dispute(pair) {
    const cells = differences(pair);
    const chosen = kinds(pair);
    const had = document.activeElement && document.activeElement.dataset.cell;
    $("disputed").hidden = !cells.length;
    $("differences").replaceChildren(...cells.map(({ i, j, said }) => {
      const words = `${pair.source[i]} – ${pair.target[j]}`;
      const now = chosen.get(key(i, j)) || "none";
      const buttons = Object.keys(SAID).map((kind) => {
        const name = `${key(i, j)} ${kind}`;
        const button = make("button", { type: "button", "aria-pressed": String(kind === now), "data-cell": name, "aria-label": `${words}: ${kind}` }, kind);
        button.addEventListener("click", () => view.put([[i, j]], kind, false));
        return button;
      });
      const told = said.map(([by, kind]) => `${by}: ${SAID[kind]}`).join(", ");
      return make("li", {}, make("span", { class: "joined" }, words), make("span", { class: "said" }, told), make("span", { class: "buttons" }, ...buttons));
    }));
    if (had) for (const button of $("differences").querySelectorAll("button")) if (button.dataset.cell === had) button.focus();
  }

  function guide(text) {
    const parts = [];
    let items = null;
    for (const line of text.split("\n").map((one) => one.trim())) {
      if (line.startsWith("- ")) {
        if (!items) parts.push((items = make("ul")));
        items.append(make("li", {}, line.slice(2)));
        continue;
      }
      items = null;
      if (line) parts.push(line.startsWith("#") ? make("h3", {}, line.replace(/^#+\s*/u, "")) : make("p", {}, line));
    }
    $("guidelines").replaceChildren(...parts);
  }

  /* ---- what belongs to no pair ---- */

  function about(told) {
    state.comparing = told.comparing;
    $("title").textContent = told.comparing ? "Adjudicate" : "Annotate";
    $("file").textContent = told.file;
    document.title = `${told.file}: annotate`;
    $("who").hidden = told.names.length < 2;
    $("by").replaceChildren(...told.names.map((name) => make("option", { value: name }, name)));
    $("by").value = told.by;
    $("agreed").hidden = !told.agreement.length;
    $("agreement").replaceChildren(...told.agreement.map(({ first, second, pairs, f1, kappa }) => make("tr", {},
      make("th", { scope: "row" }, `${first}, ${second}`), make("td", {}, String(pairs)),
      make("td", {}, (100 * f1).toFixed(1)), make("td", {}, kappa.toFixed(3)))));
    fitted(told.fit);
  }

  function fitted(fit) {
    const ended = state.fitting && !fit.running;
    state.fitting = fit.running;
    $("fit").hidden = !fit.able || state.comparing;
    $("fit").disabled = fit.running;
    const counted = (number) => `${number} ${number === 1 ? "pair" : "pairs"}`;
    const without = fit.left_out ? `, without ${counted(fit.left_out)} that annotators disagree on` : "";
    const pairs = counted(fit.pairs) + without;
    $("fitted").textContent = fit.running ? `The model is being fitted on ${pairs}. Go on meanwhile.`
      : fit.error ? `The model was not fitted: ${fit.error}` : fit.pairs ? `The model was fitted on ${pairs}.` : "";
    if (ended && state.pair && !fit.error) go(state.pair.pair);
  }

  async function look() {
    clearTimeout(state.timer);
    if (!state.away && !document.hidden) {
      try {
        about(await ask(`/state?${query({})}`));
      } catch { /* a change will say so */ }
    }
    state.timer = setTimeout(look, state.fitting ? SOON : POLL);
  }

  /* ---- what can be done ---- */

  const go = (number) => inTurn(async () => { if (number !== null && number !== undefined) show(await fetchPair(number)); });
  const step = (name) => inTurn(async () => { if (state.pair[name] !== null) show(await fetchPair(state.pair[name])); });

  function decide(status) {
    change(() => ({ do: "status", status, note: $("note").value }), async (answer) => {
      show(answer);
      if (answer.next_open !== null) show(await fetchPair(answer.next_open));
      else complain("Every pair is done: none is open.");
      look();
    });
  }

  const turn = (name) => change((pair) => (pair[name] ? { do: name } : null));

  async function save() {
    try {
      const response = await fetch(state.comparing ? "/export" : `/export?${query({})}`);
      if (!response.ok) throw new Error((await response.json()).error.message);
      const named = /filename="([^"]+)"/u.exec(response.headers.get("content-disposition"));
      const link = make("a", { href: URL.createObjectURL(await response.blob()), download: named[1] });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), SOON);
    } catch (problem) {
      complain(`Not exported: ${problem.message}`);
    }
  }

  async function fit() {
    try {
      fitted((await ask("/fit", {})).fit);
      look();
    } catch (problem) {
      complain(`Not fitted: ${problem.message}.`);
    }
  }

  function setMode(mode) {
    document.querySelector(`[name=mode][value=${mode}]`).checked = true;
    $("editor").classList.toggle("only-arcs", mode === "arcs");
    $("editor").classList.toggle("only-matrix", mode === "matrix");
    view.place();
  }

  function choose(mode) {
    state.ownMode = true;
    setMode(mode);
  }

  const MODES = ["both", "arcs", "matrix"];
  const THEMES = { "": "auto", dark: "dark", light: "light" };
  function theme(next) {
    const root = document.documentElement;
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    $("theme").textContent = `Colours: ${THEMES[next]}`;
    try { localStorage.setItem("jacana-theme", next); } catch { /* some pages may not store */ }
  }
  const cycle = (names, now) => names[(names.indexOf(now) + 1) % names.length];
  const nextTheme = () => theme(cycle(Object.keys(THEMES), document.documentElement.dataset.theme || ""));

  /* ---- keyboard ---- */

  const ACTIONS = {
    a: () => decide("accepted"),
    s: () => decide("skipped"),
    f: () => decide("flagged"),
    u: () => turn("undo"),
    r: () => turn("redo"),
    j: () => step("next"),
    k: () => step("previous"),
    n: () => step("next_open"),
    l: () => view.act("nextLink"),
    h: () => view.act("previousLink"),
    1: () => view.act("sure"),
    2: () => view.act("possible"),
    0: () => view.act("none"),
    m: () => choose(cycle(MODES, document.querySelector("[name=mode]:checked").value)),
    t: nextTheme,
    "?": () => $("help").showModal(),
  };
  const ON_CELLS = ["1", "2", "0", "Delete", "Backspace"];

  function keyboard(event) {
    if ($("help").open || state.away || !state.pair) return;
    if (event.target.closest("select, input[type=text]")) return; // letters are for them
    const held = event.ctrlKey || event.metaKey;
    if (held && !event.altKey && event.key.toLowerCase() === "z") return act(event, event.shiftKey ? ACTIONS.r : ACTIONS.u);
    if (held && event.key.toLowerCase() === "y") return act(event, ACTIONS.r);
    if (held || event.altKey) return;
    if (ON_CELLS.includes(event.key)) {
      if (view.focused()) act(event, ACTIONS[event.key] || ACTIONS[0]);
    } else if (event.key.startsWith("Arrow") && !view.focused() && !event.target.closest("input, details")) {
      act(event, () => view.act("focus"));
    } else if (Object.hasOwn(ACTIONS, event.key)) {
      act(event, ACTIONS[event.key]);
    }
  }

  function act(event, action) {
    event.preventDefault();
    action();
  }

  function listen() {
    $("previous").addEventListener("click", () => step("previous"));
    $("next").addEventListener("click", () => step("next"));
    $("undo").addEventListener("click", () => turn("undo"));
    $("redo").addEventListener("click", () => turn("redo"));
    $("decide").addEventListener("submit", (event) => { event.preventDefault(); decide("accepted"); });
    $("skip").addEventListener("click", () => decide("skipped"));
    $("flag").addEventListener("click", () => decide("flagged"));
    $("show").addEventListener("change", () => { state.show = $("show").value; go(state.pair.pair); });
    $("by").addEventListener("change", () => { state.by = $("by").value; state.pair = null; inTurn(start); });
    $("fit").addEventListener("click", fit);
    $("export").addEventListener("click", save);
    $("theme").addEventListener("click", nextTheme);
    $("help-open").addEventListener("click", () => $("help").showModal());
    for (const radio of document.querySelectorAll("[name=mode]")) radio.addEventListener("change", () => choose(radio.value));
    addEventListener("resize", view.place);
    document.addEventListener("keydown", keyboard);
    document.addEventListener("visibilitychange", look);
    addEventListener("beforeunload", (event) => { if (state.waiting) event.preventDefault(); });
  }

  /* ---- start ---- */

  function remember() {
    history.replaceState(null, "", `#${new URLSearchParams({ by: state.by, pair: state.pair.pair + 1 })}`);
  }

  async function start() {
    const kept = new URLSearchParams(location.hash.slice(1));
    const wanted = state.by || kept.get("by");
    let told;
    try {
      told = await ask(wanted ? `/state?${new URLSearchParams({ by: wanted })}` : "/state");
    } catch (problem) {
      if (problem.status !== 422) throw problem;
      told = await ask("/state"); // the address is of other annotators
    }
    state.by = told.by;
    guide(told.guidelines);
    about(told);
    progress(told.progress);
    if (told.first === null) return complain("There is nothing to adjudicate: no two annotators disagree on a pair that both accepted.");
    const asked = Number(kept.get("pair")) - 1;
    const number = Number.isInteger(asked) && asked >= 0 && kept.get("by") === state.by ? asked : told.first;
    try {
      show(await fetchPair(number));
    } catch (problem) {
      if (problem.status !== 422) throw problem;
      show(await fetchPair(told.first));
    }
    return undefined;
  }

  let kept = "";
  try { kept = localStorage.getItem("jacana-theme") || ""; } catch { /* as above */ }
  theme(Object.hasOwn(THEMES, kept) ? kept : "");
  if (innerWidth < 900) document.querySelector("details").open = false;
  listen();
  inTurn(start).then(() => { state.timer = setTimeout(look, POLL); });
})();
