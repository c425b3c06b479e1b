"use strict";
/* Draws a pair as words with curves between them: see draw.js.

   The browser lays out the words, on as many lines as they need. A curve passes the lines that lie between its words
   through gaps between other words, never through a word. Links of a phrase (neighbours on both sides) share gaps, and
   in long sentences one trunk. */
JacanaDraw.arcs = (() => {
  const { KINDS, SIGNED, make, draw, opacity, wordsOf, around, light, direction, runs } = JacanaDraw;
  const LONG = 20; // words of a sentence whose phrases are bundled
  const PHRASE = 6; // links of a bundle
  const MARGIN = 22; // pixels beside a line that curves may use
  const SPREAD = 2.6; // pixels between curves of a bundle
  const GATHER = 0.3; // of the way between the sentences, at either end

  function sentence(tokens, side) {
    const line = make("p", { class: `words ${side}`, dir: direction(tokens) });
    const words = tokens.map((token) => make("span", { class: "word" }, token));
    for (const { dir, from, to } of runs(tokens)) {
      const part = dir === line.dir ? line : make("span", { dir });
      if (from) line.append(" ");
      words.slice(from, to).forEach((word, k) => part.append(...(k ? [" ", word] : [word])));
      if (part !== line) line.append(part);
    }
    if (!tokens.length) line.append(make("span", { class: "nothing" }, "(no words)"));
    return { line, words };
  }

  function arcs(pair) {
    const source = sentence(pair.source, "source");
    const target = sentence(pair.target, "target");
    const canvas = draw("svg", { class: "curves", "aria-hidden": "true" });
    const element = make("div", { class: "arcs" }, source.line, target.line, canvas);
    const drawn = pair.links.map((link) => curve(link));
    canvas.append(...drawn.map((one) => one.group));
    const phrases = phrasesOf(pair.links);
    const long = Math.max(pair.source.length, pair.target.length) >= LONG;
    element.classList.toggle("long", long);

    function measure() {
      const box = element.getBoundingClientRect();
      const boxes = ({ words }) => words.map((word) => {
        const at = word.getBoundingClientRect();
        return { left: at.left - box.left, right: at.right - box.left, top: at.top - box.top, bottom: at.bottom - box.top };
      });
      return { box, above: boxes(source), below: boxes(target) };
    }

    function settle({ box, above, below }) {
      canvas.setAttribute("viewBox", `0 0 ${Math.max(box.width, 1)} ${Math.max(box.height, 1)}`);
      routes(pair.links, phrases, linesOf(above, box.width), linesOf(below, box.width), above, below, long)
        .forEach((route, k) => drawn[k].bend(route));
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
      reveal: () => {},
      zoom: () => {},
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
    /* A route is points (x, y) and the place of its sign. Between points a curve leaves and arrives vertically. */
    function bend({ points, sign: [x, y] }) {
      const place = (...numbers) => numbers.map((one) => one.toFixed(1)).join(",");
      const steps = points.slice(1).map(([u, v], k) => {
        const [a, b] = points[k];
        if (a === u) return `L${place(u, v)}`;
        const pull = (v - b) * 0.5;
        return `C${place(a, b + pull)} ${place(u, v - pull)} ${place(u, v)}`;
      });
      const d = `M${place(...points[0])} ${steps.join(" ")}`;
      path.setAttribute("d", d);
      reach.setAttribute("d", d);
      if (sign) {
        sign.setAttribute("x", x.toFixed(1));
        sign.setAttribute("y", y.toFixed(1));
      }
    }
    return { group, line: path, bend };
  }

  /* Groups of links of a kind whose words are neighbours on both sides, in the same order throughout. */
  function phrasesOf(links) {
    const phrases = [];
    links.forEach((link, k) => {
      const fits = phrases.find((phrase) => {
        const last = links[phrase[phrase.length - 1]];
        const [di, dj] = [link.i - last.i, link.j - last.j];
        const way = phrase.length > 1 ? Math.sign(last.j - links[phrase[0]].j) : 0;
        return phrase.length < PHRASE && last.kind === link.kind && di <= 1 && Math.abs(dj) <= 1 && (!way || !dj || Math.sign(dj) === way);
      });
      if (fits) fits.push(k); else phrases.push([k]);
    });
    return phrases;
  }

  /* The lines that words stand on, from top to bottom, with the gaps that curves may pass. */
  function linesOf(boxes, width) {
    const lines = [];
    boxes.forEach((box, k) => {
      let line = lines.find((one) => box.top < one.bottom && box.bottom > one.top);
      if (!line) lines.push((line = { top: box.top, bottom: box.bottom, words: [] }));
      line.top = Math.min(line.top, box.top);
      line.bottom = Math.max(line.bottom, box.bottom);
      line.words.push(k);
    });
    lines.sort((a, b) => a.top - b.top);
    for (const line of lines) {
      const spans = line.words.map((k) => boxes[k]).sort((a, b) => a.left - b.left);
      const edges = [Math.max(spans[0].left - MARGIN, 0), ...spans.flatMap(({ left, right }) => [left, right]),
        Math.min(spans[spans.length - 1].right + MARGIN, width)];
      line.gaps = [];
      for (let k = 0; k < edges.length; k += 2) {
        if (edges[k + 1] > edges[k]) line.gaps.push({ left: edges[k], right: edges[k + 1], used: [] });
      }
    }
    return lines;
  }

  const middle = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const extent = (boxes) => Math.max(...boxes.map(({ right }) => right)) - Math.min(...boxes.map(({ left }) => left));
  const center = ({ left, right }) => (left + right) / 2;

  /* Points that each link passes. */
  function routes(links, phrases, upper, lower, above, below, long) {
    const lineOf = (lines, k) => lines.findIndex((line) => line.words.includes(k));
    const bundles = phrases.flatMap((phrase) => apart(phrase, (k) => `${lineOf(upper, links[k].i)} ${lineOf(lower, links[k].j)}`));
    const passing = bundles.map((bundle) => {
      const [from, to] = [links[bundle[0]].i, links[bundle[0]].j];
      const start = [middle(bundle.map((k) => center(above[links[k].i]))), above[from].bottom];
      const end = [middle(bundle.map((k) => center(below[links[k].j]))), below[to].top];
      const crossed = [...upper.slice(lineOf(upper, from) + 1), ...lower.slice(0, lineOf(lower, to))];
      const gaps = crossed.map((line) => {
        const share = (line.top - start[1]) / Math.max(end[1] - start[1], 1);
        return { line, gap: nearest(line.gaps, start[0] + share * (end[0] - start[0])) };
      });
      gaps.forEach(({ gap }) => gap && gap.used.push(...bundle));
      const first = gaps.filter(({ line, gap }) => gap && upper.includes(line)).length;
      // Those that go almost straight down are told apart better without a trunk.
      const width = Math.max(extent(bundle.map((k) => above[links[k].i])), extent(bundle.map((k) => below[links[k].j])));
      const pinched = long && bundle.length > 1 && Math.abs(start[0] - end[0]) > 0.6 * width;
      return { bundle, start, end, gaps, first, pinched };
    });
    const out = [];
    for (const way of passing) for (const [rank, k] of way.bundle.entries()) out[k] = route(links[k], k, rank, way, above, below);
    return out;
  }

  function apart(phrase, place) {
    const groups = new Map();
    for (const k of phrase) groups.set(place(k), [...(groups.get(place(k)) || []), k]);
    return [...groups.values()];
  }

  /* The gap that is nearest; those that many curves pass are a little farther. */
  function nearest(gaps, x) {
    const cost = (gap) => Math.max(gap.left - x, x - gap.right, 0) + (8 * gap.used.length) / (gap.right - gap.left);
    return gaps.reduce((best, gap) => (best === null || cost(gap) < cost(best) ? gap : best), null);
  }

  function route({ i, j }, k, rank, { bundle, start, end, gaps, first, pinched }, above, below) {
    const through = gaps.flatMap(({ line, gap }) => {
      if (!gap) return [];
      const x = gap.left + ((gap.used.indexOf(k) + 1) / (gap.used.length + 1)) * (gap.right - gap.left);
      return [[x, line.top], [x, line.bottom]];
    });
    const points = [[center(above[i]), above[i].bottom + 1], ...through, [center(below[j]), below[j].top - 1]];
    const at = 2 * first; // here the way between the sentences begins
    const [[x, y], [u, v]] = [points[at], points[at + 1]];
    if (!pinched) return { points, sign: [(x + u) / 2, (y + v) / 2] };
    // Where they pass gaps they are together already.
    const beside = (rank - (bundle.length - 1) / 2) * SPREAD;
    const gathered = first ? [] : [[start[0] + beside, y + GATHER * (v - y)]];
    const parted = first < gaps.length ? [] : [[end[0] + beside, v - GATHER * (v - y)]];
    const [[a, b], [c, d]] = [points[at], [...gathered, ...parted][0] || points[at + 1]];
    return { points: points.toSpliced(at + 1, 0, ...gathered, ...parted), sign: [(a + c) / 2, (b + d) / 2] };
  }

  return arcs;
})();
