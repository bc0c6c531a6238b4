"""What clients send, to the server and through Ray: the answers have to be equal."""

import gzip
import json
import queue
import socket
import time
import zlib
from http.client import HTTPConnection

import grpc
import numpy
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

ADDSUB = {
    "id": "7",
    "inputs": [
        {"name": name, "datatype": "FP32", "shape": [1, 16], "data": [value] * 16}
        for name, value in (("INPUT0", 3), ("INPUT1", 2))
    ],
}
# Of the connection, or of the moment. Ray adds a request id.
IGNORED = {"date", "server", "connection", "keep-alive", "transfer-encoding", "x-request-id"}
INFER = "/v2/models/addsub_fp32/infer"
JSON = {"Content-Type": "application/json"}


def requests():
    """Name, method, path, headers and body."""
    text = json.dumps(ADDSUB).encode()
    raw = {"inputs": [dict(entry, parameters={"binary_data_size": 64}) for entry in ADDSUB["inputs"]]}
    for entry in raw["inputs"]:
        del entry["data"]
    raw["parameters"] = {"binary_data_output": True}
    head = json.dumps(raw).encode()
    tensors = numpy.full((2, 16), 1.5, numpy.float32).tobytes()
    binary = {"Inference-Header-Content-Length": str(len(head))}
    v1 = 'batch_size: 1 input { name: "INPUT0" } input { name: "INPUT1" } output { name: "OUTPUT0" }'
    return [
        ("metadata", "GET", "/v2", {}, None),
        ("live", "GET", "/v2/health/live", {}, None),
        ("model", "GET", "/v2/models/addsub_fp32", {}, None),
        ("version", "GET", "/v2/models/addsub_fp32/versions/1/ready", {}, None),
        ("configuration", "GET", "/v2/models/addsub_fp32/config", {}, None),
        ("index", "POST", "/v2/repository/index", JSON, b'{"ready":true}'),
        ("JSON", "POST", INFER, JSON, text),
        ("binary", "POST", INFER, binary, head + tensors),
        ("load report", "POST", INFER, {**JSON, "X-Trace": "1"}, text),
        ("compressed", "POST", INFER, {**JSON, "Content-Encoding": "gzip", "Accept-Encoding": "gzip"},
         gzip.compress(text, mtime=0)),
        ("no model", "POST", "/v2/models/missing/infer", JSON, text),
        ("bad JSON", "POST", INFER, JSON, b"{"),
        ("no body", "POST", INFER, JSON, b""),
        ("short tensor", "POST", INFER, binary, head + tensors[:-4]),
        ("no path", "GET", "/v2/nothing%2Fhere?a=%20b&c", {}, None),
        ("no method", "DELETE", "/v2/models/addsub_fp32", {}, None),
        ("v1 health", "GET", "/api/health/ready", {}, None),
        ("v1 infer", "POST", "/api/infer/addsub_fp32", {"NV-InferRequest": v1}, tensors),
        ("v1 no model", "POST", "/api/infer/missing", {"NV-InferRequest": v1}, tensors),
        ("v1 no batch", "POST", "/api/infer/addsub_fp32", {"NV-InferRequest": v1.replace("1", "99", 1)}, tensors),
    ]  # fmt: skip


def send(port, method, path, headers, body):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        given = sorted((k.lower(), v) for k, v in response.getheaders() if k.lower() not in IGNORED)
        return response.status, given, response.read()
    finally:
        connection.close()


def inputs_of(module, name="INPUT0", values=None, **options):
    made = module.InferInput(name, list(values.shape), "FP32")
    made.set_data_from_numpy(values, **options)
    return made


def addsub(module, **options):
    return [
        inputs_of(module, name, numpy.arange(16, dtype=numpy.float32).reshape(1, 16) * factor, **options)
        for name, factor in (("INPUT0", 3), ("INPUT1", 2))
    ]


def failure(call):
    """The error of a call, with its status."""
    try:
        call()
    except InferenceServerException as error:
        return error.status(), error.message()
    return "no error"


def large(module):
    return [inputs_of(module, values=numpy.arange(4 << 20, dtype=numpy.float32).reshape(1, -1))]


