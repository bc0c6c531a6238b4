// Fields for the inputs of a model: shape, numbers, strings, pictures, random values.

import { el } from "./dom.js";

// More values are not shown as text.
const MAX_SHOWN = 2048;
// An input of more values is not for a form.
const MAX_VALUES = 1 << 24;

const isFloat = (type) => /^(FP|BF)/.test(type);
const RANGES = { UINT8: [0, 255], INT8: [-128, 127] };

function randomValue(type) {
  if (type === "BOOL") return Math.random() < 0.5;
  if (isFloat(type)) return Math.round(Math.random() * 1e4) / 1e4;
  const [low, high] = RANGES[type] || [0, 100];
  return low + Math.floor(Math.random() * (high - low + 1));
}

function parseValue(text, type) {
  if (type === "BOOL") {
    if (/^(true|1)$/i.test(text)) return true;
    if (/^(false|0)$/i.test(text)) return false;
  } else if (isFloat(type)) {
    const number = Number(text);
    if (text !== "" && Number.isFinite(number)) return number;
  } else if (/^-?\d+$/.test(text)) {
    // Beyond 2^53 a number of JavaScript would be another one.
    if (Number.isSafeInteger(Number(text))) return Number(text);
    throw new Error(`${text} has more digits than this form can send exactly; use a client library.`);
  }
  throw new Error(`“${text}” is not a value of type ${type}.`);
}

// Where a picture goes: rows, columns, channels, and whether channels come first.
export function pictureLayout(shape, format) {
  const dims = shape.slice();
  while (dims.length > 3 && dims[0] === 1) dims.shift();
  if (dims.length !== 3 || dims.some((d) => d < 1)) return null;
  const isChannels = (d) => d === 1 || d === 3;
  const first = format === "FORMAT_NCHW" || (format !== "FORMAT_NHWC" && isChannels(dims[0]) && dims[1] >= 4 && dims[2] >= 4);
  const [channels, rows, columns] = first ? dims : [dims[2], dims[0], dims[1]];
  return isChannels(channels) && rows >= 4 && columns >= 4 ? { channels, rows, columns, first } : null;
}

// Values of a picture that is scaled to the layout; black becomes `low`, white `high`.
function pictureValues(canvas, layout, [low, high], type) {
  const { channels, rows, columns, first } = layout;
  const pixels = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, columns, rows).data;
  const values = new Array(rows * columns * channels);
  for (let at = 0; at < rows * columns; at += 1) {
    const rgb = [pixels[4 * at], pixels[4 * at + 1], pixels[4 * at + 2]];
    const shown = channels === 3 ? rgb : [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]];
    shown.forEach((value, channel) => {
      const scaled = low + ((high - low) * value) / 255;
      values[first ? channel * rows * columns + at : at * channels + channel] = isFloat(type)
        ? Math.round(scaled * 1e5) / 1e5 : Math.round(scaled);
    });
  }
  return values;
}

function picturePart(layout, type, onValues) {
  const canvas = el("canvas", { width: layout.columns, height: layout.rows, role: "img", "aria-label": "The picture, scaled to the input" });
  const low = el("input", { type: "number", step: "any", value: "0", size: 5 });
  const high = el("input", { type: "number", step: "any", value: type === "UINT8" ? "255" : "1", size: 5 });
  const problem = el("p", { class: "error" });
  let picture = null;
  function use() {
    if (!picture) return;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "#000";
    context.fillRect(0, 0, layout.columns, layout.rows);
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, 0, 0, layout.columns, layout.rows);
    onValues(pictureValues(canvas, layout, [Number(low.value), Number(high.value)], type));
  }
  async function read(file) {
    problem.textContent = "";
    try {
      picture = await createImageBitmap(file);
      use();
    } catch { problem.textContent = "The file is not a picture that this browser reads."; }
  }
  low.onchange = high.onchange = use;
  const choose = el("input", { type: "file", accept: "image/*", onchange: () => choose.files[0] && read(choose.files[0]) });
  const drop = el("div", { class: "drop" },
    el("label", {}, `Drop a picture here, or choose one: it is scaled to ${layout.columns} × ${layout.rows}, ${layout.channels === 1 ? "grey" : "colours"} `, choose),
    el("div", {}, el("label", {}, "black is ", low), el("label", {}, "white is ", high)), canvas, problem);
  drop.ondragover = (event) => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
  };
  return drop;
}

