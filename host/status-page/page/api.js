// Requests to the server that the page comes from, with the token of this tab.

const KEYS = { token: "trtserver-token", header: "trtserver-header" };

export const access = {
  get token() { return sessionStorage.getItem(KEYS.token) || ""; },
  get header() { return sessionStorage.getItem(KEYS.header) || ""; },
  set(token, header) {
    sessionStorage.setItem(KEYS.token, token);
    sessionStorage.setItem(KEYS.header, header);
  },
};

export function headers() {
  const sent = {};
  if (access.token) sent.authorization = "Bearer " + access.token;
  const [key, ...value] = access.header.split(":");
  if (key.trim() && value.length) sent[key.trim()] = value.join(":").trim();
  return sent;
}

async function refusal(response) {
  const text = await response.text();
  let why = text;
  try { why = JSON.parse(text).error || text; } catch { /* not JSON */ }
  const error = new Error(why || response.statusText);
  error.status = response.status;
  return error;
}

export async function getJson(path) {
  const response = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

export async function postJson(path, body) {
  const sent = { ...headers(), "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers: sent, body });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

// The path of a name: names of models may have any characters but a slash.
export const part = (text) => encodeURIComponent(text);

// Follows the events of the status while the page is visible, and begins again when they end.
export function follow(path, onEvent, onState) {
  let abort = null;
  let wait = 500;
  let timer = null;
  async function run() {
    abort = new AbortController();
    const signal = abort.signal;
    try {
      const response = await fetch(path, { headers: headers(), signal, cache: "no-store" });
      if (!response.ok) throw await refusal(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        let end;
        while ((end = text.indexOf("\n\n")) >= 0) {
          const lines = text.slice(0, end).split("\n");
          text = text.slice(end + 2);
          const kind = lines[0].slice("event: ".length);
          wait = 500;
          onEvent(kind, JSON.parse(lines[1].slice("data: ".length)));
        }
      }
      onState("The server has ended the events.");
    } catch (error) {
      if (signal.aborted) return;
      onState(error.status ? error.message : "The server does not answer.", error.status);
    }
    timer = setTimeout(run, wait);
    wait = Math.min(wait * 2, 10000);
  }
  const stop = () => { clearTimeout(timer); if (abort) abort.abort(); };
  const restart = () => { stop(); wait = 500; if (!document.hidden) run(); };
  document.addEventListener("visibilitychange", restart);
  restart();
  return restart;
}
