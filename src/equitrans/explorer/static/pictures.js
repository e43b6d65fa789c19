// Alignment, table and derivation: what a model is made of.

import { ofRun } from "./api.js";
import { count, h, note, probability } from "./dom.js";
import { heatMap } from "./heat.js";
import { follow, state } from "./state.js";

export async function alignmentView(model) {
  const found = await ofRun(model.name, "alignment", {
    command: state.command, target: state.target || null, add: state.add,
  });
  const best = found.posterior.map((row) => row.indexOf(Math.max(...row)));
  const words = (m, n) => `${found.target[m]} ← ${found.source[n]}`;
  const intro = found.soft
    ? "How much of each source position the model looks at (attention) when it writes each word."
    : "Which source position each word comes from, p(a | x, y): the darker the likelier.";
  return [
    h("p", { class: "intro" }, intro, state.target ? [" Of ", h("q", {}, state.target), " · ",
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
            ["p(a), by classes alone", probability(found.prior[m][n])],
            [`p(y | x), ${found.target[m]} from ${found.source[n]}`, probability(found.emitted[m][n])],
            ["p(a | x, y), together", probability(found.posterior[m][n])],
          ],
      }),
    }),
    found.soft ? note("Attention is soft here: it has no p(a) and no p(y | x) of its own.") : null,
  ];
}

export async function tableView(model) {
  const found = await ofRun(model.name, "table", { add: state.add });
  if (found.missing) return [note(found.missing)];
  const home = (r) => found.blocks.find((b) => r >= b.top && r < b.top + b.height);
  return [
    h("p", { class: "intro" }, "What each word is translated as, p(y | x). Within an outlined class all rows are one row, shifted: that is equivariance."),
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
    found.left_out ? note(`${count(found.left_out, "word")} more are not shown.`) : null,
    model.has_derivations ? note("Words of no class are not translated here: rules speak of them.")
      : note("A row says little if nothing is ever aligned with its word."),
  ];
}

export async function derivationView(model) {
  const found = await ofRun(model.name, "derivation", { command: state.command, add: state.add });
  if (found.missing) {
    return [note(found.missing), model.has_derivations ? null
      : note("Train one within seconds: ", h("code", {}, "equitrans train … --model.aligner recursive"))];
  }
  const deepest = Math.max(...found.nodes.map((node) => node.depth));
  const place = (start, stop, row) =>
    ({ "grid-column": `${start + 1} / ${stop + 1}`, "grid-row": String(row) });
  const used = new Map(found.nodes.map((node) => [node.rule, node.support]));
  return [
    h("p", { class: "intro" }, "The likeliest derivation: each rule stands over the words that it covers. □ is what another rule fills; figures say what is written, and in which order."),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Derivation tree" },
      h("ol", { class: "tree", style: { "--words": String(found.words.length) } },
        found.nodes.map((node) => h("li", {
          class: "node", style: place(node.start, node.stop, node.depth + 1),
          title: count(node.support, "training pair"),
        }, h("span", { class: "rule" }, node.rule),
          h("span", { class: "hidden" }, ` over ${found.words.slice(node.start, node.stop).join(" ")}`))),
        found.words.map((word, n) => h("li", { class: "leaf", style: place(n, n + 1, deepest + 2) }, word)))),
    h("table", { class: "plain" },
      h("caption", {}, `Its rules, and how many training pairs use them; ${count(found.alignments, "alignment")} in all`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "rule"), h("th", { scope: "col" }, "pairs"))),
      h("tbody", {}, [...used].map(([rule, support]) =>
        h("tr", {}, h("td", {}, h("code", {}, rule)), h("td", { class: "number" }, support.toLocaleString("en")))))),
  ];
}
