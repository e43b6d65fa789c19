// Requests to the server. Responses are cached while the page is open.

const cache = new Map();

export class Problem extends Error {}

export async function get(path, params = {}, { fresh = false } = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined) query.append(name, one);
    }
  }
  const text = query.toString();
  const url = text ? `${path}?${text}` : path;
  if (!fresh && cache.has(url)) return cache.get(url);
  let response;
  try {
    response = await fetch(url, { headers: { accept: "application/json" } });
  } catch {
    throw new Problem("The server does not answer. Is equitrans explore still running?");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(content.error || `The server answered ${response.status}.`);
  if (!fresh) {
    if (cache.size > 500) cache.clear();
    cache.set(url, content);
  }
  return content;
}

export const ofRun = (run, what, params, options) =>
  get(`/api/models/${encodeURIComponent(run)}/${what}`, params, options);
