"use strict";
/* Draws a pair as curves and as a matrix whose cells can be changed by mouse and keyboard.

   editor({curves, matrix, changed, pointed, pen}) -> {show(pair), act(name), place()}. `changed` gets a function from
   the pair of that moment to a list of [i, j, kind]; what is drawn changes only when `show` gets the server's answer. */
const JacanaEditor = (() => {
  const { make, arcs } = JacanaDraw;
  const WIDE = 760; // pixels; from there on, the longer sentence stands across
  const SAID = { sure: "sure link", possible: "possible link", none: "no link" };
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  const key = (i, j) => `${i}-${j}`;
  const kinds = (pair) => new Map([...pair.possible.map(([i, j]) => [key(i, j), "possible"]), ...pair.sure.map(([i, j]) => [key(i, j), "sure"])]);

  function editor({ curves, matrix, changed, pointed, pen }) {
    let pair = null; // as the server last said
    let now = new Map(); // kinds of the linked cells
    let grid = null; // {table, cells, rows, columns, turned}
    let at = [0, 0]; // the cursor: row and column of the table
    let anchor = null; // the other corner of the chosen cells
    let dragging = false;
    let drawing = null;
    let first = null; // a word that was clicked

    /* ---- drawing ---- */

    function show(next) {
      const same = pair && grid && next.pair === pair.pair && grid.turned === turned(next);
      pair = next;
      now = kinds(pair);
      if (!same) build(); // else what is being chosen stays: the answer is to an earlier change
      refresh();
      redraw();
    }

    const turned = ({ source, target }) => (source.length > target.length) === (innerWidth >= WIDE);
    const spot = (row, column) => (grid.turned ? [column, row] : [row, column]);

    function build() {
      const flip = turned(pair);
      const [down, across] = flip ? [pair.target, pair.source] : [pair.source, pair.target];
      const names = flip ? "target ↓ source →" : "source ↓ target →";
      const columns = across.map((word) => make("th", { scope: "col", title: word }, make("span", {}, word)));
      const rows = [];
      const cells = down.map((word, row) => {
        rows.push(make("th", { scope: "row", title: word }, word));
        return across.map((_, column) => make("td", { tabindex: "-1", "data-row": row, "data-column": column }));
      });
      const table = make("table", { role: "grid", "aria-label": "Matrix of links", "aria-multiselectable": "true" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, names), ...columns)),
        make("tbody", {}, ...cells.map((line, row) => make("tr", {}, rows[row], ...line))));
      grid = { table, cells, rows, columns, turned: flip };
      at = [0, 0];
      anchor = first = null;
      dragging = false;
      for (const [i, j, p] of pair.likely) cellOf(i, j).style.setProperty("--likely", p.toFixed(3));
      table.addEventListener("keydown", keyboard);
      table.addEventListener("pointerdown", begin);
      table.addEventListener("pointermove", drag);
      table.addEventListener("mouseover", (event) => point(event.target.closest("td")));
      table.addEventListener("mouseleave", () => point(null));
      table.addEventListener("focusin", (event) => focused(event.target.closest("td")));
      matrix.replaceChildren(down.length && across.length ? table : make("p", { class: "nothing" }, "(no words)"));
    }

    const cellOf = (i, j) => (grid.turned ? grid.cells[j][i] : grid.cells[i][j]);

    function refresh() {
      const disputed = new Set(differences(pair).map(({ i, j }) => key(i, j)));
      grid.cells.forEach((line, row) => line.forEach((cell, column) => {
        const [i, j] = spot(row, column);
        const kind = now.get(key(i, j)) || "none";
        cell.className = [kind, disputed.has(key(i, j)) ? "disputed" : ""].join(" ").trim();
        cell.tabIndex = row === at[0] && column === at[1] ? 0 : -1;
        cell.setAttribute("aria-label", `${pair.source[i]} – ${pair.target[j]}: ${SAID[kind]}${disputed.has(key(i, j)) ? ", disputed" : ""}`);
      }));
      choose();
    }

    function redraw() {
      const links = [...now].map(([name, kind]) => {
        const [i, j] = name.split("-").map(Number);
        return { i, j, kind: kind === "sure" ? "link" : "aside", confidence: null };
      });
      drawing = arcs({ source: pair.source, target: pair.target, links });
      curves.replaceChildren(drawing.element);
      drawing.place();
      drawing.parts.forEach((part, k) => {
        part.addEventListener("click", () => jump(links[k].i, links[k].j));
        part.addEventListener("mouseenter", () => drawing.light([k]));
        part.addEventListener("mouseleave", () => drawing.light([]));
      });
      drawing.words.forEach((words, side) => words.forEach((word, k) => word.addEventListener("click", (event) => pick(side, k, event))));
      if (first) drawing.words[first.side][first.k].classList.add("picked");
    }

    /* ---- what is chosen ---- */

    function jump(i, j) {
      move(...(grid.turned ? [j, i] : [i, j]), false);
    }

    function move(row, column, extend) {
      if (extend) anchor = anchor || at; else anchor = null;
      const inside = (value, size) => Math.min(Math.max(value, 0), size - 1);
      grid.cells[at[0]][at[1]].tabIndex = -1;
      at = [inside(row, grid.rows.length), inside(column, grid.columns.length)];
      grid.cells[at[0]][at[1]].tabIndex = 0;
      grid.cells[at[0]][at[1]].focus();
      choose();
    }

    /* The cursor is where the focus is, however it came there. */
    function focused(cell) {
      if (!cell) return;
      const [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
      if (row !== at[0] || column !== at[1]) move(row, column, false);
      point(cell);
    }

    /* The cells between the cursor and the other corner. */
    function chosen() {
      const [one, other] = [at, anchor || at];
      const cells = [];
      for (let row = Math.min(one[0], other[0]); row <= Math.max(one[0], other[0]); row++) {
        for (let column = Math.min(one[1], other[1]); column <= Math.max(one[1], other[1]); column++) cells.push(spot(row, column));
      }
      return cells;
    }

    function choose() {
      for (const cell of grid.table.querySelectorAll(".chosen")) { cell.classList.remove("chosen"); cell.removeAttribute("aria-selected"); }
      if (!anchor) return;
      for (const [i, j] of chosen()) { cellOf(i, j).classList.add("chosen"); cellOf(i, j).setAttribute("aria-selected", "true"); }
    }

    function point(cell) {
      for (const head of [...grid.rows, ...grid.columns]) head.classList.remove("on");
      if (!cell) return pointed(null);
      const [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
      grid.rows[row].classList.add("on");
      grid.columns[column].classList.add("on");
      const [i, j] = spot(row, column);
      const likely = pair.likely.find(([one, other]) => one === i && other === j);
      return pointed({ i, j, kind: now.get(key(i, j)) || "none", likely: likely ? likely[2] : null });
    }

    /* ---- what is changed ---- */

    /* `kind` for all cells; if they have it already, and `turn` says so, none. */
    function put(cells, kind, turn) {
      anchor = null;
      changed((present) => {
        const known = kinds(present);
        const all = cells.every(([i, j]) => known.get(key(i, j)) === kind);
        const wanted = all && turn ? "none" : kind;
        return cells.filter(([i, j]) => (known.get(key(i, j)) || "none") !== wanted).map(([i, j]) => [i, j, wanted]);
      });
    }

    const kindOf = (event) => (event.shiftKey ? "possible" : pen());

    function pick(side, k, event) {
      const before = first;
      for (const word of curves.querySelectorAll(".picked")) word.classList.remove("picked");
      if (!before || before.side === side) {
        first = before && before.k === k ? null : { side, k };
        if (first) drawing.words[side][k].classList.add("picked");
        return;
      }
      first = null;
      put([side ? [before.k, k] : [k, before.k]], kindOf(event), true);
    }

    function begin(event) {
      const cell = event.target.closest("td");
      if (!cell || event.button !== 0) return;
      const spotted = [Number(cell.dataset.row), Number(cell.dataset.column)];
      if (event.pointerType === "touch") { // a finger that moves scrolls
        cell.addEventListener("click", (tap) => { move(...spotted, false); put(chosen(), kindOf(tap), true); }, { once: true });
        return;
      }
      event.preventDefault();
      move(...spotted, false);
      dragging = true;
      document.addEventListener("pointerup", end, { once: true });
    }

    function drag(event) {
      const cell = event.target.closest("td");
      if (!dragging || !cell) return;
      const [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
      if (row === at[0] && column === at[1]) return;
      anchor = anchor || at;
      at = [row, column];
      choose();
    }

    function end(event) {
      if (!dragging) return;
      dragging = false;
      const cells = chosen();
      const over = document.elementFromPoint(event.clientX, event.clientY);
      anchor = null;
      choose();
      if (over && matrix.contains(over)) put(cells, kindOf(event), true); // let go outside: no change
    }

    function keyboard(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (MOVES[event.key]) {
        const [down, right] = MOVES[event.key];
        event.preventDefault();
        move(at[0] + down, at[1] + right, event.shiftKey);
      } else if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        put(chosen(), pen(), true);
      } else if (event.key === "Escape") {
        anchor = null;
        choose();
      }
    }

    function stepLink(by) {
      const links = [...now.keys()].map((name) => name.split("-").map(Number)).map(([i, j]) => (grid.turned ? [j, i] : [i, j]));
      links.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const order = (one) => one[0] * grid.columns.length + one[1];
      const here = order(at);
      const found = by > 0 ? links.find((one) => order(one) > here) : links.reverse().find((one) => order(one) < here);
      if (found) move(...found, false);
    }

    const ACTS = {
      sure: () => put(chosen(), "sure", false),
      possible: () => put(chosen(), "possible", false),
      none: () => put(chosen(), "none", false),
      nextLink: () => stepLink(1),
      previousLink: () => stepLink(-1),
      focus: () => move(at[0], at[1], false),
    };

    return {
      show,
      put,
      act: (name) => pair && pair.source.length && pair.target.length && ACTS[name](),
      place: () => pair && (grid.turned === turned(pair) ? drawing.place() : show(pair)),
      focused: () => Boolean(grid && grid.table.contains(document.activeElement)),
    };
  }

  /* The cells on which the others differ: [{i, j, said: [[name, kind], ...]}]. */
  function differences(pair) {
    if (pair.others.length < 2) return [];
    const maps = pair.others.map((other) => [other.by, kinds(other)]);
    const names = new Set(maps.flatMap(([, map]) => [...map.keys()]));
    const found = [...names].map((name) => {
      const [i, j] = name.split("-").map(Number);
      return { i, j, said: maps.map(([by, map]) => [by, map.get(name) || "none"]) };
    });
    return found.filter(({ said }) => new Set(said.map(([, kind]) => kind)).size > 1).sort((a, b) => a.i - b.i || a.j - b.j);
  }

  return { editor, differences, kinds, key, SAID };
})();
