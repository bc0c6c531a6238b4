// Draws the outputs of a response: classes as bars, pictures, vectors and tables.

import { el, name } from "./dom.js";
import { bars } from "./charts.js";
import { pictureLayout } from "./inputs.js";

const MOST_BARS = 20;
const MOST_ROWS = 50;
const MOST_COLUMNS = 20;

const declaredOutput = (config, output) => (config.output || []).find((o) => o.name === output) || {};

export const hasLabels = (config, output) => Boolean(declaredOutput(config, output).label_filename);

const shortNumber = (value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value);

// `VALUE:INDEX:LABEL`, as the classification extension has it.
function classRows(data) {
  return data.map((entry) => {
    const [value, index, ...label] = String(entry).split(":");
    return [label.length ? label.join(":") : index, Number(value), String(shortNumber(Number(value)))];
  });
}

function classBars(rows) {
  const low = Math.min(...rows.map((r) => r[1]), 0);
  const top = Math.max(...rows.map((r) => r[1])) - low;
  return bars(rows.map(([label, value, text]) => [label, value - low, text]), top || 1);
}

function picture(data, layout) {
  const { channels, rows, columns, first } = layout;
  const canvas = el("canvas", { width: columns, height: rows, role: "img", "aria-label": `The output as a picture of ${columns} × ${rows}` });
  let [low, high] = [Infinity, -Infinity];
  for (const value of data) { low = Math.min(low, value); high = Math.max(high, value); }
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let at = 0; at < rows * columns; at += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const from = channels === 1 ? 0 : channel;
      const value = data[first ? from * rows * columns + at : at * channels + from];
      image.data[4 * at + channel] = high > low ? (255 * (value - low)) / (high - low) : 0;
    }
    image.data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return el("div", { class: "drop" }, canvas, el("p", { class: "faint" }, `values from ${shortNumber(low)} to ${shortNumber(high)}`));
}

// Rows of the last dimension, with the places in the others.
function tensorTable(data, shape) {
  const columns = shape.length > 1 ? shape[shape.length - 1] : 1;
  const rows = columns > 0 ? data.length / columns : 0;
  const place = (at) => {
    const dims = shape.length > 1 ? shape.slice(0, -1) : shape;
    return "[" + dims.map((size, d) => Math.floor(at / dims.slice(d + 1).reduce((a, b) => a * b, 1)) % size).join(", ") + "]";
  };
  const shown = Array.from({ length: Math.min(rows, MOST_ROWS) }, (_, at) => el("tr", {}, el("th", { scope: "row", class: "mono" }, place(at)),
    data.slice(at * columns, at * columns + Math.min(columns, MOST_COLUMNS)).map((value) => el("td", { class: "mono" }, name(shortNumber(value)))),
    columns > MOST_COLUMNS && el("td", {}, `… ${columns - MOST_COLUMNS} more`)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values" }, el("table", {}, el("tbody", {}, shown)),
    rows > MOST_ROWS && el("p", { class: "faint" }, `… ${rows - MOST_ROWS} more rows`));
}

export function drawOutput(output, config) {
  const { data, shape, datatype } = output;
  const title = el("h3", {}, name(output.name), el("span", { class: "faint" }, ` ${datatype} [${shape.join(", ")}]`));
  if (!data) return el("div", {}, title, el("p", {}, "The response does not carry the values."));
  const isNumeric = datatype !== "BYTES" && datatype !== "BOOL";
  const layout = isNumeric && pictureLayout(shape, "");
  const length = shape[shape.length - 1];
  let body;
  if (hasLabels(config, output.name) && datatype === "BYTES") body = classBars(classRows(data));
  else if (layout) body = picture(data, layout);
  else if (isNumeric && data.length === length && length > 4 && length <= 4096) {
    const rows = data.map((value, at) => [String(at), value, String(shortNumber(value))]).sort((a, b) => b[1] - a[1]);
    body = [classBars(rows.slice(0, MOST_BARS)), rows.length > MOST_BARS && el("p", { class: "faint" }, `the highest ${MOST_BARS} of ${rows.length}`)];
  } else body = tensorTable(data, shape);
  return el("div", {}, title, body);
}
