// “Try it”: a form made of the signature, the request, the response, and the same request as code.

import { el, name } from "./dom.js";
import { duration } from "./format.js";
import { postJson } from "./api.js";
import { inputForm } from "./inputs.js";
import { drawOutput, hasLabels } from "./outputs.js";
import { cppText, curlText, pythonText } from "./snippets.js";

// More classes than this are not asked for.
const MOST_CLASSES = 10;
// A longer request is saved to a file.
const MAX_SHOWN = 4000;

const members = (request) => JSON.stringify(request);

function outputsOf(metadata, config) {
  if (!(metadata.outputs || []).some((o) => hasLabels(config, o.name))) return undefined;
  return metadata.outputs.map((o) => (hasLabels(config, o.name)
    ? { name: o.name, parameters: { classification: MOST_CLASSES } } : { name: o.name }));
}

function codeBlocks(path, request) {
  const text = members(request);
  const url = location.origin + path + "/infer";
  const isLong = text.length > MAX_SHOWN;
  const blocks = [["curl", curlText(url, text, isLong)], ["Python", pythonText(location, path, request, isLong)],
    ["C++", cppText(location, path, request, isLong)]];
  return el("div", {}, blocks.map(([language, code]) => el("details", {}, el("summary", {}, `The same request: ${language}`),
    el("pre", { tabindex: "0" }, code),
    el("button", { type: "button", onclick: () => navigator.clipboard && navigator.clipboard.writeText(code) }, "Copy"))),
  isLong && el("p", {}, el("a", { download: "request.json", href: URL.createObjectURL(new Blob([text], { type: "application/json" })) },
    "request.json"), " has the values, for the programs above."));
}

export function tryPanel(path, metadata, config) {
  const forms = (metadata.inputs || []).map((input) => inputForm(input, config));
  const result = el("div", { "aria-live": "polite" });
  const code = el("div");
  const send = el("button", { type: "submit", class: "main" }, "Send");

  function build() {
    const outputs = outputsOf(metadata, config);
    const inputs = forms.map((form) => form.value()).filter(Boolean);
    return outputs ? { inputs, outputs } : { inputs };
  }

  async function submit(event) {
    event.preventDefault();
    send.disabled = true;
    result.replaceChildren(el("p", { class: "faint" }, "Waiting for the response …"));
    try {
      const request = build();
      code.replaceChildren(codeBlocks(path, request));
      const begin = performance.now();
      const response = await postJson(path + "/infer", members(request));
      const took = duration((performance.now() - begin) * 1000);
      result.replaceChildren(el("p", { class: "good" }, `Answered in ${took}, by version ${response.model_version}`),
        ...response.outputs.map((output) => drawOutput(output, config)));
    } catch (error) {
      result.replaceChildren(el("p", { class: "error" }, error.message));
    }
    send.disabled = false;
  }

  const isDecoupled = config.model_transaction_policy && config.model_transaction_policy.decoupled;
  return el("section", { class: "card", id: "try" }, el("h3", {}, "Try it"),
    isDecoupled && el("p", { class: "faint" }, "The model may send several responses to a request, which this form does not take."),
    el("form", { onsubmit: submit }, forms.map((form) => el("fieldset", {}, el("legend", {}, name(form.title)), form.node)), send),
    result, code);
}
