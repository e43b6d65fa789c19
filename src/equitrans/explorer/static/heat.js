// A heat map for mouse, touch and arrow keys.

import { h, pannable } from "./dom.js";

// rows, columns: words. value(r, c): the shade, from 0 to 1. read(r, c): the readout, a title and
// [name, value] pairs. blocks: rectangles to outline.
export function heatMap({ label, corner, rows, columns, value, read, blocks = [], best = null, tall = false }) {
  const readout = h("div", { class: "readout" });
  const cells = rows.map((_, r) => columns.map((_, c) => {
    const { title, facts } = read(r, c);
    const p = value(r, c);
    const cell = h("td", {
      tabindex: r === 0 && c === 0 ? "0" : "-1",
      class: best && best[r] === c ? "best" : null,
      "aria-label": `${title}: ${facts.map(([name, text]) => `${name} ${text}`).join(", ")}`,
      style: { "--p": p.toFixed(4) },
      on: {
        focus: () => show(r, c),
        pointerenter: () => show(r, c),
        click: () => { focusOn(r, c); },
      },
    });
    for (const b of blocks) {
      if (r < b.top || r >= b.top + b.height || c < b.left || c >= b.left + b.width) continue;
      if (r === b.top) cell.classList.add("edge-top");
      if (r === b.top + b.height - 1) cell.classList.add("edge-bottom");
      if (c === b.left) cell.classList.add("edge-left");
      if (c === b.left + b.width - 1) cell.classList.add("edge-right");
    }
    return cell;
  }));
  const heads = columns.map((word) => h("th", { scope: "col" }, h("span", {}, word)));
  const sides = rows.map((word) => h("th", { scope: "row" }, word));
  let at = [0, 0];

  function show(r, c) {
    const { title, facts } = read(r, c);
    heads.forEach((head, i) => head.classList.toggle("here", i === c));
    sides.forEach((side, i) => side.classList.toggle("here", i === r));
    readout.replaceChildren(
      h("p", { class: "title" }, title),
      h("dl", {}, facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)))),
    );
  }

  function focusOn(r, c) {
    cells[at[0]][at[1]].tabIndex = -1;
    at = [r, c];
    cells[r][c].tabIndex = 0;
    cells[r][c].focus();
  }

  function onKey(event) {
    const last = [rows.length - 1, columns.length - 1];
    const moves = {
      ArrowUp: [Math.max(0, at[0] - 1), at[1]],
      ArrowDown: [Math.min(last[0], at[0] + 1), at[1]],
      ArrowLeft: [at[0], Math.max(0, at[1] - 1)],
      ArrowRight: [at[0], Math.min(last[1], at[1] + 1)],
      Home: [at[0], 0],
      End: [at[0], last[1]],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    focusOn(...moves[event.key]);
  }

  const table = h("table", {
    class: tall || rows.length > 26 ? "heat dense" : "heat", role: "grid", "aria-label": label,
    on: { keydown: onKey },
  },
    h("thead", {}, h("tr", {}, h("td", { class: "corner" }, corner), heads)),
    h("tbody", {}, cells.map((row, r) => h("tr", {}, sides[r], row))));
  const start = best ? [0, best[0]] : [0, 0];
  show(...start);
  cells[0][0].tabIndex = -1;
  at = start;
  cells[start[0]][start[1]].tabIndex = 0;
  return h("div", { class: "map" },
    h("div", {}, pannable("The picture", table, { narrow: tall || rows.length > 26 ? null : "dense" })),
    h("aside", { class: "beside", "aria-label": "Selected cell" }, readout,
      h("div", { class: "ramp", "aria-hidden": "true" },
        h("span", {}, "0"), h("i", {}), h("span", {}, "1"))));
}
