"use strict";
/* What a link has to say: its words, what it is, who has it, how probable it is, and why. */
const JacanaAbout = (() => {
  const { KINDS, make } = JacanaDraw;
  const { says, saysGold, SURE, ANY, TOGETHER } = JacanaPairs;
  const { percent } = JacanaList;

  /* A function of a pair, a link and its panel; `nameOf` names kinds. */
  function teller(data, nameOf) {
    const names = data.gold ? data.files.slice(1) : data.files; // of systems
    const several = names.length > 1;
    const together = several && names.length === 2 && !data.gold;

    function about(pair, link, panel) {
      const parts = [make("p", { class: "joined" }, `${pair.source[link.i]} – ${pair.target[link.j]}`)];
      parts.push(make("p", {}, verdict(link, panel)));
      for (const [k, probability] of link.known.entries()) {
        if (probability !== null && (panel === TOGETHER || panel === k)) parts.push(...meter(probability, k));
      }
      for (const [k, why] of link.whys.entries()) {
        if (!why) continue;
        if (several) parts.push(make("p", { class: "by" }, data.explained[k]));
        parts.push(...reasons(why));
      }
      return parts;
    }

    function meter(probability, k) {
      const fill = make("i");
      fill.style.width = `${100 * probability}%`;
      const by = together ? ` by ${names[k]}` : "";
      return [make("span", { class: "meter" }, fill), make("p", {}, `posterior ${percent(probability)}${by}`)];
    }

    function verdict(link, panel) {
      const said = `${KINDS[link.kind].sign} ${nameOf(link.kind)}`.trim();
      if (!data.gold) return panel !== TOGETHER && several ? `${said}: ${having(link)}` : said;
      const possible = saysGold(link.says, ANY) && !saysGold(link.says, SURE) ? ` (possible in ${data.files[0]})` : "";
      if (several) return `${said}${possible}; in ${having(link) || "no system"}`;
      const where = { miss: `: in ${data.files[0]} alone`, invention: `: in ${names[0]} alone` }[link.kind] || "";
      return said + (link.kind === "invention" && possible ? possible : where);
    }

    const having = (link) => names.filter((_, k) => says(link.says, k, ANY)).join(", ");

    /* why: [sentence, verdict, group, amount, group, amount, ...], amounts in hundredths. */
    function reasons(why) {
      const [sentence, said, ...groups] = why;
      const rows = [];
      let total = 0;
      for (let k = 0; k < groups.length; k += 2) {
        total += groups[k + 1] / 100;
        rows.push(row(data.groups[groups[k]], groups[k + 1] / 100));
      }
      const parts = [make("p", { class: "reason" }, data.sentences[sentence])];
      if (data.verdicts[said]) parts.push(make("p", {}, data.verdicts[said]));
      if (rows.length) {
        const sum = make("tfoot", {}, row("in all, in log-odds", total));
        parts.push(make("table", {}, make("tbody", {}, ...rows), sum));
      }
      return parts;
    }

    const row = (title, amount) => make("tr", {}, make("td", {}, title), make("td", {}, signed(amount)));
    const signed = (amount) => (amount < 0 ? "−" : "+") + Math.abs(amount).toFixed(2);

    return about;
  }

  return { teller };
})();
