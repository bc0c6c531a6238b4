// Small charts: bars, lines, stacks and a treemap. Each has a text for those who do not see it.

import { el, svg } from "./dom.js";

const COLOURS = ["", "two", "three", "four"];
export const colour = (at) => COLOURS[at % COLOURS.length];
const percent = (part, whole) => (whole > 0 ? Math.max(0, Math.min(100, (100 * part) / whole)) : 0).toFixed(2) + "%";

// Rows of a name, a bar and a value: `[name, number, text]`.
export function bars(rows, most, tone) {
  const top = most || Math.max(...rows.map((r) => r[1]), 0);
  return el("div", { class: "bars" }, rows.map(([name, value, text]) => [
    el("span", { class: "name" }, el("bdi", {}, name)),
    el("span", { class: "track", "aria-hidden": "true" },
      el("span", { class: "fill " + (tone || ""), style: { width: percent(value, top) } })),
    el("span", { class: "number" }, text),
  ]));
}

// Parts of a whole side by side, with a legend: `[name, number, text]`.
export function stack(parts) {
  const whole = parts.reduce((all, p) => all + p[1], 0);
  return [
    el("div", { class: "stack", "aria-hidden": "true" },
      parts.map(([, value], at) => el("span", { class: "fill " + colour(at), style: { width: percent(value, whole) } }))),
    el("ul", { class: "legend" }, parts.map(([name, , text], at) =>
      el("li", {}, el("span", { class: "key " + colour(at) }), name + " " + text))),
  ];
}

// A line of the last values.
export function sparkline(values, label, width = 120, height = 24) {
  const top = Math.max(...values, 1e-9);
  const x = (at) => (width * at) / Math.max(values.length - 1, 1);
  const y = (value) => height - 1 - ((height - 2) * value) / top;
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    values.length > 1 && svg("polygon", { class: "area", points: `0,${height} ${points.join(" ")} ${width},${height}` }),
    values.length > 1 && svg("polyline", { class: "line", points: points.join(" ") }));
}

// Divides a rectangle among items by size, the largest first, in rows that are as square as can be.
function squarify(items, x, y, width, height, done) {
  if (!items.length) return;
  const total = items.reduce((all, i) => all + i.size, 0);
  const short = Math.min(width, height);
  const scale = (width * height) / total;
  const worst = (row) => {
    const area = row.reduce((all, i) => all + i.size * scale, 0);
    return Math.max(...row.map((i) => Math.max((short * short * i.size * scale) / (area * area),
      (area * area) / (short * short * i.size * scale))));
  };
  let n = 1;
  while (n < items.length && worst(items.slice(0, n + 1)) <= worst(items.slice(0, n))) n += 1;
  const rowItems = items.slice(0, n);
  const thickness = (rowItems.reduce((all, i) => all + i.size, 0) * scale) / short;
  let at = 0;
  for (const item of rowItems) {
    const length = (item.size * scale) / thickness;
    if (width >= height) done(item, x, y + at, thickness, length);
    else done(item, x + at, y, length, thickness);
    at += length;
  }
  const rest = items.slice(n);
  if (width >= height) squarify(rest, x + thickness, y, width - thickness, height, done);
  else squarify(rest, x, y + thickness, width, height - thickness, done);
}

// Items of `{name, size, text, group}`.
export function treemap(items, label) {
  const [width, height] = [900, 320];
  const cells = [];
  const sorted = items.filter((i) => i.size > 0).sort((a, b) => b.size - a.size);
  const groups = [...new Set(sorted.map((i) => i.group))];
  squarify(sorted, 0, 0, width, height, (item, x, y, w, h) => {
    const fits = Math.floor((w - 8) / 7);
    const cut = (text) => (text.length <= fits ? text : text.slice(0, Math.max(fits - 1, 0)) + "…");
    cells.push(svg("g", {}, svg("title", {}, `${item.name}: ${item.text}`),
      svg("rect", { class: "cell " + colour(groups.indexOf(item.group)), x, y, width: w, height: h }),
      fits > 4 && h > 18 && svg("text", { class: "cell-text", x: x + 5, y: y + 15 }, cut(item.name)),
      fits > 4 && h > 36 && svg("text", { class: "cell-text", x: x + 5, y: y + 31 }, cut(item.text))));
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": label }, cells);
}
