// Alignment, table and derivation.

import { ofRun } from "./api.js";
import { count, h, note, pannable, plainTable, probability } from "./dom.js";
import { heatMap } from "./heat.js";
import { follow, state } from "./state.js";

export async function alignmentView(model) {
  const found = await ofRun(model.name, "alignment", {
    command: state.command, target: state.target || null, add: state.add,
  });
  const best = found.posterior.map((row) => row.indexOf(Math.max(...row)));
  const rules = model.has_derivations && model.kind !== "lane";
  const words = (m, n) => `${found.target[m]} ← ${found.source[n]}`;
  const intro = found.soft
    ? "Attention: the weight of each source word (columns) when the model writes each target word (rows)."
    : "The source word (columns) that each target word (rows) comes from: the stronger the colour, the likelier, p(a | x, y).";
  return [
    h("p", { class: "intro" }, intro, " BOS and EOS mark the beginning and the end.", state.target ? [" Target: ", h("q", {}, state.target), " · ",
      h("a", follow({ target: "" }), "back to the prediction"), "."] : null),
    heatMap({
      label: "Alignment: target words in rows, source words in columns",
      corner: "", rows: found.target, columns: found.source, best,
      value: (m, n) => found.posterior[m][n],
      read: (m, n) => ({
        title: words(m, n),
        facts: found.soft
          ? [["attention", probability(found.posterior[m][n])]]
          : [
            ["p(a), from classes only", probability(found.prior[m][n])],
            [`p(y | x), ${found.target[m]} from ${found.source[n]}`, rules && n === best[m] && found.emitted[m][n] < 0.001
              ? "a rule writes it" : probability(found.emitted[m][n])],
            ["p(a | x, y), both combined", probability(found.posterior[m][n])],
          ],
      }),
    }),
    found.soft ? note("Attention is soft: this model has no separate p(a) and p(y | x).") : null,
  ];
}

export async function tableView(model) {
  const found = await ofRun(model.name, "table", { add: state.add });
  if (found.missing) return [note(found.missing)];
  const home = (r) => found.blocks.find((b) => r >= b.top && r < b.top + b.height);
  return [
    h("p", { class: "intro" }, "p(y | x): the translation of each word. Within an outlined class every row is the same row, shifted: this is equivariance."),
    heatMap({
      label: "The translator's table: source words in rows, target words in columns",
      corner: "", rows: found.sources, columns: found.targets, blocks: found.blocks, tall: true,
      value: (r, c) => found.prob[r][c],
      read: (r, c) => ({
        title: `${found.sources[r]} → ${found.targets[c]}`,
        facts: [
          ["p(y | x)", probability(found.prob[r][c])],
          ["class", home(r) ? home(r).name : "none"],
        ],
      }),
    }),
    found.left_out ? note(`Not shown: ${count(found.left_out, "more word")}.`) : null,
    model.has_derivations ? note("The table has only words of classes; rules write the others.")
      : note("The row of a word has an effect only if target words are aligned with the word."),
  ];
}

export async function derivationView(model) {
  const found = await ofRun(model.name, "derivation", { command: state.command, add: state.add });
  if (found.missing) {
    return [note(found.missing), model.has_derivations ? null
      : note("Train one in seconds: ", h("code", {}, "equitrans train … --model.aligner recursive"))];
  }
  const deepest = Math.max(...found.nodes.map((node) => node.depth));
  const place = (start, stop, row) =>
    ({ "grid-column": `${start + 1} / ${stop + 1}`, "grid-row": String(row) });
  const used = new Map(found.nodes.map((node) => [node.rule, node.support]));
  const lane = model.kind === "lane";
  return [
    h("p", { class: "intro" }, lane ? "The expressions that give the prediction. Each stands over the words that it covers; x1 and x2 are what the expressions below it give, from left to right."
      : "The likeliest derivation. Each rule stands over the words that it covers, and another rule fills each □. The numbers after the arrow say which parts are written, and in which order."),
    ...pannable("The tree",
      h("ol", { class: "tree", style: { "--words": String(found.words.length) } },
        found.nodes.map((node) => h("li", {
          class: "node", style: place(node.start, node.stop, node.depth + 1),
          title: lane ? node.rule : count(node.support, "training pair"),
        }, h("span", { class: "rule" }, node.rule),
          h("span", { class: "hidden" }, ` over ${found.words.slice(node.start, node.stop).join(" ")}`))),
        found.words.map((word, n) => h("li", { class: "leaf", style: place(n, n + 1, deepest + 2) }, word))),
      { tabindex: "0", role: "group", "aria-label": "Derivation tree" }),
    lane ? null : plainTable(`Rules of this derivation, and the number of training pairs that use each. The rules align the command in ${count(found.alignments, "way")}.`,
      ["rule", "pairs"], [...used].map(([rule, support]) => [h("code", {}, rule), support])),
  ];
}
