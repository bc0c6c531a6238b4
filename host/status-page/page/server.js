// View 3: the server itself.

import { card, el, facts, name, row, show, table } from "./dom.js";
import { bars, colour, treemap } from "./charts.js";
import { bytes, clock, count, duration } from "./format.js";
import { getJson, part } from "./api.js";

const FAST = 2000;
const SLOW = 5000;
const MOST_LINES = 400;
const MOST_TRACES = 50;
const MOST_TEXT = 160;
const TONES = { error: "bad", warning: "warn", verbose: "faint" };

// Asks `path()` again and again while the view is shown.
function poll(path, interval, onData) {
  let timer = null;
  let closed = false;
  async function ask() {
    clearTimeout(timer);
    try { onData(await getJson(path()), null); } catch (error) { onData(null, error.message); }
    if (!closed) timer = setTimeout(ask, document.hidden ? interval * 5 : interval);
  }
  ask();
  return { close: () => { closed = true; clearTimeout(timer); }, now: ask };
}

function serverCards(server) {
  const memory = server.request_memory;
  return el("div", { class: "grid" },
    card("Server", facts([["name", name(server.name)], ["version", server.version], ["phase", server.phase], ["failure", server.failure],
      ["up for", duration(server.uptime_s * 1e6)], ["requests in flight", count(server.requests_in_flight)], ["viewers of this page", server.viewers],
      ["resident memory", bytes(server.resident_bytes)]])),
    card("Connections", bars(server.connections.map((c) => [c.listeners, c.open, `${c.open}${c.limit ? " of " + c.limit : ""}`]),
      Math.max(...server.connections.map((c) => c.limit || c.open), 1))),
    card("Memory of requests", bars([["in use", memory.in_use, bytes(memory.in_use)], ["peak", memory.peak, bytes(memory.peak)]], memory.limit),
      el("p", { class: "faint" }, `of at most ${bytes(memory.limit)}`)),
    card("Limits", facts(Object.entries(server.limits).map(([key, value]) =>
      [key.replaceAll("_", " "), value === null ? "none" : /size|memory/.test(key) ? bytes(value) : String(value)]))),
    card("GPUs", server.gpus.length === 0 && el("p", {}, "none"), server.gpus.map((gpu) => [
      el("p", {}, `${gpu.id}: ${gpu.name}, compute capability ${gpu.compute_capability}`), gpu.lost && el("p", { class: "error" }, gpu.lost),
      gpu.used_bytes !== undefined && bars([["memory", gpu.used_bytes, `${bytes(gpu.used_bytes)} of ${bytes(gpu.total_bytes)}`]], gpu.total_bytes)])));
}

const BACKEND_HEADS = ["Backend", "Version", "Runtime", "File", "Models"];

function backendCard(all, failure) {
  const rows = ((all && all.backends) || []).map((b) => row(BACKEND_HEADS, [name(b.name),
    [b.version, b.default && el("span", { class: "faint" }, " default"), !b.installed && el("span", { class: "warn" }, " not installed any more")], b.runtime || "–",
    el("span", { class: "mono" }, name(b.file)), b.models.length ? b.models.slice(0, 20).map((m, at) => [at ? ", " : "", name(`${m.name} ${m.version}`)]) : "none"]));
  return el("section", { class: "card" }, failure && el("p", { class: "error" }, failure), table("Backends", BACKEND_HEADS, rows),
    ((all && all.unusable) || []).map((u) => el("p", { class: "error" }, name(u.file), ": ", name(u.reason))));
}

function memoryCard(report, failure) {
  if (!report) return card("Memory", el("p", { class: failure ? "error" : "faint" }, failure || "…"));
  const of = (owner, entries) => entries.map((e) => ({ group: e.holder, name: `${owner}: ${e.holder}${e.type === "GPU" ? " on GPU " + e.id : ""}`,
    size: e.byte_size, text: bytes(e.byte_size) }));
  const items = [...of("server", report.server.memory), ...report.models.flatMap((m) => of(`${m.name}${m.version ? " " + m.version : ""}`, m.memory))];
  const sorted = items.slice().sort((a, b) => b.size - a.size);
  return card("Memory by owner and holder", items.length ? treemap(items, `${items.length} entries of the memory ledger, largest: ${sorted[0].name}`) : el("p", {}, "The ledger is empty."),
    el("details", {}, el("summary", {}, "As a list"), bars(sorted.slice(0, 40).map((i) => [i.name, i.size, i.text]))));
}

