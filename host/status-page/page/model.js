// View 2: one version of a model.

import { el, facts, name, show } from "./dom.js";
import { bars, sparkline, stack } from "./charts.js";
import { ago, bytes, count, duration } from "./format.js";
import { getJson, part } from "./api.js";
import { errorTexts, memoryOf, placesText, pollMemory, queueText, stateText } from "./models.js";
import { tryPanel } from "./try.js";

const WHY_CLOSED = {
  full: "reached max_batch_size", preferred: "reached a preferred size", delay: "the delay has passed",
  alone: "no other request waited", shape: "the next request has another shape", priority: "of another priority",
  sequence: "as the sequences allow",
};

function loadCard(model) {
  const { load, loading } = model;
  if (!load && !loading) return null;
  const steps = load && [["fetch", load.fetch_ms], ["parse", load.parse_ms], ["open", load.open_ms], ["warm-up", load.warm_ms]];
  return el("section", { class: "card" }, el("h3", {}, "Load"),
    loading && el("p", { class: "busy" }, `loading for ${duration(loading.elapsed_ms * 1000)}: ${loading.stage}`,
      loading.reported && ` – ${loading.reported} (${loading.permille / 10} %)`),
    load && stack(steps.map(([step, ms]) => [step, ms, duration(ms * 1000)])),
    load && el("p", { class: "faint" }, `${duration(load.total_ms * 1000)} in all`));
}

function latencyCard(model, counts, rates) {
  const rows = [["request", counts.p50_us, counts.p99_us], ["queue", counts.queue_p50_us, counts.queue_p99_us],
    ["execution", counts.compute_p50_us, counts.compute_p99_us]].filter((r) => r[1] !== undefined);
  const top = Math.max(...rows.map((r) => r[2]), 0);
  const rate = model.recent ? count(model.recent.requests_per_s) : "0";
  return el("section", { class: "card" }, el("h3", {}, "Requests"),
    facts([["requests/s", [rate, sparkline(rates, `${rate} requests a second`, 240, 36)]], ["in all", count(model.total.requests)],
      ["mean", counts.mean_us !== undefined ? duration(counts.mean_us) : ""]]),
    rows.length > 0 && [el("p", { class: "faint" }, "p50 and p99"),
      bars(rows.flatMap(([what, p50, p99]) => [[`${what} p50`, p50, duration(p50)], [`${what} p99`, p99, duration(p99)]]), top)]);
}

function batchCard(counts) {
  const closed = Object.entries(counts.batch_closed).sort((a, b) => b[1] - a[1]);
  const sizes = Object.entries(counts.batch_rows);
  if (!sizes.length) return null;
  return el("section", { class: "card" }, el("h3", {}, "Batches"),
    el("p", { class: "faint" }, `${counts.rows_per_batch} rows on average; batches by their rows:`),
    bars(sizes.map(([rows, n]) => [rows, n, count(n)])),
    el("p", { class: "faint" }, "why they closed:"),
    bars(closed.map(([why, n]) => [`${why}: ${WHY_CLOSED[why] || ""}`, n, count(n)]), 0, "two"));
}

function queueCard(model) {
  const { queue } = model;
  return el("section", { class: "card" }, el("h3", {}, "Queue and instances"),
    queue && facts([["now", queueText(queue)], ["limit", queue.limit || "none"],
      ["delay of batches", queue.delay_us === undefined ? "" : duration(queue.delay_us)]]),
    queue && queue.limit > 0 && bars([["queue", queue.waiting, ""]], queue.limit),
    el("p", {}, placesText(model)),
    el("ul", {}, (model.instances || []).slice(0, 16).map((i) => el("li", { class: "mono" }, name(i.name)))));
}

function errorCard(model) {
  const errors = errorTexts(model.total);
  return el("section", { class: "card" }, el("h3", {}, "Errors by reason"),
    errors.length ? bars(errors.map(([why, n]) => [why, n, count(n)]), 0, "two") : el("p", { class: "good" }, "none"));
}

function memoryCard(memory, failure, model) {
  const entries = memoryOf(memory, model).map((m) => [`${m.holder} (${m.type}${m.type === "GPU" ? " " + m.id : ""})`, m.byte_size, bytes(m.byte_size)]);
  return el("section", { class: "card" }, el("h3", {}, "Memory by holder"),
    failure && el("p", { class: "error" }, failure),
    entries.length ? bars(entries.sort((a, b) => b[1] - a[1]), 0, "three") : !failure && el("p", {}, "nothing is entered for this version"));
}

