// The page: reads the address, asks the server, and shows one model or two models side by side.

import { get, ofRun } from "./api.js";
import { byId, differing, h, note, problem } from "./dom.js";
import { differencesView, errorsView } from "./errors.js";
import { orbitsView } from "./orbits.js";
import { alignmentView, derivationView, tableView } from "./pictures.js";
import { answerView, swapView } from "./sentence.js";
import { summaryView } from "./summary.js";
import { follow, go, onChange, readAddress, state, toCommand } from "./state.js";
import { wordsView } from "./words.js";

const TABS = [
  ["summary", "Summary", summaryView, false],
  ["alignment", "Alignment", alignmentView, true],
  ["table", "Table", tableView, false],
  ["orbits", "Orbits", orbitsView, true],
  ["derivation", "Derivation", derivationView, true],
  ["words", "Words", wordsView, false],
  ["errors", "Errors", errorsView, false],
];

let models = [];
let turn = 0;
let timer = 0;

// The page opens on the summary, and a command on its alignment.
const tab = () => TABS.find(([name]) => name === state.tab) ?? TABS[state.command.trim() ? 1 : 0];

// The chosen models, with their added words.
async function chosen() {
  const names = [state.run || models[0].name];
  if (state.with && state.with !== names[0]) names.push(state.with);
  return Promise.all(names.map(async (name) => {
    const model = models.find((one) => one.name === name);
    if (!model) {
      return { name, classes: [], trouble: `There is no model '${name}' here.` };
    }
    if (!state.add.length) return model;
    try {
      const { classes } = await ofRun(name, "added", { add: state.add });
      return { ...model, classes };
    } catch (error) {
      return { ...model, trouble: error.message };
    }
  }));
}

async function render() {
  const mine = ++turn;
  clearTimeout(timer);
  renderChoices();
  const shown = await chosen();
  if (mine !== turn) return;
  if (state.add.length && shown[0].about) renderPicks(shown[0]);
  const answers = shown.map((model) => pane(model, shown.length > 1, () => answerOf(model)));
  const views = viewsOf(shown, mine);
  const first = views.length - answers.length;
  await Promise.all([
    fill(byId("answers"), answers, mine),
    fill(byId("views"), views.map((view, i) => (i < first ? view : once(view, answers[i - first]))), mine),
  ]);
  if (mine === turn) await renderVerdict(shown, mine);
}

// One view per model; with two models, another one stands before the errors: where the models differ.
function viewsOf(shown, mine) {
  const views = shown.map((model) => pane(model, false, () => viewOf(model, mine)));
  if (shown.length > 1 && tab()[0] === "errors" && !shown.some((model) => model.trouble)) {
    views.unshift(pane({ ...shown[0], name: "differences", wide: true }, false, () => differencesView(shown, againIn(mine))));
  }
  return views;
}

// An error or a refusal is shown once, above the view.
async function once(view, answer) {
  const told = (element) => element.querySelector(":scope > .problem")?.textContent;
  const [below, above] = await Promise.all([view, answer]);
  if (told(below) && told(above)?.endsWith(told(below))) below.replaceChildren(note(state.command.trim() ? "There is nothing to show for this command." : "There is nothing to show."));
  return below;
}

// Each pane appears when it is ready. Until then the previous one stays; it fades after 150 ms.
async function fill(place, panes, mine) {
  place.classList.toggle("two", panes.length > 1);
  const slots = panes.map((_, i) => place.children[i] ?? h("article", { class: "pane" }, note("Working…")));
  place.replaceChildren(...slots);
  await Promise.all(panes.map(async (pane, i) => {
    const pale = setTimeout(() => slots[i].classList.add("waiting"), 150);
    const ready = await pane;
    clearTimeout(pale);
    if (mine === turn) slots[i].replaceWith(ready);
  }));
}

// Render the lower half only, for a view that refreshes itself.
async function renderViews(mine) {
  const shown = await chosen();
  const views = await Promise.all(viewsOf(shown, mine));
  if (mine === turn) byId("views").replaceChildren(...views);
}

async function pane(model, named, make) {
  const content = [];
  try {
    if (model.trouble) throw new Error(model.trouble);
    content.push(...(await make()));
  } catch (error) {
    content.push(problem(error.message, ...wayOut(error.message, model)));
  }
  return h("article", { class: model.wide ? "pane wide" : "pane", "aria-label": model.name },
    named ? h("h2", {}, model.name, h("small", {}, model.about ?? "")) : null, content.flat());
}

// Links that repair an error, if there are any.
function wayOut(message, model) {
  if (!models.some((one) => one.name === model.name)) {
    const side = model.name === state.with ? "with" : "run";
    return models.map((one) => h("a", { class: "chip", ...follow({ [side]: one.name }) }, one.name));
  }
  const [, wrong, right] = /^unknown word '(.+)'; did you mean '(.+)'\?$/.exec(message) ?? [];
  if (!right) {
    return /^unknown word '/.test(message) && model.classes.length
      ? [h("a", { class: "chip", ...follow({ tab: "words", new: /^unknown word '(.+?)'/.exec(message)[1] }) }, "add it to a class")] : [];
  }
  const mended = state.command.split(/\s+/).map((word) => (word === wrong ? right : word)).join(" ");
  return [h("a", { class: "chip", ...follow(toCommand(mended)) }, mended)];
}

async function answerOf(model) {
  if (!state.command.trim()) return [];
  const answer = await ofRun(model.name, "answer", { command: state.command, add: state.add });
  const shown = answerView(model, answer);
  return answer.reason === null ? [...shown, ...(await swapView(model))]
    : [...shown, problem(`The model refuses this command: ${answer.reason}`, ...wayOut(answer.reason, model))];
}

