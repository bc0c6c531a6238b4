// The request of the form as text for curl, tritonclient (Python) and the C++ client.

import { access } from "./api.js";

const hasToken = () => access.token !== "";
const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
// JSON's escapes are also those of Python and of C++ for these texts.
const string = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
// Of C++, whose strings are in UTF-8 here.
const literal = (text) => '"' + [...new TextEncoder().encode(text)].map((b) =>
  (b < 32 || b > 126 || b === 34 || b === 92 || b === 63 ? "\\" + b.toString(8).padStart(3, "0") : String.fromCharCode(b))).join("") + '"';
const names = (path) => path.split("/").slice(3).filter((_, at) => at !== 1).map(decodeURIComponent);

const NUMPY = { FP16: "float16", FP32: "float32", FP64: "float64", BOOL: "bool", BYTES: "object_" };
const numpy = (type) => "np." + (NUMPY[type] || type.toLowerCase()) + (type === "BOOL" ? "_" : "");

export function curlText(url, json, isLong) {
  const token = access.token ? ' -H "Authorization: Bearer $TOKEN"' : "";
  return `curl -s ${quoted(url)}${token} \\\n  -H 'Content-Type: application/json' \\\n  -d ${isLong ? "@request.json" : quoted(json)}`;
}

export function pythonText(place, path, request, isLong) {
  const [model, version] = names(path);
  const lines = [isLong && "import json", hasToken() && "import os", "import numpy as np", "import tritonclient.http as http", "",
    `client = http.InferenceServerClient(${string(place.host)}${place.protocol === "https:" ? ", ssl=True" : ""})`,
    isLong && 'values = {i["name"]: i["data"] for i in json.load(open("request.json"))["inputs"]}', "inputs = []"];
  for (const { name, datatype, shape, data } of request.inputs) {
    const list = isLong ? `values[${string(name)}]` : datatype === "BYTES" ? `[${data.map((t) => string(t) + ".encode()").join(", ")}]`
      : `[${data.map((v) => (typeof v === "boolean" ? (v ? "True" : "False") : v)).join(", ")}]`;
    const encoded = isLong && datatype === "BYTES" ? `[t.encode() for t in ${list}]` : list;
    lines.push(`data = np.array(${encoded}, dtype=${numpy(datatype)}).reshape(${JSON.stringify(shape)})`,
      `inputs.append(http.InferInput(${string(name)}, ${JSON.stringify(shape)}, "${datatype}"))`, "inputs[-1].set_data_from_numpy(data)");
  }
  const asked = (request.outputs || []).map((o) => `http.InferRequestedOutput(${string(o.name)}`
    + (o.parameters ? `, class_count=${o.parameters.classification})` : ")"));
  const more = [asked.length && `outputs=[${asked.join(", ")}]`, version && `model_version="${version}"`,
    hasToken() && 'headers={"authorization": "Bearer " + os.environ["TOKEN"]}'].filter(Boolean);
  lines.push(`result = client.infer(${[string(model), "inputs", ...more].join(", ")})`,
    'for output in result.get_response()["outputs"]:', '    print(output["name"], result.as_numpy(output["name"]))');
  return lines.filter((line) => typeof line === "string").join("\n") + "\n";
}

const CPP = { BOOL: "uint8_t", FP32: "float", FP64: "double", FP16: "uint16_t", BF16: "uint16_t" };

function cppInput({ name, datatype, shape, data }, at, isLong) {
  const lines = [`  const int64_t shape${at}[] = {${shape.join(", ") || "0"}};`];
  if (datatype === "BYTES") {
    lines.push(`  std::string data${at};`, `  for (std::string text : {${data.map((t) => `std::string(${literal(t)})`).join(", ")}}) {`,
      "    uint32_t length = text.size();", `    data${at}.append(reinterpret_cast<const char *>(&length), 4).append(text);`, "  }");
  } else {
    const type = CPP[datatype] || datatype.toLowerCase() + "_t";
    const count = data.length;
    lines.push(isLong ? `  std::vector<${type}> data${at}(${count});  // the values of request.json`
      : `  std::vector<${type}> data${at} = {${data.map(Number).join(", ")}};`);
  }
  const size = datatype === "BYTES" ? `data${at}.size()` : `data${at}.size() * sizeof(data${at}[0])`;
  lines.push(`  inputs.push_back({${literal(name)}, "${datatype}", shape${at}, ${shape.length}, data${at}.data(), ${size}, NULL, 0, 0});`);
  return lines;
}

export function cppText(place, path, request, isLong) {
  const [model, version] = names(path);
  const half = request.inputs.find((i) => i.datatype === "FP16" || i.datatype === "BF16");
  const outputs = (request.outputs || []).map((o) => `{${literal(o.name)}, ${o.parameters ? o.parameters.classification : 0}, NULL, 0, 0}`);
  return ["// c++ -std=c++17 request.cc -I PREFIX/include -L PREFIX/lib -ltrtserver_client", "#include <cstdio>", "#include <cstdlib>", "#include <string>",
    "#include <vector>", '#include "trtserver_client.h"', "",
    "static void check(trtc_error *error) {", "  if (error == NULL) return;", '  fprintf(stderr, "%s\\n", trtc_error_message(error));', "  exit(1);", "}", "",
    "int main() {", "  trtc_settings settings = {};", "  settings.struct_size = sizeof(settings);", `  settings.url = ${literal(place.protocol === "https:" ? place.origin : place.host)};`,
    "  settings.protocol = TRTC_HTTP;", "  trtc_v2_client *client;", "  check(trtc_v2_client_new(&settings, &client));",
    half && `  // ${half.datatype}: the bits of each value, as a 16-bit integer.`, "  std::vector<trtc_v2_input> inputs;", ...request.inputs.flatMap((input, at) => cppInput(input, at, isLong)),
    "  trtc_v2_request request = {};", "  request.struct_size = sizeof(request);", `  request.model = ${literal(model)};`, `  request.version = ${literal(version || "")};`,
    "  request.inputs = inputs.data();", "  request.input_count = inputs.size();",
    outputs.length > 0 && `  const trtc_v2_output outputs[] = {${outputs.join(", ")}};`, outputs.length > 0 && "  request.outputs = outputs;",
    outputs.length > 0 && `  request.output_count = ${outputs.length};`,
    hasToken() && '  const std::string token = std::string("Bearer ") + getenv("TOKEN");',
    hasToken() && '  const trtc_header header = {"authorization", token.c_str()};', hasToken() && "  request.headers = &header;", hasToken() && "  request.header_count = 1;",
    "  trtc_v2_result *result;", "  check(trtc_v2_infer(client, &request, &result));", "  const trtc_v2_result_info *info;", "  check(trtc_v2_result_get(result, &info));",
    "  for (size_t i = 0; i < info->output_count; i++) {", '    printf("%s %s, %zu bytes\\n", info->outputs[i].name, info->outputs[i].datatype, info->outputs[i].size);', "  }",
    "  trtc_v2_result_free(result);", "  trtc_v2_client_free(client);", "}", ""].filter((line) => typeof line === "string").join("\n");
}
