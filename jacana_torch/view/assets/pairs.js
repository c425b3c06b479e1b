"use strict";
/* The page's data: what Python packed (see pages.py) as pairs; what their links are, counts and scores.

   `compared` says what with what: {gold: whether gold is known, systems: how many, counting: "sure" or "all"}. A panel
   is the number of a system, or TOGETHER for two systems without gold, which share one drawing. */
const JacanaPairs = (() => {
  const SURE = 1, ANY = 3, BITS = 2; // of gold; those of system k are BITS * (k + 1) further
  const TOGETHER = -1;
  const NAMES = ["hit", "miss", "invention", "aside", "link", "both", "first", "second", "some"];
  const [HIT, MISS, INVENTION, , , BOTH, FIRST, SECOND, SOME] = NAMES.keys();

  const says = (bits, system, mask) => ((bits >> (BITS * (system + 1))) & mask) !== 0;
  const saysGold = (bits, mask) => (bits & mask) !== 0;
  const split = (side) => (typeof side === "string" ? (side === "" ? [] : side.split(" ")) : side);
  const joined = (side) => (typeof side === "string" ? side : side.join(" "));
  function length(side) {
    if (typeof side !== "string") return side.length;
    let words = side === "" ? 0 : 1;
    for (let at = side.indexOf(" "); at >= 0; at = side.indexOf(" ", at + 1)) words++;
    return words;
  }

  /* Only what someone looks at is unpacked: ten thousand pairs are read at once. */
  class Pair {
    constructor(record, position, stride) {
      this.id = record[0] === 0 ? null : String(record[0]);
      this.packed = record;
      this.position = position;
      this.stride = stride;
      this.panels = null;
      this.differ = this.misses = this.inventions = this.errors = 0;
      this.f1 = this.lowest = 1;
      this.exact = true;
      this.sizes = null;
      this.lower = null;
    }

    get source() { return split(this.packed[1]); }
    get target() { return split(this.packed[2]); }
    get linked() { return this.packed[3].length > 0; }
    get lengths() { return (this.sizes ??= [length(this.packed[1]), length(this.packed[2])]); }
    get words() { return this.lengths[0] + this.lengths[1]; }
    get longest() { return Math.max(this.lengths[0], this.lengths[1]); }
    get text() { return (this.lower ??= `${joined(this.packed[1])}\n${joined(this.packed[2])}\n${this.id || ""}`.toLowerCase()); }
    letters(side) { return typeof this.packed[1 + side] === "string" ? this.packed[1 + side].length : joined(this.packed[1 + side]).length; }

    /* The links that a panel draws, in reading order. */
    links(panel, compared) {
      const [, , , flat, ...whys] = this.packed;
      const links = [];
      for (let at = 0; at < flat.length; at += this.stride) {
        const [i, j, bits, ...probabilities] = flat.slice(at, at + this.stride);
        const kind = kindOf(bits, panel, compared);
        if (kind === null) continue;
        const known = probabilities.map((probability) => (probability < 0 ? null : probability / 1000));
        const because = whys.map((why) => why[at / this.stride] || null);
        links.push({ i, j, says: bits, kind, known, confidence: confidenceOf(known, kind, panel), whys: because });
      }
      return links;
    }

    /* How many links of a kind a panel has. */
    count(panel, kind) { return this.panels.counts[this.panels.start + Math.max(panel, 0) * NAMES.length + NAMES.indexOf(kind)]; }
    score(panel) { return this.panels.scores[this.panels.start / NAMES.length + Math.max(panel, 0)]; }
  }

  function unpack(payload) {
    const stride = 3 + payload.files.length - (payload.gold ? 1 : 0);
    return payload.pairs.map((record, position) => new Pair(record, position, stride));
  }

  function confidenceOf(known, kind, panel) {
    if (panel !== TOGETHER) return known[panel];
    const [one, other] = known;
    if (kind === "both") return one === null ? other : other === null ? one : Math.min(one, other);
    return kind === "second" ? other : one;
  }

  /* What a link is in a panel; null if the panel does not have it. */
  function kindOf(bits, panel, { gold, systems, counting }) {
    const mask = counting === "all" ? ANY : SURE;
    if (panel === TOGETHER) {
      const [one, other] = [says(bits, 0, mask), says(bits, 1, mask)];
      return one ? (other ? "both" : "first") : other ? "second" : "aside";
    }
    const found = says(bits, panel, mask);
    if (gold) {
      if (!saysGold(bits, ANY) && !says(bits, panel, ANY)) return null;
      return saysGold(bits, mask) ? (found ? "hit" : "miss") : found ? "invention" : "aside";
    }
    if (!found) return says(bits, panel, ANY) ? "aside" : null;
    if (systems === 1) return "link";
    for (let k = 0; k < systems; k++) if (!says(bits, k, mask)) return "some";
    return "both";
  }

  /* Which panels are drawn: `chosen` is a system, or "" for all. */
  function panelsOf({ gold, systems }, chosen) {
    if (systems === 2 && !gold) return [TOGETHER];
    return chosen === "" ? Array.from({ length: systems }, (_, k) => k) : [Number(chosen)];
  }

  const judgedPanels = ({ gold, systems }) => panelsOf({ gold, systems }, "");

  /* Counts what each system has right, and where systems differ. */
  function judge(pairs, compared) {
    const { systems, counting } = compared;
    const mask = counting === "all" ? ANY : SURE;
    const panels = judgedPanels(compared);
    const counts = new Uint16Array(pairs.length * panels.length * NAMES.length);
    const scores = new Array(pairs.length * panels.length);
    const meanings = new Map(); // of bits: there are few
    const meaning = (bits) => {
      const having = Array.from({ length: systems }, (_, k) => says(bits, k, mask));
      const kinds = panels.map((panel) => NAMES.indexOf(kindOf(bits, panel, compared)));
      const all = { having, kinds, differ: having.includes(true) && having.includes(false) ? 1 : 0 };
      meanings.set(bits, all);
      return all;
    };
    const lowest = new Int16Array(systems);
    pairs.forEach((pair, position) => {
      const flat = pair.packed[3], { stride } = pair;
      const start = position * panels.length * NAMES.length;
      pair.differ = 0;
      lowest.fill(1000);
      for (let at = 0; at < flat.length; at += stride) {
        const { having, kinds, differ } = meanings.get(flat[at + 2]) || meaning(flat[at + 2]);
        pair.differ += differ;
        for (let k = 0; k < systems; k++) {
          const probability = flat[at + 3 + k];
          if (having[k] && probability >= 0 && probability < lowest[k]) lowest[k] = probability;
        }
        for (let p = 0; p < kinds.length; p++) if (kinds[p] >= 0) counts[start + p * NAMES.length + kinds[p]]++;
      }
      pair.panels = { counts, scores, start };
      for (let p = 0; p < panels.length; p++) {
        const least = panels[p] === TOGETHER ? Math.min(lowest[0], lowest[1]) : lowest[p];
        scores[position * panels.length + p] = scored(counts, start + p * NAMES.length, least / 1000);
      }
    });
  }

  /* Sums up what is shown of each pair: one panel, or several side by side. */
  function choose(pairs, compared, chosen) {
    const drawn = panelsOf(compared, chosen);
    for (const pair of pairs) {
      pair.misses = pair.inventions = pair.f1 = 0;
      pair.exact = true;
      pair.lowest = 1;
      for (const panel of drawn) {
        const one = pair.score(panel);
        pair.misses += one.misses;
        pair.inventions += one.inventions;
        pair.f1 += one.f1 / drawn.length;
        pair.exact &&= one.exact;
        pair.lowest = Math.min(pair.lowest, one.lowest);
      }
      pair.errors = compared.gold ? pair.misses + pair.inventions : pair.differ;
    }
  }

  const part = (some, all) => (all ? some / all : 0);
  const harmonic = (p, r) => (p + r ? (2 * p * r) / (p + r) : 0);

  /* Two systems without gold agree as much as one scores against the other. */
  function scored(counts, at, lowest) {
    const right = counts[at + HIT] + counts[at + BOTH];
    const misses = counts[at + MISS] + counts[at + FIRST];
    const inventions = counts[at + INVENTION] + counts[at + SECOND] + counts[at + SOME];
    const precision = part(right, right + inventions);
    const recall = part(right, right + misses);
    // Where there is nothing to find and nothing was found, nothing is wrong; averages count it as evaluate does.
    const f1 = right + misses + inventions ? harmonic(precision, recall) : 1;
    return { misses, inventions, precision, recall, f1, exact: misses + inventions === 0, lowest };
  }

  /* Macro figures, as `jacana-torch evaluate` prints them, of each panel that was judged; and totals. */
  function summary(pairs, compared) {
    return judgedPanels(compared).map((panel) => {
      let [precision, recall, exact] = [0, 0, 0];
      for (const pair of pairs) {
        const one = pair.score(panel);
        precision += one.precision;
        recall += one.recall;
        exact += one.exact ? 1 : 0;
      }
      const number = pairs.length || 1;
      const total = (kind) => pairs.reduce((sum, pair) => sum + pair.count(panel, kind), 0);
      const means = [precision / number, recall / number];
      return { precision: means[0], recall: means[1], f1: harmonic(...means), exact: exact / number, total };
    });
  }

  const FILTERS = {
    all: () => true,
    differ: (pair) => pair.differ > 0,
    agree: (pair) => pair.differ === 0,
    first: (pair) => pair.count(TOGETHER, "first") > 0,
    second: (pair) => pair.count(TOGETHER, "second") > 0,
    errors: (pair) => pair.errors > 0,
    misses: (pair) => pair.misses > 0,
    inventions: (pair) => pair.inventions > 0,
    exact: (pair) => pair.exact,
    unsure: (pair) => pair.lowest < 0.5,
    none: (pair) => !pair.linked,
  };
  const KEYS = {
    position: (pair) => pair.position,
    differ: (pair) => pair.differ,
    f1: (pair) => pair.f1,
    errors: (pair) => pair.errors,
    misses: (pair) => pair.misses,
    inventions: (pair) => pair.inventions,
    words: (pair) => pair.words,
    confidence: (pair) => pair.lowest,
  };

  /* Filtered and sorted; equals stay in the order of the file. */
  function select(pairs, { filter, sort, descending, query }) {
    const wanted = query.trim().toLowerCase();
    const kept = pairs.filter((pair) => FILTERS[filter](pair) && (!wanted || pair.text.includes(wanted)));
    if (sort === "position") return descending ? kept.reverse() : kept;
    const key = KEYS[sort];
    const way = descending ? -1 : 1;
    const keys = Float64Array.from(kept, key);
    const order = Uint32Array.from(kept.keys()).sort((a, b) => way * (keys[a] - keys[b]) || a - b);
    return Array.from(order, (k) => kept[k]);
  }

  return { unpack, judge, choose, summary, select, panelsOf, says, saysGold, FILTERS, KEYS, TOGETHER, SURE, ANY };
})();
