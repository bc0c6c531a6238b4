// The page: keeps the status as the events tell it, and shows the view that the address names.

import { access, follow } from "./api.js";
import { el, show } from "./dom.js";
import { modelsView } from "./models.js";
import { modelView } from "./model.js";
import { serverView } from "./server.js";

const HISTORY = 60;
const main = document.getElementById("main");
const connection = document.getElementById("connection");

// What the events have told so far.
const status = { server: null, models: new Map(), unix_ms: 0, history: new Map() };

export const keyOf = (model) => `${model.id || model.name}\u0000${model.version || ""}`;

function remember() {
  for (const [key, model] of status.models) {
    const rates = status.history.get(key) || [];
    rates.push(model.recent ? model.recent.requests_per_s : 0);
    if (rates.length > HISTORY) rates.shift();
    status.history.set(key, rates);
  }
  for (const key of status.history.keys()) if (!status.models.has(key)) status.history.delete(key);
}

function onEvent(kind, data) {
  if (kind === "status") status.models.clear();
  for (const [id, version] of data.removed || []) status.models.delete(`${id}\u0000${version || ""}`);
  for (const model of data.models) status.models.set(keyOf(model), model);
  status.server = data.server;
  status.unix_ms = data.unix_ms;
  remember();
  document.getElementById("server-name").textContent = data.server.name;
  document.getElementById("server-version").textContent = data.server.version;
  document.title = data.server.name;
  setConnection("Live", false);
  refresh();
}

function setConnection(text, lost) {
  if (connection.textContent !== text) connection.textContent = text;
  connection.className = lost ? "lost" : "";
}

// The view that is shown: an object with `refresh` and `close`.
let view = null;

function openView() {
  if (view && view.close) view.close();
  const [, kind, ...rest] = location.hash.split("/");
  const names = rest.map((text) => { try { return decodeURIComponent(text); } catch { return text; } });
  main.replaceChildren();
  if (kind === "model") view = modelView(main, status, names[0] || "", names[1] || "");
  else if (kind === "server") view = serverView(main, status);
  else view = modelsView(main, status);
  for (const [id, kinds] of [["nav-models", ["models", "model", undefined]], ["nav-server", ["server"]]]) {
    const link = document.getElementById(id);
    if (kinds.includes(kind)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  refresh();
}

function refresh() {
  if (status.server) view.refresh();
  else if (!main.firstChild) show(main, el("p", { class: "faint" }, "Waiting for the server …"));
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  openView();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});

const dialog = document.getElementById("access");
document.getElementById("access-button").onclick = () => {
  document.getElementById("access-token").value = access.token;
  document.getElementById("access-header").value = access.header;
  dialog.showModal();
};
dialog.addEventListener("close", () => {
  const field = (id) => document.getElementById(id).value.trim();
  if (dialog.returnValue === "save") access.set(field("access-token"), field("access-header"));
  else if (dialog.returnValue === "forget") access.set("", "");
  else return;
  restart();
  openView();
});

openView();
const restart = follow("/v2/trtserver/status/events", onEvent, (text, code) => {
  setConnection(text, true);
  if (code === 401 || code === 403) {
    show(main, el("section", { class: "card" }, el("h2", {}, "No access"), el("p", { class: "error" }, text),
      el("p", {}, "“Access” above takes a token or a header for this server.")));
  }
});
