"use strict";
/* What both ways to draw an aligned pair share; curves.js has words with curves between them, matrix.js the matrix.

   A pair is {source: [word], target: [word], links: [{i, j, kind, confidence}]}; `kind` is a key of KINDS, `confidence`
   a probability or null. What is drawn is {element, place(), light(links), ...}: put the element into the page, then
   call place(), and again whenever its width changes. Words only ever become text nodes. */
const JacanaDraw = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = {
    link: { name: "link", sign: "" },
    hit: { name: "correct", sign: "✓" },
    miss: { name: "missed", sign: "○" },
    invention: { name: "spurious", sign: "✕" },
    aside: { name: "possible, not counted", sign: "◇" },
    // Without gold: what all systems have, what one of two has, and what some of several have.
    both: { name: "in both", sign: "" },
    first: { name: "A only", sign: "A" },
    second: { name: "B only", sign: "B" },
    some: { name: "not in all", sign: "△" },
  };
  const SIGNED = new Set(["miss", "invention", "aside", "first", "second", "some"]);
  const FAINTEST = 0.25;

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

  /* The direction that a token is written in, by its first letter; null for figures and punctuation. */
  const TURNED = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
  function written(token) {
    const letter = /\p{L}/u.exec(token);
    return letter && (TURNED.test(letter[0]) ? "rtl" : "ltr");
  }

  /* The direction of a sentence: that of most of its words. */
  function direction(tokens) {
    const found = tokens.map(written);
    const number = (dir) => found.filter((one) => one === dir).length;
    return number("rtl") > number("ltr") ? "rtl" : "ltr";
  }

  /* The tokens as runs of one direction; what has none goes with its neighbours if they agree, or with the sentence. */
  function runs(tokens) {
    const base = direction(tokens);
    const found = tokens.map(written);
    const last = (from, by) => {
      for (let k = from; k >= 0 && k < found.length; k += by) if (found[k]) return found[k];
      return base;
    };
    const parts = [];
    tokens.forEach((_, k) => {
      const dir = found[k] || (last(k, -1) === last(k, 1) ? last(k, 1) : base);
      const part = parts[parts.length - 1];
      if (part && part.dir === dir) part.to = k + 1; else parts.push({ dir, from: k, to: k + 1 });
    });
    return parts;
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

  return { KINDS, SIGNED, make, draw, opacity, wordsOf, around, light, direction, runs };
})();
