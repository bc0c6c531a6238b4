// View 1: all models, what they do now, and what to change.

import { el, name, row, show, table } from "./dom.js";
import { bars, sparkline } from "./charts.js";
import { ago, bytes, count, duration, sum } from "./format.js";
import { getJson, part } from "./api.js";
import { keyOf } from "./main.js";

const MOST_ROWS = 200;
const MOST_REASON = 240;
const MEMORY_INTERVAL = 5000;
const HEADS = ["Model", "State", "Requests/s", "p50 / p99", "Queue", "Batches", "Errors", "Memory"];

const TONES = { READY: "good", LOADING: "busy", UNLOADING: "busy", UNAVAILABLE: "bad" };

export function stateText(model) {
  const unloaded = model.state === "UNAVAILABLE" && model.reason === "unloaded";
  return el("span", { class: "state " + (unloaded ? "faint" : TONES[model.state] || "") }, unloaded ? "UNLOADED" : model.state);
}

export const linkTo = (model) => `#/model/${part(model.id || model.name)}/${part(model.version || "")}`;

export function errorTexts(counts) {
  const found = Object.entries(counts.failures || {});
  if (counts.refused) found.push(["refused", counts.refused]);
  if (counts.cancelled) found.push(["cancelled", counts.cancelled]);
  return found;
}

export function queueText(queue) {
  return `${queue.waiting} waiting${queue.limit ? ` of ${queue.limit}` : ""}, ${queue.executing} executing`;
}

// Memory of the version and of what its versions share, by `/v2/trtserver/memory`.
export function memoryOf(memory, model) {
  const mine = (memory || []).filter((m) => m.name === model.name && (m.version === undefined || m.version === model.version));
  return mine.flatMap((m) => m.memory);
}

// Asks for the memory of the models while the view is shown.
export function pollMemory(onMemory) {
  let timer = null;
  let closed = false;
  async function poll() {
    try { onMemory((await getJson("/v2/trtserver/memory")).models, null); } catch (error) { onMemory(null, error.message); }
    if (!closed) timer = setTimeout(poll, MEMORY_INTERVAL);
  }
  poll();
  return () => { closed = true; clearTimeout(timer); };
}

// The view of the model has it as a whole.
const cutText = (text) => (text.length > MOST_REASON ? text.slice(0, MOST_REASON) + " …" : text);

function stateCell(model, now) {
  const since = model.since_unix_ms && `for ${ago(model.since_unix_ms, now)}`;
  return [stateText(model), " ", el("span", { class: "faint" }, since),
    model.loading && el("div", { class: "faint" }, `${duration(model.loading.elapsed_ms * 1000)}: ${model.loading.stage}`),
    model.reason && model.reason !== "unloaded" && el("div", { class: "error" }, name(cutText(model.reason)))];
}

function batchCell(counts) {
  if (!counts || counts.rows_per_batch === undefined) return "–";
  const reasons = Object.entries(counts.batch_closed).sort((a, b) => b[1] - a[1]);
  const all = sum(counts.batch_closed);
  return [`${counts.rows_per_batch} ${counts.rows_per_batch === 1 ? "row" : "rows"}`,
    el("div", { class: "faint" }, reasons.slice(0, 2).map(([why, n]) => `${why} ${Math.round((100 * n) / all)} %`).join(", "))];
}

function errorCell(model) {
  const errors = model.total ? errorTexts(model.total) : [];
  if (!errors.length) return "0";
  return errors.map(([why, n]) => el("div", { class: "bad" }, `${count(n)} ${why}`));
}

function queueCell(model) {
  if (!model.queue) return "–";
  const { waiting, executing, limit } = model.queue;
  return [el("span", { class: limit && waiting >= limit * 0.8 ? "bad" : "" }, `${waiting}\u00a0waiting${limit ? ` of ${limit}` : ""}, `),
    `${executing}\u00a0executing`,
    limit > 0 && el("div", { class: "bar-cell" }, bars([["", waiting, ""]], limit, executing ? "" : "three"))];
}

