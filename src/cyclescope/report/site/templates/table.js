"use strict";
// What the page computes: choosing, ordering and writing rows, and kernels. Nothing here touches the document.

/** Cycles or slots as text: one number, two as a range, what is likely and not proved where they are the same. */
function reach(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.length > 1 && value[0] === value[1]) return `probably ${reach(value[0])}`;
  if (Array.isArray(value)) return value.map(reach).join("–");
  return Number.isInteger(value) ? String(value) : String(Math.round(value * 100) / 100);
}

/** What a row is sorted by: the most of a range, after everything else where there is nothing. */
function weight(value) {
  if (value === null || value === undefined || value === "") return null;
  return Array.isArray(value) ? value[value.length - 1] : value;
}

/** The numbers of the rows that a filter lets pass; `texts` are the rows' searched texts, in lower case. */
function chosen(rows, texts, filter) {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let row = 0; row < texts.length; row++) {
    if (filter.extension && rows.words[rows.extension[row]] !== filter.extension) continue;
    if (filter.mnemonic && rows.words[rows.mnemonic[row]] !== filter.mnemonic) continue;
    if (filter.confidence && rows.machines[0].confidence[row] < filter.confidence) continue;
    if (filter.differing && !rows.machines.some((machine) => machine.differs && machine.differs[row])) continue;
    if (words.every((word) => texts[row].includes(word))) found.push(row);
  }
  return found;
}

/** The rows in an order: of the table, or by a column, those without a value last. */
function ordered(rows, found, column, descending) {
  if (!column) return descending ? found.slice().reverse() : found;
  const values = rows.machines[column.machine][column.what];
  const keys = new Map();
  for (const row of found) {
    const key = column.what === "ports" ? rows.words[values[row]] : values[row];
    keys.set(row, weight(key === 0 && column.what === "confidence" ? null : key));
  }
  return found.slice().sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    const sign = x < y ? -1 : x > y ? 1 : 0;
    return (descending ? -sign : sign) || a - b;
  });
}

/** The instructions of a kernel, each with its bytes. */
function instructions(shape, own, shared) {
  return shape.split(" ").map(Number).map((n) => (n < 0 ? own[-1 - n] : shared[n]));
}

/** The experiments of a form as records. */
function experiments(packed, words, shapes) {
  let id = 0;
  const [quantity, source, target, variant, cycles, spread, count, verdict, links, error] = packed.rows;
  return packed.ids.map((step, i) => ({
    id: (id += step), quantity: words[quantity[i]], source: words[source[i]], target: words[target[i]],
    variant: words[variant[i]], cycles: cycles[i], spread: spread[i], count: count[i],
    verdict: words[verdict[i]], links: words[links[i]], error: words[error[i]], shape: shapes[packed.shapes[i]],
  }));
}

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
const VALUES = new Uint8Array(128);
[...DIGITS].forEach((digit, value) => { VALUES[digit.charCodeAt(0)] = value; });

/** The bytes of a text in base 85: five digits are four bytes, an end of fewer digits one byte less. */
function bytesOf(text) {
  const groups = Math.ceil(text.length / 5), padding = groups * 5 - text.length;
  const bytes = new Uint8Array(groups * 4), view = new DataView(bytes.buffer);
  for (let group = 0; group < groups; group++) {
    let value = 0;
    for (let i = group * 5; i < group * 5 + 5; i++) value = value * 85 + (i < text.length ? VALUES[text.charCodeAt(i)] : 84);
    view.setUint32(group * 4, value);
  }
  return bytes.subarray(0, bytes.length - padding);
}

/** A word for a shell, in quotes where it needs them. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\"'\"'") + "'";
}

/** What a latency is, as the text of a cell. */
function latencyText(found) {
  if (found.max === null || found.max === undefined || found.min === null) return "–";
  const values = Object.entries(found.values || {});
  const mark = found.convention ? "*" : "";
  if (values.length) return values.map(([name, value]) => `${name} ${reach(value)}`).join(", ") + mark;
  if (found.kind === "upper_bound") return `≤ ${reach(found.max)}${mark}`;
  return (found.min === found.max ? reach(found.max) : `${reach(found.min)}–${reach(found.max)}`) + mark;
}

/** Latencies of a model as those of a store are. */
function modelled(cost) {
  const pairs = new Map();
  for (const [pair, value] of Object.entries(cost.latencies || {})) pairs.set(pair, [value, value]);
  for (const [pair, ends] of Object.entries(cost.ranges || {})) if (!pairs.has(pair)) pairs.set(pair, ends);
  return [...pairs].map(([pair, [min, max]]) => {
    const [source, target] = pair.split("->");
    return { source, target, min, max, kind: min === 0 && max > 0 ? "upper_bound" : "exact" };
  });
}

/** Sources and targets of latencies as a matrix: targets whose cells are all the same share a column. */
function matrix(latencies) {
  const sources = [...new Set(latencies.map((one) => one.source))];
  const cells = new Map(latencies.map((one) => [`${one.source}\n${one.target}`, one]));
  const groups = new Map();
  for (const target of new Set(latencies.map((one) => one.target))) {
    const column = sources.map((source) => cells.get(`${source}\n${target}`));
    const kind = target.startsWith("flags.") ? "flags" : target;
    const look = (one) => one && [latencyText(one), one.note, one.reason, one.confidence];
    const key = JSON.stringify([kind, column.map(look)]);
    if (!groups.has(key)) groups.set(key, { targets: [], column });
    groups.get(key).targets.push(target);
  }
  return { sources, columns: [...groups.values()] };
}

if (typeof module !== "undefined") {
  module.exports = {
    reach, weight, chosen, ordered, bytesOf, instructions, experiments, quoted, latencyText, modelled, matrix,
  };
}