async function viewOf(model, mine) {
  const [, , view, needsCommand] = tab();
  if (needsCommand && !state.command.trim()) {
    return [note("Type a command above, or pick one.")];
  }
  return view(model, againIn(mine));
}

const againIn = (mine) => (delay) => {
  clearTimeout(timer);
  timer = setTimeout(() => { if (mine === turn) renderViews(mine); }, delay);
};

async function renderVerdict(shown, mine) {
  const verdict = byId("verdict");
  verdict.hidden = true;
  if (shown.length < 2 || !state.command.trim() || shown.some((model) => model.trouble)) return;
  const said = await Promise.all(shown.map((model) =>
    ofRun(model.name, "answer", { command: state.command, add: state.add }).catch(() => null)));
  if (mine !== turn || said.includes(null)) return;
  const [one, other] = said.map((answer) => JSON.stringify(answer.best[0]?.words ?? null));
  verdict.textContent = one === other ? "Both predictions are the same." : "The predictions differ.";
  verdict.classList.toggle("differ", one !== other);
  verdict.hidden = false;
  const [left, right] = [...byId("answers").querySelectorAll(".said")].map((said) => [...said.querySelectorAll(".word")]);
  if (!left || !right) return;
  for (const [here, there] of [[left, right], [right, left]]) {
    const marked = differing(...[here, there].map((words) => words.map((word) => word.textContent)));
    here.forEach((word, m) => word.classList.toggle("moved", marked(m)));
  }
}

function renderChoices() {
  const name = state.run || models[0].name;
  byId("run").value = name;
  byId("with").replaceChildren(h("option", { value: "" }, "nothing"),
    ...models.filter((one) => one.name !== name).map((one) => h("option", { value: one.name }, one.name)));
  byId("with").value = models.some((one) => one.name === state.with) ? state.with : "";
  if (document.activeElement !== byId("command") || byId("command").value.trim() !== state.command.trim()) {
    byId("command").value = state.command;
  }
  const [current] = tab();
  for (const button of byId("tabs").children) {
    const here = button.dataset.tab === current;
    button.setAttribute("aria-selected", String(here));
    button.tabIndex = here ? 0 : -1;
    if (!here) continue;
    byId("panel").setAttribute("aria-labelledby", button.id);
    const strip = byId("tabs");
    strip.scrollLeft = Math.max(0, button.offsetLeft - strip.offsetLeft - strip.clientWidth / 3);
  }
  document.title = `${state.command ? `${state.command} · ` : ""}${name} · equitrans explorer`;
  renderPicks(models.find((one) => one.name === name));
}

async function renderPicks(model) {
  if (!model) return byId("picks").replaceChildren();
  const chips = (label, texts, make) => [h("span", { class: "muted" }, label), ...texts.map((text) =>
    h("button", { type: "button", class: "chip", on: { click: () => go(toCommand(make(text))) } }, text))];
  if (!state.command.trim()) {
    const { commands } = await ofRun(model.name, "commands", { like: "" }).catch(() => ({ commands: [] }));
    if (state.command.trim()) return;
    byId("picks").replaceChildren(...(commands.length
      ? chips("try", commands.slice(0, 6), (text) => text)
      : chips("words", model.words.slice(0, 24), (word) => word)));
    return;
  }
  byId("picks").replaceChildren(h("span", { class: "muted" }, `${model.about} · ${
    model.classes.length ? model.classes.map((c) => `${c.name} (${c.source.length || "new words"})`).join(", ") : "no classes"} · ${
    model.equivariant ? "equivariant by construction" : "not equivariant"}`));
}

async function suggest() {
  const name = state.run || models[0].name;
  const { commands } = await ofRun(name, "commands", { like: byId("command").value }).catch(() => ({ commands: [] }));
  byId("commands").replaceChildren(...commands.map((command) => h("option", { value: command })));
}

function listen() {
  let typing = 0;
  const input = byId("command");
  const take = () => {
    const command = input.value.trim();
    if (command !== state.command) go(toCommand(command), { replace: true });
  };
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { take(); suggest(); }, 250);
  });
  input.addEventListener("change", () => { clearTimeout(typing); take(); });
  byId("run").addEventListener("change", (event) => go({ run: event.target.value, add: [], from: "", target: "", template: "", page: "", with: state.with === event.target.value ? "" : state.with }));
  byId("with").addEventListener("change", (event) => go({ with: event.target.value }));
  byId("theme").addEventListener("click", changeTheme);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = TABS.indexOf(tab());
    const next = event.key === "Home" ? 0 : event.key === "End" ? TABS.length - 1
      : step ? (at + step + TABS.length) % TABS.length : -1;
    if (next < 0) return;
    event.preventDefault();
    go({ tab: TABS[next][0] });
    byId(`tab-${TABS[next][0]}`).focus();
  });
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* the browser may forbid storage */ }
}

async function loadModels() {
  ({ models } = await get("/api/models", {}, { fresh: true }));
  byId("run").replaceChildren(...models.map((model) => h("option", { value: model.name }, model.name)));
}

async function begin() {
  try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* the browser may forbid storage */ }
  readAddress();
  byId("tabs").replaceChildren(...TABS.map(([name, title]) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", dataset: { tab: name },
    on: { click: () => go({ tab: name }) },
  }, title)));
  byId("views").replaceChildren(note("Loading…"));
  try {
    await loadModels();
  } catch (error) {
    byId("views").replaceChildren(problem(error.message));
    return;
  }
  addEventListener("models", () => loadModels().then(renderChoices));
  listen();
  onChange(render);
  await render();
  suggest();
}

begin();
