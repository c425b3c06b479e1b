"use strict";
/* Draws one aligned pair as words with curves between them, or as a matrix.

   A pair is {source: [word], target: [word], links: [{i, j, kind, confidence}]}; `kind` is a key of KINDS, `confidence`
   a probability or null. What is drawn is {element, place(), light(links)}: put the element into the page, then call
   place(), and again whenever its width changes. Words only ever become text nodes. */
const JacanaDraw = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = {
    link: { name: "link", sign: "" },
    hit: { name: "hit", sign: "✓" },
    miss: { name: "missed", sign: "○" },
    invention: { name: "invented", sign: "✕" },
    aside: { name: "possible, not counted", sign: "◇" },
  };
  const SIGNED = new Set(["miss", "invention", "aside"]);
  const FAINTEST = 0.25;
  const CELL = 20;

  /* An element with attributes and children; strings become text. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    return furnish(element, attributes, children);
  }

  function draw(name, attributes = {}, ...children) {
    return furnish(document.createElementNS(SVG, name), attributes, children);
  }

  function furnish(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  /* A link that was not made is improbable, which is what is wrong with it: it must be seen. */
  const opacity = (link) => (link.confidence === null || link.kind === "miss" || link.kind === "aside"
    ? 1 : FAINTEST + (1 - FAINTEST) * Math.min(Math.max(link.confidence, 0), 1));

  function sentence(tokens, side) {
    const line = make("p", { class: `words ${side}` });
    const words = tokens.map((token) => make("span", { class: "word" }, token));
    words.forEach((word, k) => line.append(...(k ? [" ", word] : [word])));
    if (!tokens.length) line.append(make("span", { class: "nothing" }, "(no words)"));
    return { line, words };
  }

  /* Curves over words that the browser itself has laid out, on as many lines as they need. */
  function arcs(pair) {
    const source = sentence(pair.source, "source");
    const target = sentence(pair.target, "target");
    const canvas = draw("svg", { class: "curves", "aria-hidden": "true" });
    const element = make("div", { class: "arcs" }, source.line, target.line, canvas);
    const drawn = pair.links.map((link) => curve(link));
    canvas.append(...drawn.map((one) => one.group));

    function measure() {
      const box = element.getBoundingClientRect();
      const spot = (word, edge) => {
        const at = word.getBoundingClientRect();
        return [(at.left + at.right) / 2 - box.left, at[edge] - box.top];
      };
      const from = source.words.map((word) => spot(word, "bottom"));
      const to = target.words.map((word) => spot(word, "top"));
      return { box, ends: pair.links.map(({ i, j }) => [...from[i], ...to[j]]) };
    }

    function settle({ box, ends }) {
      canvas.setAttribute("viewBox", `0 0 ${Math.max(box.width, 1)} ${Math.max(box.height, 1)}`);
      drawn.forEach((one, k) => one.bend(...ends[k]));
    }

    const marked = wordsOf(pair, source.words, target.words);
    return {
      element,
      measure,
      settle,
      place: () => settle(measure()),
      parts: drawn.map((one) => one.group),
      words: [source.words, target.words],
      light: (chosen) => light(element, drawn.map((one) => one.group), marked, chosen),
      reach: (k) => around([...marked[k], drawn[k].line]),
    };
  }

  function curve(link) {
    const path = draw("path", { class: "line" });
    const reach = draw("path", { class: "reach" });
    const group = draw("g", { class: `part ${link.kind}` }, reach, path);
    path.setAttribute("stroke-opacity", opacity(link).toFixed(3));
    let sign = null;
    if (SIGNED.has(link.kind)) {
      sign = draw("text", { class: "sign" }, KINDS[link.kind].sign);
      group.append(sign);
    }
    function bend(x, y, u, v) {
      const pull = Math.max((v - y) * 0.5, 12);
      const d = `M${x.toFixed(1)},${(y + 1).toFixed(1)} C${x.toFixed(1)},${(y + pull).toFixed(1)} ` +
        `${u.toFixed(1)},${(v - pull).toFixed(1)} ${u.toFixed(1)},${(v - 1).toFixed(1)}`;
      path.setAttribute("d", d);
      reach.setAttribute("d", d);
      if (sign) {
        sign.setAttribute("x", ((x + u) / 2).toFixed(1));
        sign.setAttribute("y", ((y + v) / 2).toFixed(1));
      }
    }
    return { group, line: path, bend };
  }

  /* For each link, the words it joins. */
  function wordsOf(pair, above, below) {
    return pair.links.map(({ i, j }) => [above[i], below[j]]);
  }

  /* What a link takes up in the window. */
  function around(elements) {
    const boxes = elements.map((one) => one.getBoundingClientRect());
    const of = (pick, edge) => pick(...boxes.map((box) => box[edge]));
    return { left: of(Math.min, "left"), right: of(Math.max, "right"), top: of(Math.min, "top"), bottom: of(Math.max, "bottom") };
  }

  function light(element, groups, marked, chosen) {
    const set = new Set(chosen);
    element.classList.toggle("lit", set.size > 0);
    groups.forEach((group, k) => group.classList.toggle("on", set.has(k)));
    for (const words of marked) for (const word of words) word.classList.remove("on");
    for (const k of set) for (const word of marked[k]) word.classList.add("on");
  }

  let pen = null;
  function textWidth(text) {
    if (!pen) {
      pen = document.createElement("canvas").getContext("2d");
      pen.font = "13px system-ui, sans-serif";
    }
    return pen.measureText(text).width;
  }

  /* The longer sentence across, where pages have room; its name, and the other's, stand in the corner. */
  function matrix(pair) {
    const turned = pair.source.length > pair.target.length;
    const [down, across] = turned ? [pair.target, pair.source] : [pair.source, pair.target];
    const widest = (tokens) => Math.max(54, ...tokens.map(textWidth));
    const left = widest(down) + 12;
    const lean = Math.SQRT1_2;
    const top = widest(across) * lean + 18;
    const width = left + across.length * CELL;
    const height = top + down.length * CELL;
    const over = Math.max(0, ...across.map((token, k) => (k + 1 - across.length) * CELL + textWidth(token) * lean)) + 6;
    const canvas = draw("svg", {
      class: "grid",
      "aria-hidden": "true",
      viewBox: `0 0 ${(width + over).toFixed(0)} ${(height + 2).toFixed(0)}`,
      width: (width + over).toFixed(0),
      height: (height + 2).toFixed(0),
    });
    const rows = down.map((token, i) =>
      draw("text", { class: "label row", x: left - 8, y: top + (i + 0.5) * CELL }, token));
    const columns = across.map((token, j) => {
      const [x, y] = [left + (j + 0.5) * CELL, top - 6];
      return draw("text", { class: "label column", x, y, transform: `rotate(-45 ${x} ${y})` }, token);
    });
    const names = turned ? ["target ↓", "source →"] : ["source ↓", "target →"];
    const corner = names.map((name, k) => draw("text", { class: "label row side", x: left - 8, y: top - 8 - 15 * k }, name));
    canvas.append(ruling(left, top, down.length, across.length), ...corner, ...rows, ...columns);
    const place = ({ i, j }) => (turned ? [left + i * CELL, top + j * CELL] : [left + j * CELL, top + i * CELL]);
    const groups = pair.links.map((link) => cell(link, ...place(link)));
    canvas.append(...groups);
    const element = make("div", { class: "matrix" }, canvas);
    const words = turned ? [columns, rows] : [rows, columns];
    const marked = wordsOf(pair, ...words);
    return {
      element,
      measure: () => null,
      settle: () => {},
      place: () => {},
      parts: groups,
      words,
      light: (chosen) => light(element, groups, marked, chosen),
      reach: (k) => around([groups[k]]),
    };
  }

  function ruling(left, top, rows, columns) {
    const lines = [];
    for (let i = 0; i <= rows; i++) lines.push(`M${left},${top + i * CELL}h${columns * CELL}`);
    for (let j = 0; j <= columns; j++) lines.push(`M${left + j * CELL},${top}v${rows * CELL}`);
    return draw("path", { class: "ruling", d: lines.join("") });
  }

  function cell(link, x, y) {
    const group = draw("g", { class: `part ${link.kind}` });
    const reach = draw("rect", { class: "reach", x, y, width: CELL, height: CELL });
    const box = draw("rect", { class: "cell", x: x + 3, y: y + 3, width: CELL - 6, height: CELL - 6, rx: 2 });
    const filled = link.kind === "link" || link.kind === "hit";
    box.setAttribute(filled ? "fill-opacity" : "stroke-opacity", opacity(link).toFixed(3));
    group.append(reach, box);
    if (SIGNED.has(link.kind)) {
      group.append(draw("text", { class: "sign", x: x + CELL / 2, y: y + CELL / 2 }, KINDS[link.kind].sign));
    }
    return group;
  }

  return { KINDS, arcs, matrix, make, draw };
})();
