"""Starts a server, waits until it reports that it is ready, asks a model, and stops the server.

    answer.py WHAT COMMAND...

The command gets the flags of its ports. Needs nothing but Python 3.9.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request

READY_WITHIN = 120  # seconds
LARGE = 1 << 16  # elements
# Model, input, shape, data, and what its outputs are, by what is asked.
ASKED = {
    "dynamic_shape": (
        "dynamic_shape",
        "INPUT",
        [2, 2],
        [1, 2, 3, 4],
        {"DOUBLED": [2, 4, 6, 8], "ROW_SUMS": [3, 7]},
    ),
    "dynamic_shape_large": (
        "dynamic_shape",
        "INPUT",
        [1, LARGE],
        [1] * LARGE,
        {"DOUBLED": [2] * LARGE, "ROW_SUMS": [LARGE]},
    ),
    "digits_savedmodel": ("digits_savedmodel", "IMAGE", [1, 1, 8, 8], [0] * 64, None),
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def messages_until(listener, last):
    """Reads what the server tells its service manager, up to a message."""
    while True:
        message = listener.recv(4096).decode()
        if message == last:
            return


def ask(port, what):
    model, name, shape, data, expected = ASKED[what]
    tensor = {"name": name, "datatype": "FP32", "shape": shape, "data": data}
    request = urllib.request.Request(
        "http://127.0.0.1:%d/v2/models/%s/infer" % (port, model),
        json.dumps({"inputs": [tensor]}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        outputs = {output["name"]: output["data"] for output in json.load(response)["outputs"]}
    shown = str(outputs)[:200]
    assert expected is None or outputs == expected, shown
    print("answer of %s: %s" % (model, shown), flush=True)


def main(what, command):
    path = os.path.join(tempfile.mkdtemp(), "notify")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(path)
    # The server may run as another user.
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o777)
    listener.settimeout(READY_WITHIN)
    port = free_port()
    ports = ["--http-port=%d" % port, "--grpc-port=0", "--metrics-port=0"]
    addresses = ["--%s-address=127.0.0.1" % name for name in ("http", "grpc", "metrics")]
    environment = dict(os.environ, NOTIFY_SOCKET=path)
    server = subprocess.Popen(command + ports + addresses, env=environment)
    try:
        messages_until(listener, "READY=1")
        ask(port, what)
        server.terminate()
        messages_until(listener, "STOPPING=1")
        status = server.wait(60)
    finally:
        server.kill()
    assert status == 0, "exit status %d" % status


main(sys.argv[1], sys.argv[2:])
