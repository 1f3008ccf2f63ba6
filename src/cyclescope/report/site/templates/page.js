// Where one is in the page, and its beginning.
"use strict";

function here() {
  const text = location.hash.slice(2);
  if (text.startsWith("form/")) return { view: "form", name: decodeURIComponent(text.slice(5)) };
  if (["findings", "method", "comparison", "core"].includes(text) && byId(text)) return { view: text };
  return { view: "forms", filter: text.startsWith("?") ? text.slice(1) : null };
}

function go() {
  const place = here();
  for (const view of ["forms", "findings", "comparison", "core", "method", "card"]) {
    if (byId(view)) byId(view).hidden = view !== (place.view === "form" ? "card" : place.view);
  }
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href") === (place.view === "forms" ? "#/" : `#/${place.view}`);
    if (own) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  document.title = head.title;
  if (place.view === "form") openForm(place.name).catch(fail);
  if (place.view === "forms" && rows) {
    if (place.filter !== null) { restore(place.filter); readFilter(); } else { remember(); reveal(); draw(); }
    if (document.activeElement !== byId("search") && document.documentElement.dataset.ready) byId("viewport").focus({ preventScroll: true });
  }
}

function fail(error) {
  byId("trouble").textContent = typeof DecompressionStream === "undefined"
    ? "This browser is too old to unpack the page's data: it has no DecompressionStream." : `The page's data cannot be read: ${error.message}`;
  byId("trouble").hidden = false;
}

function shortcut(event) {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); location.hash = "#/"; setTimeout(() => byId("search").focus()); }
  if (event.key === "Escape" && here().view === "form") location.hash = "#/";
  if (event.key === "ArrowDown" && event.target === byId("search")) { event.preventDefault(); byId("viewport").focus(); }
}

async function start() {
  rows = await part("rows");
  texts = rows.form.map((form, row) => `${form} ${rows.names[row]}`.toLowerCase());
  makeColumns();
  makeHeading();
  const extensions = [...new Set(rows.extension)].map((n) => rows.words[n]).sort();
  byId("extension").append(...extensions.map((name) => element("option", { value: name }, name)));
  const mnemonics = [...new Set(rows.mnemonic)].map((n) => rows.words[n]).sort();
  byId("mnemonics").append(...mnemonics.map((name) => element("option", { value: name })));
  for (const id of ["search", "extension", "mnemonic", "confidence", "differing"]) byId(id)?.addEventListener("input", readFilter);
  byId("viewport").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  byId("viewport").addEventListener("keydown", move);
  document.addEventListener("keydown", shortcut);
  window.addEventListener("resize", () => requestAnimationFrame(draw));
  window.addEventListener("hashchange", go);
  const place = here();
  if (place.filter) restore(place.filter);
  filter = { search: "", extension: "", mnemonic: "", confidence: 0, differing: false };
  show();
  go();
  document.documentElement.dataset.ready = "yes";
}

start().catch(fail);
