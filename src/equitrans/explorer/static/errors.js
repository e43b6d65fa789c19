// Mistakes on the test pairs, found in the background.

import { ofRun } from "./api.js";
import { count, differing, folded, h, note, plainTable, problem, targetWords } from "./dom.js";
import { follow, go, state, toCommand } from "./state.js";

export async function errorsView(model, again) {
  const found = await ofRun(model.name, "errors", {
    template: state.template || null, page: state.page || null,
  }, { fresh: true });
  if (found.state === "missing") return [note(found.missing)];
  const wrong = found.done - found.right;
  const parts = found.state === "failed" ? [problem(found.missing)] : [];
  if (found.state === "working") {
    again(600);
    parts.push(h("div", { class: "progress" },
      h("progress", { max: found.of, value: found.done, "aria-label": "evaluation" }),
      h("span", {}, `${found.done.toLocaleString("en")} of ${count(found.of, found.which + " pair")}`)));
  }
  if (found.done) {
    parts.push(h("p", { class: "count" }, h("b", {}, `${(100 * found.right / found.done).toFixed(2)} %`),
      ` exact match · ${count(wrong, "mistake")} in ${count(found.done, found.which + " pair")}`));
    if (found.which === "training") parts.push(note("The rules were learned from all these pairs, so the figure says nothing about new commands."));
  }
  if (!wrong) {
    if (found.state === "done") parts.push(note("No mistakes."));
    return parts;
  }
  const select = h("select", {
    id: "template", on: { change: () => go({ template: select.value, page: "" }) },
  }, h("option", { value: "" }, "all templates"), found.templates.map((t) =>
    h("option", { value: t.template, selected: t.template === state.template },
      `${t.template} (${t.pairs - t.right} of ${t.pairs} wrong)`)));
  parts.push(h("label", { class: "filter" }, "Template ", select));
  parts.push(h("ol", { class: "mistakes", start: (found.page - 1) * 25 + 1 }, found.mistakes.map((m) =>
    h("li", {},
      h("a", follow(toCommand(m.command, { tab: "alignment" })), m.command),
      line("expected", m.target, m.predicted, model, m.command),
      m.reason !== null
        ? h("div", { class: "line" }, h("span", { class: "muted" }, "predicted"), h("span", { class: "muted" }, `refused: ${m.reason}`))
        : line("predicted", m.predicted, m.target, model)))));
  if (found.pages > 1) {
    parts.push(h("p", { class: "pages" },
      found.page > 1 ? h("a", follow({ page: String(found.page - 1) }), "previous") : h("span", { class: "muted" }, "previous"),
      ` page ${found.page} of ${found.pages} `,
      found.page < found.pages ? h("a", follow({ page: String(found.page + 1) }), "next") : h("span", { class: "muted" }, "next")));
  }
  return parts;
}

// The sentences of the first model's test set that two models answer differently.
export async function differencesView([one, other], again) {
  const found = await ofRun(one.name, "differences", { other: other.name }, { fresh: true });
  if (found.state === "missing") return [h("h3", {}, "Where the models differ"), note(found.missing)];
  if (found.state === "working") again(600);
  const parts = [h("h3", {}, "Where the models differ"),
    h("p", { class: "count" }, h("b", {}, count(found.differing, "sentence")),
      ` of the ${found.test_set}${found.done < found.of ? `, ${found.done.toLocaleString("en")} of ${found.of.toLocaleString("en")} asked so far` : ` (${found.of.toLocaleString("en")})`} · right: ${one.name} ${found.right[0].toLocaleString("en")}, ${other.name} ${found.right[1].toLocaleString("en")}`)];
  if (found.state === "failed") parts.push(problem(found.missing));
  if (found.sentences.length) {
    const some = found.differing > found.sentences.length ? `, the first ${found.sentences.length}` : "";
    parts.push(...folded(found.sentences, 10, (rows) => plainTable(`Sentences that the models answer differently${some}`, ["sentence", "target", one.name, other.name],
      rows.map((s) => [h("a", follow(toCommand(s.command, { tab: "alignment" })), s.command), h("span", { class: "words" }, targetWords(s.target.split(" "))),
        ...[s.one, s.other].map((said, i) => answered(said, s, s.right[i]))]))));
  } else if (found.state === "done") parts.push(note("Both models give the same answers."));
  return parts;
}

// An answer in the list of differences: that it is right, or its words, marked where they are wrong.
function answered(said, { target }, right) {
  if (right) return h("span", { class: "right" }, "✓ right");
  if (said.startsWith("refused: ")) return h("span", { class: "muted" }, said);
  const words = said.split(" ");
  return h("span", { class: "words" }, targetWords(words, differing(words, target.split(" "))));
}

function line(name, words, others, model, command) {
  const shown = h("span", { class: "words" },
    targetWords(words, differing(words, others ?? [])));
  return h("div", { class: "line" }, command
    ? h("a", { class: "muted", title: "show the alignment of the expected target", ...follow(toCommand(command, { tab: "alignment", target: words.join(model.characters ? "" : " ") })) }, name)
    : h("span", { class: "muted" }, name), shown);
}
