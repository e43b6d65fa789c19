// The summary of a model: figures, classes, rules, unexplained pairs, warnings, what to write next.

import { ofRun, Problem } from "./api.js";
import { count, folded, h, note, plainTable, problem, targetWords } from "./dom.js";
import { follow, toCommand } from "./state.js";

export async function summaryView(model) {
  const found = await ofRun(model.name, "summary", {});
  return [
    h("p", { class: "intro" }, "Type a command above, or pick one. This is what is known about the model."),
    h("div", { class: "cards" },
      card("Figures", facts(found.figures), model.has_data ? h("p", {}, h("a", follow({ tab: "errors" }), "Test it on its pairs")) : null),
      card("Classes", facts(model.classes.length
        ? model.classes.map((c) => `${c.name}: ${c.source.slice(0, 4).join(", ") || "words that a sentence brings"}${c.source.length > 4 ? ` and ${(c.source.length - 4).toLocaleString("en")} more` : ""}`)
        : ["none: no words can be exchanged"])),
      await example(model, found.example)),
    found.rules.length ? rules(found) : null,
    found.exceptions.length ? unexplained(found) : null,
    found.warnings.length ? warnings(found.warnings) : null,
    found.suggestions.length ? suggestions(model, found.suggestions) : null,
  ];
}

const card = (title, ...content) => h("section", { class: "class" }, h("h3", {}, title), ...content);
const facts = (texts) => h("ul", {}, texts.map((text) => h("li", {}, text)));

async function example(model, command) {
  if (!command) return null;
  const answer = await ofRun(model.name, "answer", { command }).catch(() => null);
  if (!answer) return null;
  return card("An example", h("div", {},
    h("a", follow(toCommand(command)), command),
    answer.reason === null ? h("div", { class: "words" }, targetWords(answer.best[0].words, () => false, 16))
      : note(`refused: ${answer.reason}`)));
}

function rules(found) {
  const explained = found.pairs - found.unexplained;
  const caption = `Rules; they explain ${explained.toLocaleString("en")} of ${count(found.pairs, "pair")}. `
    + "A □ is a part of the sentence that another rule reads, and <name> is a word of that class; "
    + "the numbers after an arrow are places before it, counted from 0; 'words' are written as they are. Beside each rule is the number of pairs that use it."
    + (found.rules.some(({ rule }) => /□\w/.test(rule)) ? " A name after a □ is the kind of part that fits there; a □ without a name takes any." : "");
  return folded(found.rules, 20, (rows) => plainTable(caption, ["rule", "pairs"],
    rows.map(({ rule, support }) => [h("code", {}, rule), support])));
}

function warnings(found) {
  const list = (texts) => h("ul", {}, texts.map((text) => h("li", {}, text)));
  return h("div", { class: "problem warnings" }, h("b", {}, count(found.length, "warning")), list(found.slice(0, FEW)),
    found.length > FEW ? h("details", {}, h("summary", {}, `${found.length - FEW} more`), list(found.slice(FEW))) : null);
}
const FEW = 4;

function unexplained(found) {
  return folded(found.exceptions, 10, (rows) => plainTable(`Unexplained: ${count(found.unexplained, "pair")}`, ["source", "target", "reason"],
    rows.map((pair) => [h("a", follow(toCommand(pair.source)), pair.source), pair.target, pair.reason])));
}

// A form for the targets of suggested sentences: it writes lines for the file of pairs, and learns again with them.
function suggestions(model, found) {
  const lines = h("textarea", { readonly: true, wrap: "off", "aria-label": "Lines for the file of pairs" });
  const inputs = found.map(({ source }) => h("input", { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-label": `target of ${source}`, placeholder: "its target" }));
  const write = () => {
    lines.value = found.map(({ source }, i) => [source, inputs[i].value.trim()])
      .filter(([, target]) => target).map((pair) => pair.join("\t")).join("\n");
    lines.rows = Math.max(2, lines.value.split("\n").length);
    result.hidden = !lines.value;
  };
  const changes = h("div", { role: "status" });
  const button = h("button", { type: "submit", class: "chip" }, "Learn again with these answers");
  const result = h("div", { hidden: true }, button,
    note("Nothing is written to disk. To keep the answers, add these lines to the file of pairs:"), lines);
  const learn = async (event) => {
    event.preventDefault();
    if (!lines.value) return;
    button.disabled = true;
    try {
      await relearn(model, lines.value.split("\n"), changes);
    } catch (error) {
      changes.replaceChildren(problem(error.message));
    }
    button.disabled = false;
  };
  inputs.forEach((input) => input.addEventListener("input", write));
  return h("section", { class: "next", "aria-label": "Write next" }, h("h3", {}, "Write next"),
    note("The targets of these sentences would teach the most. Write some of them here to learn again; leave out what is no sentence of your language."),
    h("form", { on: { submit: learn } }, h("ul", {}, found.map(({ source, reasons }, i) => h("li", {},
      h("a", follow(toCommand(source)), source), inputs[i], h("small", {}, reasons.join("; "))))),
    result), changes);
}

// Ask until the new model is there, and show what changed.
async function relearn(model, answers, place) {
  let found = await ofRun(model.name, "relearned", { answer: answers }, { fresh: true });
  for (let seconds = 0; found.state === "working"; seconds += 1) {
    place.replaceChildren(note(`Learning again: ${count(seconds, "second")}…`));
    await new Promise((wake) => { setTimeout(wake, 1000); });
    found = await ofRun(model.name, "relearned", { answer: answers }, { fresh: true });
  }
  if (found.state === "failed") throw new Problem(found.problem);
  dispatchEvent(new Event("models"));
  const list = (title, gained, lost) => card(`${title}: ${gained.length} new, ${lost.length} gone`, gained.length + lost.length ? h("ul", { class: "change" },
    gained.map((text) => h("li", { class: "gained" }, h("span", { class: "hidden" }, "new: "), text)),
    lost.map((text) => h("li", { class: "lost" }, h("span", { class: "hidden" }, "gone: "), text))) : note("unchanged"));
  const [before, after] = found.unexplained;
  place.replaceChildren(
    h("h3", {}, "What changed"),
    h("p", {}, "The new model is ", h("a", follow({ run: found.name, with: "" }), found.name), ". ",
      h("a", follow({ with: found.name, tab: "errors" }), "Compare both"),
      ` · unexplained pairs: ${before} before, ${after} now.`),
    h("div", { class: "cards" }, list("Classes", found.classes_gained, found.classes_lost),
      list("Rules", found.rules_gained, found.rules_lost)),
    ...(found.changed.length ? folded(found.changed, 12, (rows) => plainTable(`The answers to ${found.differing} of ${count(found.asked, "sentence")} changed`,
      ["sentence", "before", "now"], rows.map((one) => [h("a", follow(toCommand(one.command, { with: found.name })), one.command), one.before, one.after])))
      : [note(`All answers to ${count(found.asked, "sentence")} of the pairs are as before.`)]));
}
