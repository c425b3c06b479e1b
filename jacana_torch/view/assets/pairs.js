"use strict";
/* The page's data: what Python packed (see payload.py) into pairs with links of a kind, counts and scores. */
const JacanaPairs = (() => {
  const GOLD_SURE = 1, GOLD_POSSIBLE = 2, FOUND_SURE = 4, FOUND_POSSIBLE = 8;
  const STRIDE = 4;

  function unpack(payload) {
    const words = (side) => (typeof side === "string" ? (side === "" ? [] : side.split(" ")) : side);
    return payload.pairs.map(([id, source, target, flat, why], position) => {
      const links = [];
      for (let k = 0; k < flat.length; k += STRIDE) {
        const [i, j, says, chance] = flat.slice(k, k + STRIDE);
        const because = why ? why[k / STRIDE] : null;
        links.push({ i, j, says, confidence: chance < 0 ? null : chance / 1000, why: because || null, kind: "link" });
      }
      const pair = { position, id: id === 0 ? null : String(id), source: words(source), target: words(target), links };
      pair.words = pair.source.length + pair.target.length;
      pair.text = `${pair.source.join(" ")}\n${pair.target.join(" ")}\n${pair.id || ""}`.toLowerCase();
      return pair;
    });
  }

  /* Names what each link is, and counts. `counting` is "sure" or "all", as `jacana-torch evaluate --links`. */
  function judge(pairs, comparing, counting) {
    const gold = counting === "all" ? GOLD_SURE | GOLD_POSSIBLE : GOLD_SURE;
    const found = counting === "all" ? FOUND_SURE | FOUND_POSSIBLE : FOUND_SURE;
    for (const pair of pairs) {
      pair.count = { hit: 0, miss: 0, invention: 0, aside: 0, link: 0 };
      for (const link of pair.links) {
        const right = (link.says & gold) !== 0;
        const guessed = (link.says & found) !== 0;
        if (comparing) link.kind = right ? (guessed ? "hit" : "miss") : guessed ? "invention" : "aside";
        else link.kind = guessed ? "link" : "aside";
        pair.count[link.kind]++;
      }
      Object.assign(pair, scored(pair.count));
      const known = pair.links.filter((link) => link.confidence !== null && link.kind !== "miss" && link.kind !== "aside");
      pair.lowest = known.length ? Math.min(...known.map((link) => link.confidence)) : 1;
    }
  }

  const part = (some, all) => (all ? some / all : 0);
  const harmonic = (p, r) => (p + r ? (2 * p * r) / (p + r) : 0);

  function scored({ hit, miss, invention }) {
    const precision = part(hit, hit + invention);
    const recall = part(hit, hit + miss);
    const errors = miss + invention;
    // Where there is nothing to find and nothing was found, nothing is wrong; averages count it as evaluate does.
    const f1 = hit + errors ? harmonic(precision, recall) : 1;
    return { precision, recall, f1, errors, exact: errors === 0 };
  }

  /* Macro figures, as `jacana-torch evaluate` prints them. */
  function summary(pairs) {
    const mean = (value) => part(pairs.reduce((sum, pair) => sum + value(pair), 0), pairs.length);
    const precision = mean((pair) => pair.precision);
    const recall = mean((pair) => pair.recall);
    return {
      precision, recall, f1: harmonic(precision, recall), exact: mean((pair) => (pair.exact ? 1 : 0)),
      hit: mean((pair) => pair.count.hit) * pairs.length,
      miss: mean((pair) => pair.count.miss) * pairs.length,
      invention: mean((pair) => pair.count.invention) * pairs.length,
    };
  }

  const FILTERS = {
    all: () => true,
    errors: (pair) => pair.errors > 0,
    misses: (pair) => pair.count.miss > 0,
    inventions: (pair) => pair.count.invention > 0,
    exact: (pair) => pair.exact,
    unsure: (pair) => pair.lowest < 0.5,
    none: (pair) => pair.links.length === 0,
  };
  const KEYS = {
    position: (pair) => pair.position,
    f1: (pair) => pair.f1,
    errors: (pair) => pair.errors,
    misses: (pair) => pair.count.miss,
    inventions: (pair) => pair.count.invention,
    words: (pair) => pair.words,
    confidence: (pair) => pair.lowest,
  };

  /* Filtered and sorted; equals stay in the order of the file. */
  function select(pairs, { filter, sort, descending, query }) {
    const wanted = query.trim().toLowerCase();
    const kept = pairs.filter((pair) => FILTERS[filter](pair) && (!wanted || pair.text.includes(wanted)));
    const key = KEYS[sort];
    const way = descending ? -1 : 1;
    return kept.sort((a, b) => way * (key(a) - key(b)) || a.position - b.position);
  }

  return { unpack, judge, summary, select, FILTERS, KEYS, GOLD_SURE, GOLD_POSSIBLE, FOUND_SURE, FOUND_POSSIBLE };
})();
