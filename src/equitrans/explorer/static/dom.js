// Elements from values. Text is always set as text, so no output of a model becomes markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === "style") {
      for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    } else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

export function problem(message, ...more) {
  return h("p", { class: "problem", role: "alert" }, message, ...more);
}

export function note(...content) {
  return h("p", { class: "note" }, ...content);
}

// A probability with three decimals, or as a power of ten.
export function probability(p) {
  if (p >= 0.9995 && p < 1) return "> 0.999";
  if (p < 0.0005) return p < 1e-6 ? "≈ 0" : p.toExponential(0).replace("e-", "·10⁻").replace(
    /⁻(\d+)$/, (_, n) => "⁻" + [...n].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join(""));
  return p.toFixed(3);
}

// Whether word m is in the part where two texts differ: between their common beginning and their common end.
export function differing(words, others) {
  const most = Math.min(words.length, others.length);
  let start = 0;
  while (start < most && words[start] === others[start]) start += 1;
  let end = 0;
  while (end < most - start && words.at(-1 - end) === others.at(-1 - end)) end += 1;
  return (m) => m >= start && m < words.length - end;
}

// Target words, at most MOST of them; marked(m) says whether to mark word m.
export function targetWords(words, marked = () => false, most = MOST) {
  const shown = words.slice(0, most).map((word, m) =>
    h("span", { class: marked(m) ? "word moved" : "word" }, word));
  if (words.length > most) shown.push(h("span", { class: "muted" }, `… and ${words.length - most} more`));
  return shown.length ? shown : [h("span", { class: "muted" }, "(empty)")];
}
const MOST = 60;

// Words of a class: all if they are few, else the first that contain what is typed into a field.
export function searchable(words, show, label) {
  const list = h("span", { class: "picks" });
  const fill = (text) => {
    const matching = words.filter((word) => word.includes(text));
    list.replaceChildren(...(matching.length ? [] : [h("span", { class: "muted" }, "no word contains this")]),
      ...matching.slice(0, FEW).map(show),
      ...(matching.length > FEW ? [h("span", { class: "muted" }, `and ${matching.length - FEW} more`)] : []));
  };
  fill("");
  if (words.length <= FEW) return [list];
  return [h("input", { type: "search", class: "search", "aria-label": label, placeholder: "search", autocomplete: "off", on: { input: (event) => fill(event.target.value.trim()) } }), list];
}
const FEW = 30;

// A wide picture: it is dragged or scrolled, and says so if a part of it is out of sight. The class narrow makes it fit, if there is one.
export function pannable(what, content, { narrow = null, ...props } = {}) {
  const hint = h("p", { class: "note hint", hidden: true }, `${what} is wider than the page: drag it, or use the arrow keys.`);
  const frame = h("div", { class: "scroll pan", ...props }, content);
  let from = null;
  frame.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") from = event.clientX + frame.scrollLeft;
  });
  frame.addEventListener("pointermove", (event) => {
    if (from !== null && event.buttons) frame.scrollLeft = from - event.clientX;
    else from = null;
  });
  const isWide = () => frame.scrollWidth > frame.clientWidth + 1;
  new ResizeObserver(() => {
    if (narrow) content.classList.remove(narrow);
    if (narrow && isWide()) content.classList.add(narrow);
    hint.hidden = !isWide();
  }).observe(frame);
  return [hint, frame];
}

// A table; on a phone, tables of three columns and more become lists of rows with names.
export function plainTable(caption, heads, rows) {
  const side = (cell) => (typeof cell === "number" ? "number" : null);
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", { class: heads.length > 2 ? "plain stacked" : "plain" }, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: side(rows[0]?.[i]) }, head)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, i) => h("td", { class: side(cell), dataset: { name: heads[i] } },
        h("div", {}, typeof cell === "number" ? cell.toLocaleString("en") : cell))))))));
}

// Rows of which the first are shown, and a click shows the others.
export function folded(rows, most, show) {
  if (rows.length <= most) return [show(rows)];
  const more = h("button", { type: "button", class: "chip more", on: { click: () => {
    more.previousElementSibling.replaceWith(show(rows));
    more.remove();
  } } }, `show all ${rows.length}`);
  return [show(rows.slice(0, most)), more];
}

export function count(n, one, many = one + "s") {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
