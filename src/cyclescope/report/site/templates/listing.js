// The table of all forms: filters, order, and the rows that can be seen.
"use strict";
let rows, texts, found = [], active = 0, filter = {}, order = { column: null, descending: false };

const COLUMNS = [["latency", "latency"], ["throughput", "throughput"], ["slots", "slots"], ["ports", "ports"]];
const WIDTHS = { latency: "7rem", throughput: "8rem", slots: "7rem", ports: "minmax(10rem, 16rem)", confidence: "7.5rem" };
const BITS = { latency: 1, throughput: 2, ports: 12 }; // as `rows.DIFFERS` has them; slots are not compared
const columns = [];

function makeColumns() {
  const names = [...COLUMNS, ["confidence", "confidence"]];
  for (const [what, title] of names) {
    head.machines.forEach((machine, number) => {
      if (what === "confidence" ? machine.measured : machine.has.includes(what)) {
        columns.push({ what, title, machine: number });
      }
    });
  }
  const widths = columns.map((column) => WIDTHS[column.what]);
  byId("table").style.setProperty("--columns", ["var(--form)", "var(--extension)", ...widths].join(" "));
}

function makeHeading() {
  const cell = (title, below, column, kind) => {
    const label = [title, below ? element("small", {}, below) : null];
    const button = element("button", { type: "button", onclick: () => sortBy(column) }, label);
    return element("span", { role: "columnheader", class: kind, "aria-sort": "none", title: below || null }, button);
  };
  const many = head.machines.length > 1;
  const cells = [cell("form", "", null, "form"), element("span", { role: "columnheader", class: "extension" }, "extension")];
  for (const column of columns) {
    const machine = head.machines[column.machine];
    column.heading = cell(column.title, many ? machine.short : "", column, isNumber(column) ? "number" : "");
    cells.push(column.heading);
  }
  byId("heading").append(...cells);
  order.heading = cells[0];
}

const isNumber = (column) => column.what !== "ports" && column.what !== "confidence";

function sortBy(column) {
  order = { column, descending: order.column === column && !order.descending, heading: order.heading };
  for (const other of columns) other.heading.setAttribute("aria-sort", "none");
  const state = order.descending ? "descending" : "ascending";
  order.heading.setAttribute("aria-sort", column ? "none" : state);
  if (column) column.heading.setAttribute("aria-sort", state);
  show();
}

function readFilter() {
  filter = {
    search: byId("search").value,
    extension: byId("extension").value,
    mnemonic: byId("mnemonic").value.trim().toUpperCase(),
    confidence: Number(byId("confidence")?.value || 0),
    differing: Boolean(byId("differing")?.checked),
  };
  const known = rows.words.find((word) => word.toUpperCase() === filter.mnemonic);
  filter.mnemonic = filter.mnemonic && (known || filter.mnemonic);
  remember();
  active = 0;
  byId("viewport").scrollTop = 0;
  show();
}

/** The filter in the address, so that a choice can be sent to somebody. */
function remember() {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value) said.set(name, value);
  history.replaceState(null, "", `#/${said.size || [...said].length ? "?" : ""}${said}`);
}

function restore(text) {
  const said = new URLSearchParams(text);
  for (const name of ["search", "extension", "mnemonic", "confidence"]) {
    if (byId(name)) byId(name).value = said.get(name) || (name === "confidence" ? "0" : "");
  }
  if (byId("differing")) byId("differing").checked = said.has("differing");
}

function show() {
  found = ordered(rows, chosen(rows, texts, filter), order.column, order.descending);
  active = Math.min(active, Math.max(found.length - 1, 0));
  byId("count").textContent = `${found.length.toLocaleString("en")} of ${texts.length.toLocaleString("en")} forms`;
  byId("table").setAttribute("aria-rowcount", found.length + 1);
  byId("empty").hidden = found.length > 0;
  draw();
}

const rowHeight = () => parseFloat(getComputedStyle(byId("heading")).getPropertyValue("--row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);

/** Only the rows that can be seen are elements. */
function draw() {
  const viewport = byId("viewport"), canvas = byId("canvas"), height = rowHeight();
  canvas.style.height = `${found.length * height}px`;
  const first = Math.max(Math.floor(viewport.scrollTop / height) - 8, 0);
  const last = Math.min(Math.ceil((viewport.scrollTop + viewport.clientHeight) / height) + 8, found.length);
  const drawn = [];
  for (let at = first; at < last; at++) drawn.push(rowElement(at, height));
  canvas.replaceChildren(...drawn);
  viewport.setAttribute("aria-activedescendant", found.length ? `row-${active}` : "");
}

function rowElement(at, height) {
  const row = found[at], name = rows.form[row];
  const link = element("a", { href: address(name), tabindex: "-1" }, name);
  const cells = columns.map((column) => dataCell(column, row));
  const made = element("div", {
    class: at === active ? "row active" : "row", role: "row", id: `row-${at}`, "aria-rowindex": at + 2,
    style: `top: ${at * height}px`, onclick: () => { active = at; location.hash = address(name); },
  }, element("span", { role: "cell", class: "form", title: name }, link),
  element("span", { role: "cell", class: "extension soft" }, rows.words[rows.extension[row]]), cells);
  return made;
}

function dataCell(column, row) {
  const machine = rows.machines[column.machine], value = machine[column.what][row];
  const kinds = [isNumber(column) ? "number" : column.what];
  if (machine.differs && machine.differs[row] & BITS[column.what]) kinds.push("differs");
  let text = isNumber(column) ? reach(value) : rows.words[value];
  if (column.what === "confidence") kinds.push(text = head.levels[value]);
  return element("span", { role: "cell", class: kinds.join(" ").trim(), title: column.what === "ports" ? text : null }, text);
}

const address = (name) => `#/form/${encodeURIComponent(name)}`;

function move(event) {
  const page = Math.max(Math.floor(byId("viewport").clientHeight / rowHeight()) - 2, 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -found.length, End: found.length };
  if (event.key === "Enter" && found.length && event.target === byId("viewport")) {
    location.hash = address(rows.form[found[active]]);
  } else if (event.key in steps && event.target === byId("viewport")) {
    event.preventDefault();
    active = Math.min(Math.max(active + steps[event.key], 0), found.length - 1);
    reveal();
    draw();
  }
}

function reveal() {
  const viewport = byId("viewport"), height = rowHeight(), top = active * height;
  const room = viewport.clientHeight - byId("heading").offsetHeight;
  if (top < viewport.scrollTop) viewport.scrollTop = top;
  else if (top + height > viewport.scrollTop + room) viewport.scrollTop = top + height - room;
}
