// The card of one form: throughput, ports and latencies of every machine.
"use strict";

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
