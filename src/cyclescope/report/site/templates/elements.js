// Elements of the page, and what was said of the machines at its beginning.
"use strict";
const byId = (id) => document.getElementById(id);
const head = JSON.parse(byId("head").textContent);

/** An element with attributes and children; texts are text, whatever is in them. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function command(text) {
  const button = element("button", { type: "button", onclick: () => copy(text, button) }, "copy");
  return element("div", { class: "command" }, element("code", {}, text), button);
}

async function copy(text, button) {
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  const worked = done || copyBySelection(text);
  button.textContent = worked ? "copied" : "select it by hand";
  setTimeout(() => { button.textContent = "copy"; }, 2000);
}

function copyBySelection(text) {
  const area = element("textarea", { style: "position: fixed; opacity: 0" });
  area.value = text;
  document.body.append(area);
  area.select();
  const worked = document.execCommand("copy");
  area.remove();
  return worked;
}
