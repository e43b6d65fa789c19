// The summary of a model: figures, classes, rules, unexplained pairs, warnings, what to write next.

import { ofRun } from "./api.js";
import { count, h, note, problem, targetWords } from "./dom.js";
import { follow, toCommand } from "./state.js";

export async function summaryView(model) {
  const found = await ofRun(model.name, "summary", {});
  return [
    h("p", { class: "intro" }, "Type a command above, or pick one. This is what is known about the model."),
    h("div", { class: "cards" },
      card("Figures", facts(found.figures.length ? found.figures
        : ["none: the model was not tested; the tab Errors tests it on the pairs of its run"])),
      card("Classes", facts(model.classes.length
        ? model.classes.map((c) => `${c.name}: ${c.source.slice(0, 4).join(", ") || "words that a sentence brings"}${c.source.length > 4 ? ` and ${c.source.length - 4} more` : ""}`)
        : ["none: no words can be exchanged"])),
      await example(model, found.example)),
    found.rules.length ? rules(found) : null,
    found.exceptions.length ? unexplained(found) : null,
    ...found.warnings.map((warning) => problem(`Warning: ${warning}`)),
    found.suggestions.length ? suggestions(found.suggestions) : null,
  ];
}

const card = (title, content) => h("section", { class: "class" }, h("h3", {}, title), content);
const facts = (texts) => h("ul", {}, texts.map((text) => h("li", {}, text)));

async function example(model, command) {
  if (!command) return null;
  const answer = await ofRun(model.name, "answer", { command }).catch(() => null);
  if (!answer) return null;
  return card("An example", h("div", {},
    h("a", follow(toCommand(command)), command),
    answer.reason === null ? h("div", { class: "words" }, targetWords(answer.best[0].words))
      : note(`refused: ${answer.reason}`)));
}

const row = (cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)));
const table = (caption, heads, rows) => h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
  h("table", { class: "plain" }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map(row))));

function rules(found) {
  const explained = found.pairs - found.unexplained;
  return table(`Rules; they explain ${explained} of ${count(found.pairs, "pair")}`, ["rule", "pairs"],
    found.rules.map(({ rule, support }) => [h("code", {}, rule), support.toLocaleString("en")]));
}

function unexplained(found) {
  return table(`Unexplained: ${count(found.unexplained, "pair")}`, ["source", "target", "reason"],
    found.exceptions.map((pair) => [h("a", follow(toCommand(pair.source)), pair.source), pair.target, pair.reason]));
}

// A form for the targets of suggested sentences; it writes lines for the file of pairs.
function suggestions(found) {
  const lines = h("textarea", { readonly: true, rows: String(found.length), "aria-label": "Lines for the file of pairs" });
  const inputs = found.map(({ source }) => h("input", { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-label": `target of ${source}`, placeholder: "its target" }));
  const write = () => {
    lines.value = found.map(({ source }, i) => [source, inputs[i].value.trim()])
      .filter(([, target]) => target).map((pair) => pair.join("\t")).join("\n");
    result.hidden = !lines.value;
  };
  const result = h("div", { hidden: true }, note("Add these lines to the pairs and learn again; the summary of the new model shows what changed."), lines);
  inputs.forEach((input) => input.addEventListener("input", write));
  return h("section", { class: "next", "aria-label": "Write next" }, h("h3", {}, "Write next"),
    note("The targets of these sentences would teach the most."),
    h("ul", {}, found.map(({ source, reasons }, i) => h("li", {},
      h("a", follow(toCommand(source)), source), inputs[i], h("small", {}, reasons.join("; "))))),
    result);
}
