"use strict";
/* Draws the API's page from /openapi.json alone. */
(() => {
  const { make } = JacanaDraw;
  const DEEPEST = 4;
  let whole = null;

  const resolved = (part) =>
    part && part.$ref ? part.$ref.slice(2).split("/").reduce((found, key) => found[key], whole) : part;
  const json = (value) => JSON.stringify(value, null, 2);

  /* Turns backquotes into `code` elements. */
  function prose(text) {
    return (text || "").split("`").map((piece, k) => (k % 2 ? make("code", {}, piece) : piece));
  }

  function kind(schema) {
    const known = resolved(schema);
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (known.enum) return known.enum.filter((one) => one !== null).join(" | ");
    if ("const" in known) return JSON.stringify(known.const);
    if ([].concat(known.type).includes("array")) return `list of ${kind(known.items)}`;
    if (known.oneOf && !known.properties) return known.oneOf.map(kind).join(" or ");
    return [].concat(known.type || "any").filter((one) => one !== "null").join(" or ");
  }

  function limits(schema) {
    const names = { maxItems: "at most", maxLength: "characters at most", minimum: "from", maximum: "to", default: "without it" };
    return Object.entries(names).filter(([key]) => key in schema).map(([key, said]) => `${said} ${schema[key]}`).join(", ");
  }

  function fields(schema, depth = 0) {
    const known = resolved(schema);
    const inner = [].concat(known.type).includes("array") ? resolved(known.items) : known;
    const either = (inner.oneOf || []).filter((one) => resolved(one).properties);
    if (either.length && depth <= DEEPEST) {
      return make("ul", { class: "schema" }, ...either.map((one, k) => make("li", {}, k ? "or " : "", kind(one), fields(one, depth + 1))));
    }
    if (!inner.properties || depth > DEEPEST) return "";
    const needed = new Set(inner.required || []);
    return make("ul", { class: "schema" }, ...Object.entries(inner.properties).map(([name, part]) => {
      const held = resolved(part);
      const said = [kind(part), needed.has(name) ? "" : "optional", limits(held)].filter(Boolean).join(", ");
      const about = held.description ? [": ", ...prose(held.description)] : [];
      return make("li", {}, make("code", {}, name), " ", make("span", { class: "type" }, said), ...about, fields(part, depth + 1));
    }));
  }

  function trial(path, body) {
    const examples = Object.entries(body.content["application/json"].examples);
    const area = make("textarea", { class: "try", "aria-label": `Body for ${path}`, spellcheck: "false" });
    area.value = json(examples[0][1].value);
    const choices = examples.map(([name, example]) => {
      const button = make("button", { type: "button" }, name);
      button.addEventListener("click", () => (area.value = json(example.value)));
      return button;
    });
    const send = make("button", { type: "button" }, "Send");
    const answer = make("pre", { "aria-live": "polite", tabindex: "0", "aria-label": "Answer", hidden: "" });
    send.addEventListener("click", async () => {
      answer.hidden = false;
      answer.textContent = "…";
      try {
        const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: area.value });
        answer.textContent = `${response.status} ${response.statusText}\n${json(await response.json())}`;
      } catch (problem) {
        answer.textContent = String(problem);
      }
    });
    return [make("h3", {}, "Try it"), make("div", { class: "buttons" }, ...choices), area, send, answer];
  }

  function endpoint(path, method, what) {
    const title = make("h2", {}, make("span", { class: "method" }, method.toUpperCase()), make("code", {}, path));
    const box = make("section", { class: "panel endpoint" }, title, make("p", {}, ...prose(what.summary + ".")));
    if (what.description) box.append(make("p", { class: "soft" }, ...prose(what.description)));
    if (what.requestBody) {
      box.append(make("h3", {}, "Takes"), fields(what.requestBody.content["application/json"].schema));
    }
    box.append(make("h3", {}, "Gives"), fields(what.responses[200].content["application/json"].schema));
    const others = Object.entries(what.responses).filter(([status]) => status !== "200");
    if (others.length) {
      box.append(make("h3", {}, "Or an error, as JSON with a message"));
      box.append(make("ul", { class: "schema" }, ...others.map(([status, part]) =>
        make("li", {}, make("code", {}, status), " ", ...prose(resolved(part).description)))));
    }
    if (what.requestBody) box.append(...trial(path, what.requestBody));
    return box;
  }

  async function begin() {
    whole = await (await fetch("/openapi.json")).json();
    document.getElementById("title").textContent = `${whole.info.title} ${whole.info.version}: API`;
    document.getElementById("about").append(...prose(whole.info.description));
    for (const [path, methods] of Object.entries(whole.paths)) {
      for (const [method, what] of Object.entries(methods)) {
        document.getElementById("paths").append(endpoint(path, method, what));
      }
    }
  }

  begin();
})();
