// A command, its prediction, and the effect of a swap.

import { ofRun } from "./api.js";
import { count, h, note, probability, problem, searchable, targetWords } from "./dom.js";
import { follow, go, state, toCommand } from "./state.js";

const equals = (p) => {
  const text = probability(p);
  return /^[>≈]/.test(text) ? text : `= ${text}`;
};
// Odds below which an answer is called doubtful, as in the command line.
const SURE = 9;
const glue = (model) => (model.characters ? "" : " ");

export function answerView(model, answer) {
  const swaps = h("div", { class: "swaps", id: `swaps-${model.name}`, hidden: true });
  const tokens = answer.words.map((word, n) => token(model, answer, word, n, swaps));
  const hint = !state.from && tokens.some((t) => t.tagName === "BUTTON");
  const parts = [h("div", { class: "sentence", "aria-label": "command" }, tokens,
    hint ? h("small", {}, "click an underlined word to swap it") : null), swaps];
  if (answer.reason !== null) return parts;
  const [first, ...others] = answer.best;
  const said = h("div", { class: "said" },
    h("span", { class: "arrow", "aria-label": "becomes" }, "→"),
    h("div", { class: "words" }, targetWords(first.words)),
    h("span", { class: "chance", title: "p(y | x): the probability of this target, given the command" }, `p ${equals(first.prob)}`));
  parts.push(said, pointing(model, answer, parts[0], said));
  if (others.length && first.prob < SURE * others[0].prob) {
    parts.push(note("Doubtful: another target is nearly as likely. It is among the other guesses."));
  }
  if (first.by === "second") parts.push(note("No rules derive this command: the second model answered."));
  if (!first.finished) parts.push(note("Cut off: the prediction reached the maximum length before its end."));
  parts.push(!others.length ? h("p", { class: "others muted" }, "no other guess") :
    h("details", { class: "others" },
      h("summary", {}, count(others.length, "other guess", "other guesses")),
      h("ol", {}, answer.best.map((guess) =>
        h("li", {},
          h("span", { class: "bar", style: { "--p": guess.prob.toFixed(4) } }),
          h("span", { class: "chance" }, probability(guess.prob)),
          h("a", {
            class: "guess", ...follow({ tab: "alignment", target: guess.words.join(glue(model)) }),
          }, guess.words.join(glue(model)) || "(empty)"))))));
  return parts;
}

// Pointing at a word of the output lights the word that it comes from, and names the rule.
function pointing(model, answer, sentence, said) {
  const line = h("p", { class: "origin", role: "status" }, "Point at a word of the output, or tap it, to see where it comes from.");
  const asked = { command: state.command, add: state.add };
  const clear = () => [sentence, said].forEach((part) =>
    part.querySelectorAll(".lit").forEach((word) => word.classList.remove("lit")));
  async function light(word, m) {
    const [aligned, derived] = await Promise.all([ofRun(model.name, "alignment", asked),
      model.has_derivations && model.kind !== "lane" ? ofRun(model.name, "derivation", asked) : null]).catch(() => []);
    const rows = aligned && pieces(answer.best[0].words, aligned.target)[m];
    if (!rows) return;
    const origins = rows.map((row) => aligned.posterior[row].indexOf(Math.max(...aligned.posterior[row])) - 1);
    const sources = origins.map((n) => sentence.querySelectorAll(".token")[n]).filter(Boolean);
    clear();
    if (!sources.length) return;
    [word, ...sources].forEach((element) => element.classList.add("lit"));
    line.textContent = rows.map((row, k) => origin(aligned.target[row], origins[k], sentence, derived))
      .filter(Boolean).join("; ");
  }
  said.querySelectorAll(".word").forEach((word, m) => {
    word.addEventListener("pointerenter", () => light(word, m));
    word.addEventListener("click", () => light(word, m));
    word.addEventListener("pointerleave", clear);
  });
  return line;
}

