"use strict";
/* Draws a pair as a matrix: see draw.js.

   It fits the width of the page if its labels stay legible. What does not fit is a pane to scroll, whose labels stay in
   sight; the corner has an overview, and buttons zoom. */
JacanaDraw.matrix = (() => {
  const { KINDS, SIGNED, make, draw, opacity, wordsOf, around, light, direction } = JacanaDraw;
  const CELL = 20; // units, which are pixels at zoom 1
  const LETTERS = 13; // pixels
  const [SMALLEST, SCROLLED] = [0.55, 0.85]; // zooms chosen by itself: to fit the width, and where nothing fits
  const [LEAST, MOST, STEP] = [0.15, 2.4, 1.25]; // zooms by hand
  const [LEANING, STEEP] = [45, 68]; // degrees of the labels of columns; those of narrow columns are steeper
  const TALL = 0.72; // of the window: how tall a pane is
  const LEGIBLE = 6; // pixels of labels; smaller ones are left out
  const NAMED = 62; // pixels of a corner that has room for the names of the sentences
  const TENS = 10;

  let pen = null;
  function textWidth(text) {
    if (!pen) {
      pen = document.createElement("canvas").getContext("2d");
      pen.font = `${LETTERS}px system-ui, sans-serif`;
    }
    return pen.measureText(text).width;
  }

  /* The longer sentence across, where pages have room; its name, and the other's, stand in the corner. */
  function matrix(pair) {
    const turned = pair.source.length > pair.target.length;
    const [down, across] = turned ? [pair.target, pair.source] : [pair.source, pair.target];
    const backwards = direction(across) === "rtl";
    const column = (j) => (backwards ? across.length - 1 - j : j);
    const rows = down.map((token, i) => draw("text", { class: "label row", x: -8, y: (i + 0.5) * CELL }, token));
    const columns = across.map((token, j) => {
      return draw("text", { class: "label column", x: (column(j) + 0.5) * CELL, y: -6 }, token);
    });
    const size = { width: across.length * CELL, height: down.length * CELL };
    const place = ({ i, j }) => (turned ? [column(i) * CELL, j * CELL] : [column(j) * CELL, i * CELL]);
    const groups = pair.links.map((link) => cell(link, ...place(link)));
    const parts = {
      head: draw("svg", { class: "heads" }, ...columns),
      side: draw("svg", { class: "sides" }, ...rows),
      grid: draw("svg", { class: "grid" }, ruling(down.length, across.length), ...groups),
      names: (turned ? ["source →", "target ↓"] : ["target →", "source ↓"]).map((name) => make("span", { class: "label side" }, name)),
      dots: pair.links.map((link) => {
        const [x, y] = place(link);
        return draw("rect", { class: `dot ${link.kind}`, x: x / CELL - 0.25, y: y / CELL - 0.25, width: 1.5, height: 1.5 });
      }),
      size,
      left: Math.max(52, ...down.map(textWidth)) + 12,
      top: Math.max(40, ...across.map(textWidth)),
      over: (share) => Math.max(0, ...across.map((token, j) => (column(j) + 1 - across.length) * CELL + textWidth(token) * share)) + 6,
    };
    const shown = pane(parts);
    const words = turned ? [columns, rows] : [rows, columns];
    const marked = wordsOf(pair, ...words);
    return {
      element: shown.element,
      measure: () => null,
      settle: shown.settle,
      place: shown.settle,
      parts: groups,
      words,
      light: (chosen) => light(shown.element, groups, marked, chosen),
      reach: (k) => around([groups[k]]),
      reveal: (k) => shown.reveal(place(pair.links[k])),
      zoom: shown.zoom,
    };
  }

  /* Four parts, three of which stay in sight while the grid is scrolled. */
  function pane({ head, side, grid, names, dots, size, left, top, over }) {
    const frame = draw("rect", { class: "frame", x: 0, y: 0 });
    const across = size.width / CELL, down = size.height / CELL;
    const overview = draw("svg", { class: "overview", viewBox: `0 0 ${across} ${down}` },
      draw("rect", { class: "ground", width: across, height: down }), ...dots, frame);
    const corner = make("div", { class: "corner" }, ...names);
    const scrolled = make("div", { class: "pane" }, make("div", { class: "sheet", "aria-hidden": "true" }, corner, head, side, grid));
    const buttons = make("div", { class: "zooms" }, button("−", "Smaller (-)", -1), button("+", "Larger (+)", 1), button("All", "The whole matrix (0)", 0));
    const element = make("div", { class: "matrix" }, buttons, scrolled);
    let zoom = 1;
    let chosen = null; // by hand
    let extra = { left: 0, top: 0 };

    function button(text, title, by) {
      const made = make("button", { type: "button", title, "aria-label": by ? title : null }, text);
      made.addEventListener("click", () => zoomed(by));
      return made;
    }

    const letters = (at) => Math.min(LETTERS * Math.max(at, 1), CELL * at * 0.92, 17); // pixels

    /* Pixels that labels and cells take at a zoom. Labels lean: they reach up, and to the right of the last column. */
    function extent(at) {
      const share = letters(at) < LEGIBLE ? 0 : letters(at) / LETTERS;
      const angle = at < 0.9 ? STEEP : LEANING;
      const [sine, cosine] = [Math.sin, Math.cos].map((of) => of((angle * Math.PI) / 180));
      const beside = { left: Math.max(left * share, 12), top: Math.max(top * share * sine + 16, 12) };
      const beyond = over((share / at) * cosine);
      return { ...beside, share, angle, beyond, width: beside.left + (size.width + beyond) * at, height: beside.top + size.height * at };
    }

    function settle() {
      const printed = matchMedia("print").matches; // paper does not scroll
      const room = { width: element.clientWidth, height: printed ? Infinity : innerHeight * TALL };
      if (chosen === null || printed) {
        const smallest = printed ? LEAST : SMALLEST;
        zoom = 1;
        while (zoom > smallest && extent(zoom).width > room.width) zoom -= 0.02;
        if (zoom <= smallest && !printed) zoom = SCROLLED;
      } else {
        zoom = chosen;
      }
      const now = extent(zoom);
      const fits = now.width <= room.width + 1 && (chosen === null ? now.height <= room.height * 1.25 : now.height <= room.height);
      if (!fits) Object.assign(now, { left: Math.max(now.left, 92), top: Math.max(now.top, 92) });
      extra = now;
      const units = { left: now.left / zoom, top: now.top / zoom };
      view(head, [0, -units.top, size.width + now.beyond, units.top]);
      for (const label of head.children) {
        label.setAttribute("transform", `rotate(${-now.angle} ${label.getAttribute("x")} ${label.getAttribute("y")})`);
      }
      view(side, [-units.left, 0, units.left, size.height]);
      view(grid, [0, 0, size.width + 1, size.height + 1]);
      for (const labels of [head, side]) {
        labels.style.fontSize = `${(letters(zoom) / zoom).toFixed(2)}px`;
        labels.classList.toggle("tiny", now.share === 0);
      }
      corner.style.width = `${now.left}px`;
      corner.classList.toggle("narrow", now.left < NAMED);
      scrolled.style.scrollPadding = `${now.top}px 0 0 ${now.left}px`; // what is scrolled to stands beside the labels
      element.classList.toggle("large", !fits || chosen !== null);
      element.classList.toggle("scrolls", !fits);
      if (fits) scrolled.removeAttribute("tabindex"); else scrolled.setAttribute("tabindex", "0");
      for (const [name, value] of [["role", "region"], ["aria-label", "Matrix, which scrolls"]]) {
        if (fits) scrolled.removeAttribute(name); else scrolled.setAttribute(name, value);
      }
      corner.replaceChildren(...(fits ? names : [overview]));
      framed();
    }

    function view(svg, [x, y, width, height]) {
      svg.setAttribute("viewBox", [x, y, width, height].map((one) => one.toFixed(2)).join(" "));
      svg.setAttribute("width", (width * zoom).toFixed(1));
      svg.setAttribute("height", (height * zoom).toFixed(1));
    }

    /* What the pane shows, in cells. */
    function seen() {
      const cell = CELL * zoom;
      return {
        x: scrolled.scrollLeft / cell, y: scrolled.scrollTop / cell,
        width: Math.min((scrolled.clientWidth - extra.left) / cell, across), height: Math.min((scrolled.clientHeight - extra.top) / cell, down),
      };
    }

    function framed() {
      for (const [name, value] of Object.entries(seen())) frame.setAttribute(name, Math.max(value, 0).toFixed(2));
    }

    /* Shows the surroundings of a cell. */
    function centre(x, y) {
      const now = seen();
      scrolled.scrollTo((x - now.width / 2) * CELL * zoom, (y - now.height / 2) * CELL * zoom);
      framed();
    }

    function zoomed(by) {
      const now = seen();
      const [x, y] = [now.x + now.width / 2, now.y + now.height / 2];
      if (by) {
        zoom = Math.min(Math.max(zoom * STEP ** by, LEAST), MOST);
      } else {
        for (zoom = 1; zoom > LEAST; zoom -= 0.02) if (extent(zoom).width <= element.clientWidth && extent(zoom).height <= innerHeight * TALL) break;
      }
      chosen = zoom;
      settle();
      centre(x, y);
    }

    function reveal([x, y]) {
      const now = seen();
      const [i, j] = [x / CELL, y / CELL];
      if (i < now.x || j < now.y || i + 1 > now.x + now.width || j + 1 > now.y + now.height) centre(i, j);
    }

    function dragged(event) {
      if (event.type === "pointerdown") overview.setPointerCapture(event.pointerId);
      else if (!event.buttons) return;
      const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(overview.getScreenCTM().inverse());
      centre(spot.x, spot.y);
      event.preventDefault();
    }
    for (const name of ["pointerdown", "pointermove"]) overview.addEventListener(name, dragged);
    scrolled.addEventListener("scroll", framed, { passive: true });

    return { element, settle, reveal, zoom: zoomed };
  }

  function ruling(rows, columns) {
    const lines = (tens) => {
      const of = (number, line) => Array.from({ length: number + 1 }, (_, k) => k)
        .filter((k) => (k % TENS === 0) === tens || (tens && k === number)).map(line).join("");
      return of(rows, (i) => `M0,${i * CELL}h${columns * CELL}`) + of(columns, (j) => `M${j * CELL},0v${rows * CELL}`);
    };
    const tens = Math.max(rows, columns) > 2 * TENS ? [draw("path", { class: "ruling tens", d: lines(true) })] : [];
    return draw("g", {}, draw("path", { class: "ruling", d: lines(false) + lines(true) }), ...tens);
  }

  function cell(link, x, y) {
    const group = draw("g", { class: `part ${link.kind}` });
    const reach = draw("rect", { class: "reach", x, y, width: CELL, height: CELL });
    const box = draw("rect", { class: "cell", x: x + 3, y: y + 3, width: CELL - 6, height: CELL - 6, rx: 2 });
    const filled = link.kind === "link" || link.kind === "hit" || link.kind === "both";
    box.setAttribute(filled ? "fill-opacity" : "stroke-opacity", opacity(link).toFixed(3));
    group.append(reach, box);
    if (SIGNED.has(link.kind)) {
      group.append(draw("text", { class: "sign", x: x + CELL / 2, y: y + CELL / 2 }, KINDS[link.kind].sign));
    }
    return group;
  }

  return matrix;
})();