const PHASES = [["receive_us", "receive"], ["queue_us", "queue"], ["copy_input_us", "copy in"], ["compute_us", "compute"], ["copy_output_us", "copy out"], ["send_us", "send"]];
const PAIRS = [["RECV_START", "RECV_END", "receive"], ["WAITREAD_START", "WAITREAD_END", "receive"], ["QUEUE_START", "COMPUTE_START", "queue"],
  ["COMPUTE_START", "COMPUTE_INPUT_END", "copy in"], ["COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "compute"],
  ["COMPUTE_OUTPUT_START", "COMPUTE_END", "copy out"], ["SEND_START", "SEND_END", "send"]];

function waterfall(trace) {
  const total = trace.total_us;
  const share = (us) => `${((100 * Math.max(us, 0)) / total).toFixed(2)}%`;
  const rows = trace.spans.map((span) => {
    const at = (end) => span.timeline.find((t) => t.name === end || t.name.endsWith("_" + end));
    const parts = PAIRS.map(([from, to, what]) => [at(from), at(to), what]).filter(([from, to]) => from && to && to.us >= from.us);
    return [el("span", { class: "name" }, name(`${span.model} ${span.version}`)),
      el("span", { class: "row", role: "img", "aria-label": parts.map(([from, to, what]) => `${what} ${duration(to.us - from.us)}`).join(", ") },
        parts.map(([from, to, what]) => el("span", { class: "span " + colour(PHASES.findIndex((p) => p[1] === what)),
          style: { left: share(from.us), width: share(to.us - from.us) }, title: `${what}: ${duration(to.us - from.us)}` })))];
  });
  const first = trace.spans.find((span) => span.batch);
  return el("div", {}, el("div", { class: "waterfall" }, rows),
    el("ul", { class: "legend" }, PHASES.filter(([key]) => trace.spans.some((s) => s[key] !== undefined)).map(([key, what]) =>
      el("li", {}, el("span", { class: "key " + colour(PHASES.findIndex((p) => p[1] === what)) }), `${what} ${duration(Math.max(...trace.spans.map((s) => s[key] || 0)))}`))),
    first && el("p", { class: "faint" }, `Batch ${first.batch.number} on ${first.batch.instance}: ${first.batch.requests} requests, ${first.batch.rows} rows, closed: ${first.batch.closed}`));
}

const cut = (text) => (text.length > MOST_TEXT ? text.slice(0, MOST_TEXT) + "…" : text);

function traceCard(list, failure, chosen, choose) {
  const traces = (list && list.requests) || [];
  return card("Last traces", failure && el("p", { class: "error" }, failure),
    list && traces.length === 0 && el("p", { class: "faint" }, "No request was traced: start the server with --trace-slow-ms or --trace-config."),
    traces.length > 0 && el("ul", { class: "log", tabindex: "0", "aria-label": "Traces" }, traces.slice(0, MOST_TRACES).map((t) => el("li", {},
      el("button", { type: "button", "aria-pressed": String(chosen.number === t.trace), onclick: () => choose(t) }, duration(t.total_us)), " ",
      el("span", { class: t.kept === "failed" ? "bad" : "faint" }, t.kept), " ", name(t.model), ` ${t.version}, ${t.protocol}, ${clock(t.began_unix_ms)}`,
      t.id && [", id ", name(cut(t.id))], t.error && el("span", { class: "bad" }, ": ", name(cut(t.error)))))),
    chosen.failure && el("p", { class: "error" }, chosen.failure), chosen.trace && waterfall(chosen.trace));
}

function linesOf(label, list, toNode) {
  return el("div", { class: "log", tabindex: "0", role: "region", "aria-label": label }, list.map(toNode));
}

export function serverView(main, state) {
  const [top, bottom] = [el("div"), el("div")];
  const data = { lines: [], changes: [], chosen: {} };
  const failures = {};
  const level = el("select", { id: "log-level" }, ["error", "warning", "info", "verbose"].map((l) => el("option", { selected: l === "info" }, l)));
  const keep = (key) => (found, why) => { if (found) data[key] = found; failures[key] = why; refresh(); };
  let [lastLine, lastChange] = [0, 0];
  let asked = "info";
  // The server has begun anew if its numbers are lower.
  const polls = [
    poll(() => "/v2/trtserver/backends", SLOW, keep("backends")),
    poll(() => "/v2/trtserver/memory", SLOW, keep("memory")),
    poll(() => "/v2/trtserver/requests", FAST, keep("traces")),
    poll(() => `/v2/trtserver/changes?after=${lastChange}`, FAST, (found, why) => {
      failures.changes = why;
      if (found && found.last < lastChange) [lastChange, data.changes] = [0, []];
      else if (found) [lastChange, data.changes] = [found.last, [...data.changes, ...found.changes].slice(-MOST_LINES)];
      refresh();
    }),
    poll(() => { asked = level.value; return `/v2/trtserver/log?level=${asked}&after=${lastLine}`; }, FAST, (found, why) => {
      failures.lines = why;
      if (found && (found.last < lastLine || asked !== level.value)) [lastLine, data.lines] = [0, []];
      else if (found) [lastLine, data.lines] = [found.last, [...data.lines, ...found.lines].slice(-MOST_LINES)];
      refresh();
    }),
  ];
  level.onchange = () => { lastLine = 0; data.lines = []; polls[4].now(); };
  async function choose(trace) {
    data.chosen = { number: trace.trace };
    const found = await getJson(`/v2/trtserver/requests/${part(trace.trace)}`).catch((error) => { data.chosen.failure = error.message; return null; });
    data.chosen.trace = found;
    refresh();
  }
  const logTools = el("div", { class: "toolbar" }, el("label", { for: "log-level" }, "At least"), level);
  const log = el("div");
  const logCard = card("Log", logTools, log);
  function refresh() {
    if (!state.server) return;
    if (!top.parentNode) main.replaceChildren(el("h2", {}, "Server"), top, bottom, logCard);
    show(top, serverCards(state.server), el("p"));
    show(bottom, backendCard(data.backends, failures.backends), memoryCard(data.memory, failures.memory),
      traceCard(data.traces, failures.traces, data.chosen, choose),
      card("Changes of the repository", failures.changes && el("p", { class: "error" }, failures.changes),
        linesOf("Changes of the repository", data.changes.slice().reverse(), (c) => el("p", { class: c.change === "failed" ? "bad" : "" },
          `${clock(c.unix_ms)} ${c.change} `, name(c.model), c.version && ` version ${c.version}`, c.text && [": ", name(c.text)]))));
    show(log, failures.lines && el("p", { class: "error" }, failures.lines), linesOf("Last lines of the log, newest first", data.lines.slice().reverse(),
      (l) => el("p", { class: TONES[l.level] || "" }, `${clock(l.unix_ms)} ${l.place}] `, name(l.text))));
  }
  return { refresh, close: () => polls.forEach((p) => p.close()) };
}
