// The experiments behind the numbers of a card.
"use strict";
let shared; // lines of code that several parts have

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