// Where a target word comes from: a source word, or a rule that writes it.
function origin(word, n, sentence, derived) {
  const source = sentence.querySelectorAll(".token")[n];
  if (!source) return "";
  const inside = derived?.nodes.filter((node) => node.start <= n && n < node.stop) ?? [];
  const writes = inside.filter((node) => node.rule.includes(`'${word}'`)).at(-1);
  const rule = writes ?? inside.at(-1);
  return writes ? `${word} is written by the rule ${rule.rule}, at ${source.textContent}`
    : `${word} comes from ${source.textContent}, word ${n + 1}${rule ? `, by the rule ${rule.rule}` : ""}`;
}

// For each word of the output, the rows of the alignment that it is written from: several if it was read apart.
function pieces(words, target) {
  let row = 0;
  return words.map((word) => {
    const rows = [];
    for (let text = ""; row < target.length && text.length < word.length; row += 1) {
      text += target[row];
      rows.push(row);
    }
    return rows;
  });
}

function token(model, answer, word, n, swaps) {
  const home = model.classes.find((c) => c.name === word.home);
  if (!home) {
    const isUnknown = !word.known || answer.reason?.startsWith(`unknown word '${word.text}'`);
    return h("span", { class: isUnknown ? "token unknown" : "token", title: isUnknown ? "unknown word" : null }, word.text);
  }
  const others = home.source.filter((other) => other !== word.text);
  const button = h("button", {
    type: "button", class: "token swappable", "aria-expanded": "false", "aria-controls": swaps.id,
    title: `word of class ${home.name}: click to swap it`, dataset: { place: n },
    on: { click: toggle },
  }, word.text);

  function toggle() {
    const open = button.getAttribute("aria-expanded") === "true";
    for (const other of button.parentElement.querySelectorAll("[aria-expanded=true]")) {
      other.setAttribute("aria-expanded", "false");
    }
    swaps.hidden = open;
    if (open) return;
    button.setAttribute("aria-expanded", "true");
    swaps.replaceChildren(
      h("span", { class: "muted" }, others.length
        ? `swap ${word.text} for` : `${word.text} is the only word of ${home.name}`),
      ...searchable(others, (other) => h("button", {
        type: "button", class: "chip",
        on: { click: () => swap(other) },
      }, other), `search the words of ${home.name}`));
    swaps.onkeydown = (event) => {
      if (event.key === "Escape") { toggle(); button.focus(); }
    };
  }

  function swap(other) {
    const words = answer.words.map((w, i) => (i === n ? other : w.text));
    go(toCommand(words.join(glue(model)), { from: answer.command }));
  }
  return button;
}

export async function swapView(model) {
  if (!state.from || state.from === state.command) return [];
  let found;
  try {
    found = await ofRun(model.name, "swap", {
      before: state.from, after: state.command, add: state.add,
    });
  } catch (error) {
    return [problem(error.message)];
  }
  const moved = found.source_changes.map((n) =>
    `${found.before.words[n].text} → ${found.after.words[n].text}`).join(", ");
  const out = found.target_changes.length;
  return [h("section", { class: "facts", "aria-label": "Effect of the swap" },
    h("h3", {}, moved ? `After ${moved}` : "The same command"),
    h("div", { class: "pair" },
      outputs(found.before, found.target_changes), outputs(found.after, found.target_changes)),
    h("ul", {},
      h("li", { class: "changed" }, h("b", {}, "the output"),
        out ? ` changed in ${count(out, "place")}` : " stays the same"),
      found.facts.map((fact) => h("li", { class: fact.same ? (fact.promised ? "proved" : "same") : "changed" },
        h("b", {}, fact.what), ` ${verdict(fact)}`, h("small", {}, fact.why)))),
    h("p", { class: "undo" }, h("a", follow(toCommand(state.from)), `back to ${state.from}`)))];
}

function verdict(fact) {
  const values = fact.before && fact.before !== fact.after
    ? `: ${fact.before} → ${fact.after}` : fact.after ? `: ${fact.after}` : "";
  if (fact.promised) return `${fact.same ? "provably stays" : "should stay but changes"}${values}`;
  return `${fact.same ? "stays, without a guarantee" : "changes"}${values}`;
}

function outputs(answer, changes) {
  const words = answer.best.length ? answer.best[0].words : [];
  return h("div", {}, h("span", { class: "muted" }, answer.command),
    h("div", { class: "words" }, targetWords(words, (m) => changes.includes(m))));
}
