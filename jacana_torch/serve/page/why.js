"use strict";
/* Turns the answer of /explain about one link, present or absent, into an element. Text becomes text nodes only. */
const JacanaWhy = (() => {
  const { make } = JacanaDraw;
  const SHOWN = 8;

  const percent = (share) =>
    share === null || share === undefined ? "" : `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 2 : 1)} %`;
  const figure = (value) => (Math.abs(value) < 0.005 ? "0" : value.toFixed(2)).replace("-", "−");
  const quoted = (word) => (word === null ? "nothing" : `“${word}”`);

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
      make("span", { class: "share" }, link.confidence === null ? "" : `Confidence ${percent(link.confidence)}.`),
    );
    const box = make("div", {}, verdict);
    if (answer.note) box.append(make("p", { class: "soft" }, answer.note));
    const directions = make("div", { class: "directions" });
    if (link.forward) directions.append(direction(link.forward, answer.source, answer.target));
    if (link.backward) directions.append(direction(link.backward, answer.target, answer.source));
    box.append(directions);
    return box;
  }

  function direction(choice, tokens, positions) {
    const at = (position) => (position === null ? null : positions[position]);
    const word = tokens[choice.token];
    const title = choice.direction === "forward" ? "From source to target" : "From target to source";
    const chose = choice.chosen ? "chooses" : "does not choose";
    const line = make("p", {}, `${quoted(word)} ${chose} ${quoted(at(choice.position))} (${percent(choice.posterior)}).`);
    if (choice.margin) {
      const by = figure(Math.abs(choice.margin.value));
      const rival = `${quoted(at(choice.rival))} (${percent(choice.rival_posterior)})`;
      line.append(choice.margin.value >= 0 ? ` It beats ${rival} by ${by}.` : ` ${rival} beats it by ${by}.`);
    }
    const part = make("section", {}, make("h3", {}, title), line);
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
    const rows = some.map((reason) => row(reason, largest));
    if (!rows.length) rows.push(make("tr", {}, make("th", { scope: "row" }, "no evidence")));
    return make("table", { class: "reasons" }, make("caption", {}, title), make("tbody", {}, ...rows));
  }

  function row(reason, largest) {
    const part = make("i");
    part.style.width = `${(50 * Math.abs(reason.contribution)) / largest}%`;
    const side = reason.contribution > 0 ? "for" : "against";
    const product = `${figure(reason.value)} × ${figure(reason.weight)}`;
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, reason.feature),
      make("td", { class: "product", title: "value × weight" }, product),
      make("td", {}, make("span", { class: `bar ${side}`, "aria-hidden": "true" }, part)),
      make("td", { class: "sum" }, figure(reason.contribution)),
    );
  }

  return { explained, percent };
})();
