"use strict";
/* Turns the answer of /explain about one link, present or absent, into an element. Text becomes text nodes only. */
const JacanaWhy = (() => {
  const { make } = JacanaDraw;
  const SHOWN = 8;

  const percent = (share) =>
    share === null || share === undefined ? "" : `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 2 : 1)} %`;
  const figure = (value) => (Math.abs(value) < 0.005 ? "0" : value.toFixed(2)).replace("-", "−");
  const quoted = (word) => (word === null ? "no link" : `“${word}”`);

  /* One sentence and a bar for each group; what the directions compared, and single features, on request. */
  function explained(answer, link) {
    const [source, target] = [answer.source[link.source], answer.target[link.target]];
    const verdict = make(
      "p",
      { class: "verdict" },
      make("strong", {}, quoted(source)),
      link.linked ? " is linked to " : " is not linked to ",
      make("strong", {}, quoted(target)),
      link.verdict ? `: ${link.verdict}.` : ".",
      " ",
      make("span", { class: "share" }, link.confidence === null ? "" : `Probability ${percent(link.confidence)}.`),
    );
    const box = make("div", {});
    if (link.reason) box.append(make("p", { class: "reason" }, link.reason));
    box.append(verdict);
    if (answer.note) box.append(make("p", { class: "soft" }, answer.note));
    if (link.groups.length) box.append(grouped(link.groups, link.total));
    const directions = make("div", { class: "directions" });
    if (link.forward) directions.append(direction(link.forward, answer.source, answer.target));
    if (link.backward) directions.append(direction(link.backward, answer.target, answer.source));
    if (directions.children.length) {
      const method = make("p", { class: "soft" }, answer.method || "");
      const read = (link.cells || []).map((group) => `${group.title} ${figure(group.sum)}`).join(", ");
      const where = make("p", { class: "soft" }, read && `The network’s part, by the words that it reads: ${read}.`);
      box.append(make("details", { class: "more" }, make("summary", {}, "Details"), method, where, directions));
    }
    return box;
  }

  function grouped(groups, total) {
    const sum = groups.reduce((before, group) => before + group.sum, 0);
    const largest = Math.max(1e-9, ...groups.map((group) => Math.abs(group.sum)));
    const rows = groups.map((group) => {
      const said = group.details.slice(0, SHOWN).map((one) => `${one.title} ${figure(one.contribution)}`).join("; ");
      const spread = group.spread ? ` ± ${figure(group.spread)}` : "";
      return make("tr", { title: said }, ...cells(group.title + spread, group.sum, largest));
    });
    const title = `${figure(sum)} in all: ${total}`;
    return make("table", { class: "reasons groups" }, make("caption", {}, title), make("tbody", {}, ...rows));
  }

  function direction(choice, tokens, positions) {
    const at = (position) => (position === null ? null : positions[position]);
    const title = choice.direction === "forward" ? "From source to target" : "From target to source";
    const part = make("section", {}, make("h3", {}, title), make("p", {}, choice.compared));
    part.append(table(`For and against ${quoted(at(choice.position))}: together ${figure(choice.score)}`, choice.reasons));
    for (const step of choice.steps) {
      if (step.reasons.length) part.append(table(stepSaid(step, at), step.reasons));
    }
    if (choice.margin && choice.margin.own.length) {
      part.append(table(`Difference to ${quoted(at(choice.rival))}`, choice.margin.own));
    }
    return part;
  }

  function stepSaid(step, at) {
    const names = { start: "As the first word", end: "As the last word" };
    const way = `${quoted(at(step.before))} to ${quoted(at(step.after))}`;
    return `${names[step.kind] || `The step from ${way}`}: ${figure(step.score)}`;
  }

  function table(title, reasons) {
    const some = reasons.filter((reason) => reason.contribution !== 0).slice(0, SHOWN);
    const largest = Math.max(1e-9, ...some.map((reason) => Math.abs(reason.contribution)));
    const rows = some.map((reason) => {
      const product = `${figure(reason.value)} × ${figure(reason.weight)}`;
      return make("tr", {}, ...cells(reason.title, reason.contribution, largest, product));
    });
    if (!rows.length) rows.push(make("tr", {}, make("th", { scope: "row" }, "no evidence")));
    return make("table", { class: "reasons" }, make("caption", {}, title), make("tbody", {}, ...rows));
  }

  function cells(title, contribution, largest, product = null) {
    const part = make("i");
    part.style.width = `${(50 * Math.abs(contribution)) / largest}%`;
    const side = contribution > 0 ? "for" : "against";
    return [
      make("th", { scope: "row" }, title),
      ...(product === null ? [] : [make("td", { class: "product", title: "value × weight" }, product)]),
      make("td", {}, make("span", { class: `bar ${side}`, "aria-hidden": "true" }, part)),
      make("td", { class: "sum" }, figure(contribution)),
    ];
  }

  return { explained, percent };
})();