function modelRows(model, state, memory) {
  const recent = model.recent;
  const rates = state.history.get(keyOf(model)) || [];
  const notes = model.advice || [];
  const used = memoryOf(memory, model).reduce((all, m) => all + m.byte_size, 0);
  const rate = recent ? count(recent.requests_per_s) : "0";
  const cells = [
    [el("a", { href: linkTo(model) }, name(model.name)), model.version && el("span", { class: "faint" }, ` version ${model.version}`),
      model.backend && el("div", { class: "faint" }, `${model.backend.name} ${model.backend.version}, ${placesText(model)}`)],
    stateCell(model, state.unix_ms),
    [rate, sparkline(rates, `${rate} requests a second`)],
    recent ? `${duration(recent.p50_us ?? recent.mean_us)} / ${duration(recent.p99_us)}` : "–",
    queueCell(model),
    batchCell(recent || model.total),
    errorCell(model),
    memory ? bytes(used) : "–",
  ];
  const key = keyOf(model);
  return [row(HEADS, cells, { "data-key": key, class: notes.length ? "has-note" : "" }),
    notes.length > 0 && el("tr", { class: "note", "data-key": key + "\u0000note" },
      el("td", { colspan: HEADS.length }, notes.map((text) => el("p", { class: "advice" }, text))))];
}

export function placesText(model) {
  const places = new Map();
  for (const { kind, gpu } of model.instances || []) {
    const place = gpu === undefined ? kind.replace("KIND_", "") : `GPU ${gpu}`;
    places.set(place, (places.get(place) || 0) + 1);
  }
  const texts = [...places].map(([place, n]) => `${n} × ${place}`);
  return texts.join(", ") || "no instances";
}

function tiles(state) {
  const models = [...state.models.values()];
  const ready = models.filter((m) => m.state === "READY").length;
  const rate = models.reduce((all, m) => all + (m.recent ? m.recent.requests_per_s : 0), 0);
  const server = state.server;
  const tile = (key, value) => el("div", { class: "tile" }, el("dt", {}, key), el("dd", {}, value));
  return el("dl", { class: "tiles" },
    tile("Server", server.phase), tile("Versions ready", `${ready} of ${models.length}`), tile("Requests/s", count(rate)),
    tile("In flight", count(server.requests_in_flight)), tile("Memory", bytes(server.resident_bytes)),
    tile("Connections", server.connections.reduce((all, c) => all + c.open, 0)));
}

export function modelsView(main, state) {
  let filter = "";
  let memory = null;
  const search = el("input", { type: "search", id: "filter", placeholder: "part of a name", oninput: () => { filter = search.value; refresh(); } });
  const close = pollMemory((models) => { memory = models; refresh(); });
  const top = el("div");
  const list = el("div");
  function refresh() {
    if (!state.server) return;
    if (!top.parentNode) {
      main.replaceChildren(top, el("div", { class: "toolbar" }, el("label", { for: "filter" }, "Filter"), search), list);
    }
    const rank = (m) => (m.state === "READY" ? 2 : m.reason === "unloaded" ? 3 : m.state === "UNAVAILABLE" ? 0 : 1);
    const found = [...state.models.values()].filter((m) => m.name.toLowerCase().includes(filter.toLowerCase()))
      .sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name) || Number(a.version) - Number(b.version));
    show(top, tiles(state));
    show(list, el("h2", {}, "Models"),
      found.length === 0 && el("p", {}, state.models.size ? "No model has this in its name." : "The repository has no models."),
      found.length > 0 && table("All versions; rates and durations are of the last ten seconds", HEADS,
        found.slice(0, MOST_ROWS).map((m) => modelRows(m, state, memory))),
      found.length > MOST_ROWS && el("p", {}, `${found.length - MOST_ROWS} more: the filter shows them.`));
  }
  return { refresh, close };
}
