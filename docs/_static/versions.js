// Fill the select of versions from versions.json, which lies beside the folders of the versions
// (docs/versions.py). Without that file, as in a local build, the select has this version only.
addEventListener("DOMContentLoaded", async () => {
  const part = document.querySelector(".versions");
  const select = part.querySelector("select");
  const here = select.value;
  const site = new URL(part.dataset.site || "./", location.href);
  const answer = await fetch(new URL("versions.json", site)).catch(() => null);
  if (!answer?.ok) return;
  const { versions } = await answer.json();
  select.replaceChildren(...versions.map((name) => new Option(name, name, name === here, name === here)));
  select.addEventListener("change", () => {
    // A page may be missing in the other version: then its first page is opened.
    const page = location.pathname.slice(new URL(`${here}/`, site).pathname.length);
    const target = new URL(`${select.value}/${page}`, site);
    fetch(target, { method: "HEAD" }).then((found) => {
      location.href = found.ok ? target.href : new URL(`${select.value}/`, site).href;
    });
  });
});
