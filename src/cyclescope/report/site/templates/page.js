"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const head = JSON.parse(byId("head").textContent);
  const waiting = new Map(); // parts in files of their own that are being loaded
  const parts = new Map();
  let rows, texts, shared, found = [], active = 0, filter = {}, order = { column: null, descending: false };

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

  // --- packed data -----------------------------------------------------------------------------------

  async function inflate(text) {
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  /** What a file with a part calls. */
  window.cyclescopePart = (name, text) => waiting.get(name)(text);

  function textOf(name) {
    const inside = byId(`part-${name}`);
    if (inside) return Promise.resolve(inside.textContent);
    return new Promise((resolve, reject) => {
      waiting.set(name, resolve);
      const missing = () => reject(new Error(`parts/${name}.js is missing`));
      document.head.append(element("script", { src: `parts/${name}.js`, onerror: missing }));
    });
  }

  function part(name) {
    if (!parts.has(name)) parts.set(name, textOf(name).then(inflate));
    return parts.get(name);
  }

  // --- the table -------------------------------------------------------------------------------------

  const COLUMNS = [["latency", "latency"], ["throughput", "throughput"], ["slots", "slots"], ["ports", "ports"]];
  const WIDTHS = { latency: "7rem", throughput: "8rem", slots: "5.5rem", ports: "minmax(10rem, 16rem)", confidence: "7.5rem" };
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
      column.heading = cell(column.title, many ? machine.name : "", column, isNumber(column) ? "number" : "");
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

  // --- a card ----------------------------------------------------------------------------------------

  async function openForm(name) {
    const row = rows.form.indexOf(name), card = byId("card");
    if (row < 0) return card.replaceChildren(element("p", {}, `There is no form ${name} here.`));
    const packed = await part(String(Math.floor(row / head.size)));
    if (here().name !== name) return; // another one was opened meanwhile
    const data = packed.forms[row % head.size];
    const tried = data.experiments ? experiments(data.experiments, packed.words, packed.shapes) : [];
    card.replaceChildren(...cardOf(row, data, tried));
    card.scrollTop = 0;
    card.focus({ preventScroll: true });
    document.title = `${name} - ${head.title}`;
  }

  function cardOf(row, data, tried) {
    const timing = data.timing, name = rows.form[row], names = rows.names[row];
    const pairs = timing ? timing.latencies || [] : modelled((data.costs || [])[0] || {});
    const made = [
      element("p", {}, element("a", { href: "#/" }, "← all forms")),
      element("h2", {}, name),
      element("p", { class: "soft" }, [rows.words[rows.extension[row]], names].filter(Boolean).join(" · ")),
    ];
    if (timing && timing.status !== "ok") made.push(element("p", {}, statusText(timing.status)));
    made.push(...answers(data, timing));
    if (pairs.length) made.push(...latencyPart(pairs, tried, data));
    if (timing && timing.notes) made.push(...timing.notes.map((note) => element("p", { class: "soft" }, `Note: ${note}`)));
    made.push(...experimentParts(tried, data.experiments));
    if (head.store) made.push(element("h3", {}, "Measure it here"), command(`cyclescope measure ${quoted(name)}`));
    return made;
  }

  function statusText(status) {
    if (status === "not run") return "This form has not been measured.";
    return status.startsWith("SIGILL") ? `Not executed by this CPU: ${status}` : `It cannot be run alone: ${status}`;
  }

  /** Throughput, slots and ports of every machine. */
  function answers(data, timing) {
    const costs = data.costs || [];
    const said = head.machines.map((machine, number) =>
      number === 0 && timing ? measuredAnswer(timing) : modelAnswer(costs[number]));
    const titles = ["throughput (cycles)", "front-end slots", "ports", "confidence", "remarks"];
    const lines = titles.map((title, line) => [title, ...said.map((one) => one[line])])
      .filter((line) => line.slice(1).some(Boolean));
    if (!lines.length) return [];
    const machines = element("tr", {}, element("td"), head.machines.map((machine) => element("th", { scope: "col" }, machine.name)));
    return [element("div", { class: "scroll" }, element("table", {}, element("thead", {}, machines),
      element("tbody", {}, lines.map(([title, ...cells]) => element("tr", {}, element("th", { scope: "row" }, title),
        cells.map((cell) => element("td", { class: title === "ports" ? "code" : cell in head.marks ? cell : "" }, cell || "")))))))];
  }

  function measuredAnswer(timing) {
    const found = timing.throughput || {};
    const bound = found.kind === "upper_bound" ? "≤ " : "";
    const spread = found.spread !== null && found.spread !== undefined ? ` ± ${reach(found.spread)}` : "";
    const value = found.value === null || found.value === undefined ? "" : `${bound}${reach(found.value)}${spread}`;
    const ways = Object.entries(found.variants || {}).map(([name, cycles]) => `${name} ${reach(cycles)}`).join(", ");
    const others = (timing.ports_alternatives || []).length ? ` or ${timing.ports_alternatives.join(", ")}` : "";
    const by = timing.ports_throughput !== undefined ? ` (${reach(timing.ports_throughput)} cycles by its ports)` : "";
    const remarks = [ways, found.note, found.reason, timing.ports_note, timing.idiom && `with one register for all sources a ${timing.idiom}`];
    const trust = [found.confidence, timing.ports && timing.ports_confidence && `ports ${timing.ports_confidence}`];
    return [value, reach(timing.slots ?? timing.slot_range), timing.ports ? timing.ports + others + by : "",
      trust.filter(Boolean).join(", "), remarks.filter(Boolean).join("; ")];
  }

  function modelAnswer(cost) {
    if (!cost) return ["", "", "", "", ""];
    const others = cost.alternatives ? ` or ${cost.alternatives.join(", ")}` : "";
    const idiom = cost.idiom && `with one register for all sources: ${cost.idiom}`;
    return [reach(cost.throughput), reach(cost.slots), (cost.ports || "") + others, cost.confidence || "",
      [idiom, cost.note].filter(Boolean).join("; ")];
  }

  function latencyPart(pairs, tried, data) {
    const notes = [];
    const shape = matrix(pairs);
    const headings = shape.columns.map((column) => element("th", { scope: "col" }, "→ " + short(column.targets)));
    const body = shape.sources.map((source, line) => element("tr", {}, element("th", { scope: "row" }, source),
      shape.columns.map((column) => matrixCell(column.column[line], tried, notes))));
    const table = element("table", { class: "matrix" }, element("caption", { class: "soft" }, "cycles from a source (row) to a target (column)"),
      element("thead", {}, element("tr", {}, element("td"), headings)), element("tbody", {}, body));
    const list = element("ol", { class: "notes soft" }, notes.map((note, n) => element("li", { id: `note-${n + 1}` }, note)));
    const made = [element("h3", {}, "Latency"), element("div", { class: "scroll" }, table)];
    if (notes.length) made.push(list);
    if (pairs.some((pair) => pair.convention)) made.push(element("p", { class: "soft" }, "* rests on a convention: see how it was measured"));
    return [...made, pairTable(pairs, data)];
  }

  const short = (targets) => targets.length === 1 ? targets[0] : "flags." + targets.map((t) => t.replace("flags.", "")).join(" ");

  function matrixCell(pair, tried, notes) {
    if (!pair) return element("td");
    const remark = [pair.note, pair.reason, pair.confidence && pair.confidence !== "high" && `${pair.confidence} confidence`].filter(Boolean).join("; ");
    let number = 0;
    if (remark) number = notes.includes(remark) ? notes.indexOf(remark) + 1 : notes.push(remark);
    const text = latencyText(pair);
    const own = tried.filter((one) => one.quantity === "latency" && one.source === pair.source && one.target === pair.target);
    const spoken = `${pair.source} to ${pair.target}: ${text}`;
    const value = own.length ? element("button", { type: "button", class: pair.confidence || "", "aria-label": `${spoken}, experiments`, onclick: () => lookAt(own[0].id) }, text)
      : element("span", { class: pair.confidence || "" }, text);
    return element("td", { class: pair.source === pair.target ? "self" : "" }, value, number ? element("sup", {}, String(number)) : null);
  }

  function pairTable(pairs, data) {
    const others = head.machines.slice(1).map((machine, n) => [machine.name, new Map(modelled((data.costs || [])[n + 1] || {}).map((p) => [`${p.source}\n${p.target}`, p]))]);
    const line = (pair) => {
      const bypass = Object.entries(pair.bypass || {}).map(([name, value]) => `to ${name} ${reach(value)}`);
      const bounds = pair.bounds ? `${reach(pair.bounds)} proved` : "";
      const basis = pair.convention ? `rests on ${pair.convention}` : "";
      const spread = pair.spread === null || pair.spread === undefined ? "" : `± ${reach(pair.spread)}`;
      return element("tr", {}, element("th", { scope: "row" }, `${pair.source} → ${pair.target}`),
        element("td", { class: "number" }, latencyText(pair)), element("td", { class: "number" }, spread),
        element("td", { class: pair.confidence || "" }, pair.confidence || ""),
        others.map(([, known]) => element("td", { class: "number" }, known.has(`${pair.source}\n${pair.target}`) ? latencyText(known.get(`${pair.source}\n${pair.target}`)) : "")),
        element("td", {}, [pair.note, pair.reason, basis, bounds, ...bypass].filter(Boolean).join("; ")));
    };
    const titles = ["pair", head.machines[0].name, "spread", "confidence", ...others.map(([name]) => name), "remarks"];
    const table = element("table", {}, element("thead", {}, element("tr", {}, titles.map((title) => element("th", { scope: "col" }, title)))),
      element("tbody", {}, pairs.map(line)));
    return element("details", { open: others.length > 0 }, element("summary", {}, `Every pair (${pairs.length})`), element("div", { class: "inside scroll" }, table));
  }

  // --- experiments -----------------------------------------------------------------------------------

  const GROUPS = [["Throughput", ["throughput"]], ["Latency", ["latency"]], ["Front-end slots", ["slots", "fetch", "width"]], ["Ports", ["ports", "alone", "pairs", "order"]]];

  function experimentParts(tried, packed) {
    if (!tried.length) return [];
    const known = GROUPS.flatMap(([, names]) => names);
    const groups = [...GROUPS, ["Others", [...new Set(tried.map((one) => one.quantity))].filter((name) => !known.includes(name))]];
    const made = groups.map(([title, names]) => {
      const some = tried.filter((one) => names.includes(one.quantity));
      if (!some.length) return null;
      const inside = element("div", { class: "inside" });
      const fill = () => { if (!inside.childElementCount) inside.append(...some.map((one) => experiment(one, packed))); };
      return element("details", { ontoggle: fill, "data-ids": some.map((one) => one.id).join(" "), onfill: fill }, element("summary", {}, `${title} (${some.length})`), inside);
    });
    return [element("h3", {}, "Experiments"), ...made.filter(Boolean)];
  }

  function experiment(one, packed) {
    const inside = element("div", { class: "inside" });
    const fill = async () => {
      if (inside.childElementCount) return;
      shared = shared || await part("lines");
      const code = instructions(one.shape, packed.own, shared);
      if (inside.childElementCount) return;
      inside.append(...[
        one.error && element("p", {}, one.error), one.links && element("p", { class: "soft" }, `minus the links ${one.links}`),
        element("pre", { tabindex: "0" }, code.map(([text]) => text).join("\n")),
        element("p", { class: "code bytes soft" }, `code ${code.map(([, bytes]) => bytes).join("")}`),
        command(`cyclescope bench --rerun ${one.id} --store ${quoted(head.store)}`),
      ].filter(Boolean));
    };
    const per = one.count > 1 ? ` / ${one.count} instances` : "";
    const asked = one.target ? `${one.source} → ${one.target}` : one.source ? `beside ${one.source}` : "";
    const title = `${[one.quantity, asked].filter(Boolean).join(" ")}${one.variant ? `, ${one.variant}` : ""}: ${reach(one.cycles)} cycles${per} ± ${reach(one.spread)} (${one.verdict})`;
    return element("details", { id: `experiment-${one.id}`, ontoggle: fill }, element("summary", {}, title), inside);
  }

  function lookAt(id) {
    const group = [...document.querySelectorAll("details[data-ids]")].find((one) => one.dataset.ids.split(" ").includes(String(id)));
    group.dispatchEvent(new Event("fill"));
    group.open = true;
    const one = byId(`experiment-${id}`);
    one.open = true;
    one.scrollIntoView({ block: "center" });
    one.querySelector("summary").focus({ preventScroll: true });
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

  // --- where one is ----------------------------------------------------------------------------------

  function here() {
    const text = location.hash.slice(2);
    if (text.startsWith("form/")) return { view: "form", name: decodeURIComponent(text.slice(5)) };
    if (["findings", "method", "comparison"].includes(text) && byId(text)) return { view: text };
    return { view: "forms", filter: text.startsWith("?") ? text.slice(1) : null };
  }

  function go() {
    const place = here();
    for (const view of ["forms", "findings", "comparison", "method", "card"]) {
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
})();