function signatureCard(metadata) {
  const tensors = (kind, list) => list.map((t) => el("tr", {}, el("td", {}, kind), el("th", { scope: "row" }, name(t.name)),
    el("td", {}, t.datatype), el("td", {}, `[${t.shape.join(", ")}]`)));
  return el("section", { class: "card" }, el("h3", {}, "Signature"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Signature" },
    el("table", {}, el("thead", {}, el("tr", {}, ["", "tensor", "type", "shape; -1 is any size"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, tensors("input", metadata.inputs || []), tensors("output", metadata.outputs || [])))));
}

function originText(field, source) {
  if (field.line === undefined) return "completed by the server";
  const origin = `line ${field.line}`;
  return field.written === undefined ? origin : `${origin} has ${JSON.stringify(field.written)}`;
}

function configurationCard(report) {
  const { source, fields } = report;
  const rows = fields.map((f) => el("tr", {}, el("th", { scope: "row", class: "mono" }, name(f.path)),
    el("td", { class: "mono" }, name(JSON.stringify(f.value))),
    el("td", { class: f.line === undefined ? "faint" : "" }, originText(f, source))));
  return el("section", { class: "card" }, el("h3", {}, "Configuration, as completed"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Fields of the configuration" },
      el("table", {}, el("thead", {}, el("tr", {}, ["field", "value", "from"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows))),
    source ? el("details", {}, el("summary", {}, "Source: ", name(source.origin)),
      el("pre", { class: "source", tabindex: "0" }, source.text.replace(/\n$/, "").split("\n").map((line) => el("span", {}, line || " "))))
      : el("p", { class: "faint" }, "The model has no configuration file: all of it was completed."));
}

export function modelView(main, state, id, version) {
  const live = el("div");
  const fixed = el("div");
  let memory = null;
  let failure = null;
  let opened = null;
  const close = pollMemory((models, why) => { memory = models; failure = why; refresh(); });
  const model = () => state.models.get(`${id}\u0000${version}`);

  async function open(found) {
    const path = `/v2/models/${part(id)}${version && `/versions/${part(version)}`}`;
    const problems = [];
    const ask = (url) => getJson(url).catch((error) => { problems.push(error.message); return null; });
    const [metadata, report] = await Promise.all([
      found.state === "READY" ? ask(path) : null,
      ask(`/v2/trtserver/models/${part(id)}${version && `/versions/${part(version)}`}/configuration`),
    ]);
    fixed.replaceChildren(...problems.map((why) => el("p", { class: "error" }, why)),
      ...[metadata && report && tryPanel(path, metadata, report.config), metadata && signatureCard(metadata),
        report && configurationCard(report)].filter(Boolean));
  }

  function refresh() {
    if (!state.server) return;
    if (!live.parentNode) main.replaceChildren(live, fixed);
    const found = model();
    if (!found) {
      show(live, el("h2", {}, name(id)), el("p", { class: "error" }, "The server has no such model or version."), el("a", { href: "#/models" }, "All models"));
      fixed.replaceChildren();
      opened = null;
      return;
    }
    // A load changes signature and configuration.
    const edition = `${found.state} ${found.state === "READY" ? found.since_unix_ms : ""}`;
    if (opened !== edition) { opened = edition; open(found); }
    const counts = found.recent || found.total;
    show(live,
      el("p", {}, el("a", { href: "#/models" }, "← All models")),
      el("h2", {}, name(found.name), found.version && el("span", { class: "faint" }, ` version ${found.version}`)),
      el("p", {}, stateText(found), " ", found.since_unix_ms && `for ${ago(found.since_unix_ms, state.unix_ms)}`,
        found.backend && `, ${found.backend.name} ${found.backend.version}${found.backend.isolation === "process" ? ", in a process of its own" : ""}`,
        found.scheduling && `, scheduling: ${found.scheduling}`),
      found.reason && found.reason !== "unloaded" && el("p", { class: "error" }, name(found.reason)),
      (found.advice || []).map((text) => el("p", { class: "advice" }, text)),
      counts && el("p", { class: "faint" }, found.recent ? `Counted in the last ${found.recent.seconds} s` : "No requests in the last seconds: counted since the start"),
      el("div", { class: "grid" }, counts && latencyCard(found, counts, state.history.get(`${id}\u0000${version}`) || []),
        counts && batchCard(counts), queueCard(found), loadCard(found), found.total && errorCard(found), memoryCard(memory, failure, found)),
      el("p"));
  }
  return { refresh, close };
}