// The form of one input: `node`, and `value()` as a member of the request. Sizes that are not
// fixed begin with 1.
export function inputForm(input, config) {
  const type = input.datatype;
  const declared = (config.input || []).find((i) => i.name === input.name) || {};
  const sizes = input.shape.map((size, at) => (size >= 0 ? size
    : el("input", { type: "number", min: "0", value: at === 0 && config.max_batch_size > 0 ? "1" : "4", "aria-label": `size ${at + 1} of ${input.name}` })));
  const shape = () => sizes.map((size) => (typeof size === "number" ? size : Math.max(0, Math.floor(Number(size.value)))));
  const total = () => shape().reduce((all, d) => all * d, 1);
  let values = null;
  const text = el("textarea", { rows: type === "BYTES" ? 3 : 2, spellcheck: "false", "aria-label": `values of ${input.name}` });
  const summary = el("p", { class: "faint" });
  text.oninput = () => { values = null; summary.textContent = ""; };

  function set(list, what) {
    values = list;
    const isShort = list.length <= MAX_SHOWN;
    text.value = !isShort ? "" : type === "BYTES" ? list.join("\n") : list.join(" ");
    summary.textContent = `${list.length} values: ${what}`;
  }
  function random() {
    if (total() > MAX_VALUES) { summary.textContent = "Too many values for this form."; return; }
    set(Array.from({ length: total() }, () => (type === "BYTES" ? `text ${Math.floor(Math.random() * 1000)}` : randomValue(type))), "random");
  }
  const zeros = () => set(Array.from({ length: total() }, () => (type === "BYTES" ? "" : type === "BOOL" ? false : 0)), "zeros");
  sizes.forEach((size) => { if (typeof size !== "number") size.onchange = random; });

  function typed() {
    if (type === "BYTES") return text.value === "" && total() !== 1 ? [] : text.value.split("\n");
    return text.value.split(/[\s,;]+/).filter((word) => word !== "").map((word) => parseValue(word, type));
  }

  // The last size that is not fixed follows the number of values.
  function fitShape(length) {
    const free = sizes.findLast((size) => typeof size !== "number");
    if (!free || length === total()) return;
    free.value = "1";
    const rest = total();
    if (rest > 0 && length % rest === 0) free.value = String(length / rest);
  }

  function value() {
    const data = values || typed();
    if (declared.optional && data.length === 0) return null;
    fitShape(data.length);
    if (data.length !== total()) {
      throw new Error(`Input ${input.name}: shape [${shape().join(", ")}] has ${total()} values, found ${data.length}.`);
    }
    return { name: input.name, datatype: type, shape: shape(), data };
  }

  // The first size is that of the batch, which the configuration does not count.
  const layout = type === "BYTES" || type === "BOOL" ? null : pictureLayout(shape(), declared.format);
  const node = el("div", {}, el("p", { class: "faint" }, type, " [", sizes.flatMap((size, at) => [at ? ", " : "", size]), "]",
    declared.optional && ", optional: leave it empty to leave it out", type === "BYTES" && "; one text a line"),
  layout && picturePart(layout, type, (list) => set(list, "the picture")), text, summary,
  el("div", {}, el("button", { type: "button", onclick: random }, "Random values"), " ", el("button", { type: "button", onclick: zeros }, type === "BYTES" ? "Empty" : "Zeros")));
  if (!declared.optional) random();
  return { title: input.name, node, value };
}