def http_client(target):
    """What the HTTP client gets."""
    module = tritonclient.http
    with module.InferenceServerClient(f"127.0.0.1:{target.http}", network_timeout=60) as client:
        for binary in (True, False):
            outputs = [module.InferRequestedOutput(name, binary_data=binary) for name in ("OUTPUT0", "OUTPUT1")]
            result = client.infer("addsub_fp32", addsub(module, binary_data=binary), outputs=outputs)
            yield f"binary {binary}", [result.as_numpy(name).tolist() for name in ("OUTPUT0", "OUTPUT1")]
        squeezed = client.infer(
            "addsub_fp32", addsub(module), request_compression_algorithm="gzip",
            response_compression_algorithm="gzip",
        )  # fmt: skip
        yield "compressed", squeezed.as_numpy("OUTPUT0").tolist()
        yield "16 MiB", zlib.crc32(client.infer("echo", large(module)).as_numpy("OUTPUT0").tobytes())
        yield "no model", failure(lambda: client.infer("missing", addsub(module)))
        yield "failed", failure(lambda: client.infer("echo", large(module), parameters={"fail": "on purpose"}))
        yield "configuration", client.get_model_config("echo")
        yield "ready", (client.is_server_ready(), client.is_model_ready("missing"))


def grpc_client(target):
    """What the gRPC client gets."""
    module = tritonclient.grpc
    with module.InferenceServerClient(f"127.0.0.1:{target.grpc}") as client:
        result = client.infer("addsub_fp32", addsub(module), request_id="9")
        yield "infer", (result.get_response().id, result.as_numpy("OUTPUT0").tolist())
        yield "16 MiB", zlib.crc32(client.infer("echo", large(module)).as_numpy("OUTPUT0").tobytes())
        yield "no model", failure(lambda: client.infer("missing", addsub(module)))
        yield "failed", failure(lambda: client.infer("echo", large(module), parameters={"fail": "on purpose"}))
        # The text depends on who is first, the client or the proxy.
        yield "late", failure(lambda: client.infer("slow", large(module), client_timeout=0.05))[0]
        yield "configuration", str(client.get_model_config("many"))
        yield "ready", (client.is_server_ready(), client.is_model_ready("missing"))
        got = queue.Queue()
        client.start_stream(lambda result, error: got.put((result, error)))
        for text in ({"responses": 5}, {"fail": "on purpose"}):
            client.async_stream_infer("many", [inputs_of(module, values=numpy.ones((1, 2), numpy.float32))], parameters=text)
        yield "stream", [told(*got.get(timeout=60)) for _ in range(6)]
        client.stop_stream()


def told(result, error):
    return error.message() if error else result.as_numpy("OUTPUT0").tolist()


def raw_calls(target):
    """Calls whose messages this program does not know, v1 among them."""
    with grpc.insecure_channel(f"127.0.0.1:{target.grpc}") as channel:
        paths = {
            "grpc.health.v1.Health/Check": b"",
            "inference.GRPCInferenceService/RepositoryIndex": b"",
            "nvidia.inferenceserver.GRPCService/Health": b"\n\x05ready",
            # Both are refused: no model, and bytes that are not a message.
            "nvidia.inferenceserver.GRPCService/Infer": b"\n\x07missing",
            "inference.GRPCInferenceService/ModelInfer": b"\xff\xff\xff",
        }
        for path, message in paths.items():
            try:
                yield path, channel.unary_unary(f"/{path}")(message, timeout=60)
            except grpc.RpcError as error:
                yield path, (error.code(), error.details())


def streamed_events(target):
    """Events come while the model runs; the model ends when the client leaves."""
    body = json.dumps({"INPUT0": [1, 2], "responses": 2, "until_cancelled": True}).encode()
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", target.http), timeout=30) as connection:
        head = f"POST /v2/models/many/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        text = b""
        while text.count(b"data:") < 2:
            piece = connection.recv(1 << 16)
            if not piece:
                break
            text += piece
    after = send(target.http, "POST", "/v2/models/many/generate", JSON, b'{"INPUT0":[1,2]}')
    seconds = time.monotonic() - begin
    yield "events", text.count(b"data:")
    yield "answered after the client left", (after[0], seconds < 8)


def differences(direct, through_ray):
    """Number of comparisons, and those that differ, with both answers."""
    pairs = [
        (f"HTTP {name}", send(direct.http, *request), send(through_ray.http, *request))
        for name, *request in requests()
    ]
    for kind in (http_client, grpc_client, raw_calls, streamed_events):
        for (name, left), (_, right) in zip(kind(direct), kind(through_ray), strict=True):
            pairs.append((f"{kind.__name__} {name}", left, right))
    found = [f"{name}: {str(left)[:600]}\n  through Ray: {str(right)[:600]}" for name, left, right in pairs if left != right]
    return len(pairs), found
