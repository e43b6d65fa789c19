// The family of a command, now or at a recorded epoch of training.

import { ofRun } from "./api.js";
import { count, h, note } from "./dom.js";
import { follow, state, toCommand } from "./state.js";

export async function orbitsView(model) {
  const recorded = await ofRun(model.name, "recorded");
  const current = state.command.trim().replace(/\s+/g, " ");
  const covers = recorded.sources.includes(current);
  const parts = [h("p", { class: "intro" },
    "All commands of the same form. The commands in an inner box are one orbit in theory: the group takes each to each. The commands in an outer box have the same likelihood under this model.")];
  if (covers && !state.add.length) {
    parts.push(...(await overTime(model, recorded)));
    return parts;
  }
  const found = await ofRun(model.name, "orbits", { command: state.command, add: state.add });
  if (found.missing) parts.splice(0, 1, note(found.missing));
  else parts.push(summary(found.members, found.promised), boxes(found.members));
  if (recorded.sentence) {
    parts.push(note("This run recorded ",
      h("a", follow(toCommand(recorded.sentence)), recorded.sentence), " through training."));
  } else if (!model.has_derivations) {
    parts.push(note(`${recorded.missing} To see orbits form, train with `,
      h("code", {}, `equitrans train … --orbits "${current}" --orbits-every 2`), "."));
  }
  return parts;
}

async function overTime(model, recorded) {
  const { moments } = recorded;
  const wanted = moments.findIndex((moment) => String(moment.epoch) === state.epoch);
  let at = wanted < 0 ? moments.length - 1 : wanted;
  const body = h("div", { "aria-live": "polite" });
  const label = h("output", { for: "epoch" });
  const strip = h("div", { class: "strip", "aria-hidden": "true" }, moments.map((moment, i) =>
    h("i", { class: "moment", on: { click: () => move(i) } }, sizes(moment.observed).map((size) =>
      h("b", { style: { "flex-grow": String(size) } })))));
  const slider = h("input", {
    type: "range", id: "epoch", min: "0", max: String(moments.length - 1), step: "1", value: String(at),
    "aria-label": "epoch", on: { input: () => move(Number(slider.value)) },
  });

  function move(i) {
    at = i;
    slider.value = String(i);
    const moment = moments[i];
    label.textContent = `epoch ${moment.epoch}`;
    slider.setAttribute("aria-valuetext", label.textContent);
    [...strip.children].forEach((child, n) => child.classList.toggle("here", n === i));
    const members = recorded.sources.map((source, n) => ({
      source, loss: moment.losses[n], observed: moment.observed[n], theoretical: recorded.theoretical[n],
    }));
    body.replaceChildren(summary(members, model.equivariant), boxes(members));
    const link = i === moments.length - 1 ? "" : String(moment.epoch);
    if (state.epoch !== link) {
      state.epoch = link;
      const url = new URL(location.href);
      if (link) url.searchParams.set("epoch", link);
      else url.searchParams.delete("epoch");
      history.replaceState(null, "", url);
    }
  }
  move(at);
  return [h("div", { class: "epochs", style: { "--n": String(moments.length) } }, label, strip, slider,
    h("small", {}, "A column is a recorded epoch, and each of its blocks an observed orbit.")), body];
}

function sizes(numbers) {
  const found = new Map();
  for (const n of numbers) found.set(n, (found.get(n) ?? 0) + 1);
  return [...found.values()].sort((a, b) => b - a);
}

const listed = (all) => {
  const by = new Map();
  for (const size of all) by.set(size, (by.get(size) ?? 0) + 1);
  return [...by].map(([size, n]) => `${n} × ${size}`).join(" + ");
};

function summary(members, promised) {
  const inFact = listed(sizes(members.map((m) => m.observed)));
  const inTheory = listed(sizes(members.map((m) => m.theoretical)));
  return h("p", { class: "count" }, h("b", {}, count(members.length, "pair")),
    promised ? ` · in theory ${inTheory}` : " · this model guarantees no orbits", ` · observed ${inFact}`);
}

function boxes(members) {
  const outer = group(members, "observed");
  return h("div", { class: "orbits" }, outer.map((orbit) => {
    const losses = orbit.map((m) => m.loss).filter((loss) => loss !== null);
    const loss = losses.length ? Math.min(...losses).toPrecision(5) : "∞";
    return h("section", { class: "orbit", "aria-label": `observed orbit of ${count(orbit.length, "pair")}` },
      h("h3", {}, count(orbit.length, "pair"), h("small", {}, `−log p ${loss}`)),
      h("div", { class: "inner" }, group(orbit, "theoretical").map((part) => h("ul", { class: part.length > 12 ? "tall" : null },
        part.map((m) => h("li", {}, h("a", {
          ...follow(toCommand(m.source)), title: m.target ?? null,
          "aria-current": m.source === state.command ? "true" : null,
        }, m.source)))))));
  }));
}

function group(members, by) {
  const parts = new Map();
  for (const member of members) {
    if (!parts.has(member[by])) parts.set(member[by], []);
    parts.get(member[by]).push(member);
  }
  return [...parts.values()];
}
