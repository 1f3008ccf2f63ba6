// Packed data: inside the page, or in files beside it that are loaded when they are wanted.
"use strict";
const waiting = new Map(); // parts in files of their own that are being loaded
const parts = new Map();

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
