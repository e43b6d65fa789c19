// The state of the page. The address contains all of it, so every view is a link.

const SINGLE = ["run", "with", "command", "tab", "from", "target", "epoch", "template", "page", "new"];
const listeners = [];

export const state = {};

export function readAddress() {
  const params = new URLSearchParams(location.search);
  for (const name of SINGLE) state[name] = params.get(name) ?? "";
  state.add = params.getAll("add");
}

export function address(changes = {}) {
  const next = { ...state, ...changes };
  const params = new URLSearchParams();
  for (const name of SINGLE) if (next[name]) params.set(name, next[name]);
  for (const word of next.add) params.append("add", word);
  return `?${params}`;
}

export function go(changes, { replace = false } = {}) {
  const link = address(changes);
  Object.assign(state, changes);
  if (replace) history.replaceState(null, "", link);
  else if (link !== location.search) history.pushState(null, "", link);
  for (const listener of listeners) listener();
}

// A link that does not load the page again.
export function follow(changes) {
  return {
    href: address(changes),
    on: {
      click: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(changes);
      },
    },
  };
}

export function onChange(listener) {
  listeners.push(listener);
  addEventListener("popstate", () => {
    readAddress();
    listener();
  });
}

// Change the command, and reset everything that belongs to the previous one.
export const toCommand = (command, more = {}) =>
  ({ command, from: "", target: "", epoch: "", new: "", ...more });
