// The classes of a model, and their added words.

import { ofRun, Problem } from "./api.js";
import { count, h, note, probability, problem } from "./dom.js";
import { follow, go, state, toCommand } from "./state.js";

export async function wordsView(model) {
  if (!model.classes.length) return [note("This model has no classes, so no word can be swapped or added.")];
  const fresh = new Set(state.add.map((added) => added.split(" ")[0]));
  const parts = [
    h("p", { class: "intro" }, model.equivariant
      ? "Words of a class are interchangeable: if one replaces another, its translation replaces the other translation."
      : "These are the classes of the data. This model is not equivariant under them."),
    h("div", { class: "classes" }, model.classes.map((c) => h("section", { class: c.source.length > MOST ? "class many" : "class" },
      h("h3", {}, c.name, h("small", {}, c.source.length ? count(c.source.length, "word") : "words that a sentence brings")),
      rows(c, fresh)))),
  ];
  if (state.add.length) parts.push(await added(model));
  parts.push(form(model));
  return parts;
}

// The words of a class with their translations; of many words, those that contain a typed text.
function rows(c, fresh) {
  const list = h("dl", {});
  const rest = h("p", { class: "muted" });
  const fill = (text) => {
    const found = c.source.map((word, i) => [word, c.target[i]])
      .filter(([word, target]) => word.includes(text) || target.includes(text) || fresh.has(word));
    list.replaceChildren(...found.slice(0, MOST).map(([word, target]) =>
      h("div", { class: fresh.has(word) ? "fresh" : null }, h("dt", {}, word), h("dd", {}, target))));
    rest.textContent = !found.length ? "no word contains this" : found.length > MOST ? `and ${found.length - MOST} more` : "";
  };
  fill("");
  if (c.source.length <= MOST) return [list];
  return [h("input", { type: "search", class: "search", "aria-label": `search the words of ${c.name}`, placeholder: `search ${c.source.length} words`, autocomplete: "off", on: { input: (event) => fill(event.target.value.trim()) } }), list, rest];
}
const MOST = 30;

async function added(model) {
  const list = h("p", { class: "picks" }, h("span", { class: "muted" }, "added"), state.add.map((word, i) => {
    const [source] = word.split(" ");
    return h("a", {
      class: "chip", "aria-label": `remove ${source}`,
      ...follow({ add: state.add.filter((_, n) => n !== i), ...toCommand(plain(source)) }),
    }, `${source} ×`);
  }));
  const facts = await ofRun(model.name, "added", { add: state.add });
  return h("div", {}, list, note("No training was needed. "
    + (facts.symmetrised < 1e-6 ? "" : `Making the group symmetric changed no p(y | x) by more than ${probability(facts.symmetrised)}. `)
    + `A new word lowers the log-probability of any other word by at most ${facts.diluted.toPrecision(2)}.`));
}

// The command, or nothing if it contains a word that is removed.
const plain = (word) => (state.command.split(" ").includes(word) ? "" : state.command);

function form(model) {
  const field = (name, text, hint, value = null) =>
    h("label", {}, text, h("input", { name, value, required: true, maxlength: "60", autocomplete: "off", autocapitalize: "none", spellcheck: "false", placeholder: hint }));
  const message = h("div", {});
  const [first] = model.classes.filter((c) => c.source.length);
  const like = (words) => (first ? `like ${words(first)[0]}` : null);
  const element = h("form", { class: "add", "aria-label": "Add a word to a class" },
    h("h3", {}, "Add a word"),
    h("div", { class: "fields" },
      h("label", {}, "class", h("select", { name: "home" }, model.classes.map((c) => h("option", {}, c.name)))),
      field("source", "word", like((c) => c.source), state.new || null),
      field("target", "its translation", like((c) => c.target)),
      h("button", { type: "submit" }, "Add")),
    message);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { home, source, target } = Object.fromEntries(new FormData(element));
    const add = [...state.add, `${source.trim()} ${target.trim()} ${home}`];
    try {
      if (/\s/.test(source.trim() + target.trim())) throw new Problem("A word must not contain spaces.");
      await ofRun(model.name, "added", { add });
    } catch (error) {
      message.replaceChildren(problem(error.message));
      return;
    }
    go({ ...toCommand(using(model, home, source.trim())), add });
  });
  return element;
}

// The command with the new word in place of a word of its class.
function using(model, home, source) {
  const { source: mates } = model.classes.find((c) => c.name === home);
  const glue = model.characters ? "" : " ";
  const words = model.characters ? [...state.command] : state.command.split(/\s+/).filter(Boolean);
  const place = words.findIndex((word) => mates.includes(word));
  return place < 0 ? source : words.map((w, i) => (i === place ? source : w)).join(glue);
}
