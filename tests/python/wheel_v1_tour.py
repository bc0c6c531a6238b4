"""Uses every class of `tensorrtserver` and prints what it returns.

The wire test compares the output of PyPI's package of 2020 with that of our wheel. Nothing is printed that differs from run to run:
times, and ids that depend on earlier requests.
"""

import argparse
import itertools
import os
import re
import threading

import numpy as np
import trtis_client  # noqa: F401  (adapts the package of 2020 to newer versions of protobuf)
import tensorrtserver.shared_memory as shm
from tensorrtserver.api import *
from tensorrtserver.api import api_pb2, grpc_service_pb2, grpc_service_pb2_grpc, request_status_pb2
import tensorrtserver.api.model_config_pb2 as model_config
import tensorrtserver.api.server_status_pb2 as server_status

RAW = InferContext.ResultFormat.RAW
CLASS = InferContext.ResultFormat.CLASS
TIMEOUT = 30

ADDSUB = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
SHORT = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}


def masked(text):
    """Without the request id of the server."""
    return re.sub(r"\[(\S+) [1-9]\d*\]", r"[\1 N]", str(text))


def plain(value):
    """Arrays with type and shape, as the printed form of numpy differs between versions."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {value.tolist()}"
    if isinstance(value, dict):
        return {name: plain(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def show(title, call, *arguments, **more):
    """Prints the result of a call or its error, and returns the result."""
    try:
        result = call(*arguments, **more)
    except InferenceServerException as error:
        print(f"{title}: error {masked(error)} | {masked(error.message())} | {error.server_id()!r} "
              f"{error.request_id() > 0}")
    except Exception as error:
        print(f"{title}: {type(error).__name__} {error}")
    else:
        print(f"{title}: {plain(result)}")
        return result


class Wire:
    def __init__(self, title, url, protocol, streaming):
        self.title, self.url, self.protocol, self.streaming = title, url, protocol, streaming

    def context(self, model, version=None, **more):
        return InferContext(self.url, self.protocol, model, version, streaming=self.streaming, **more)

    def show(self, title, call, *arguments, **more):
        return show(f"{self.title} {title}", call, *arguments, **more)


def protocols():
    for name in ("http", "HTTP", "grpc", "gRPC", "tcp"):
        show(f"protocol {name}", ProtocolType.from_str, name)
    print("protocol values", int(ProtocolType.HTTP), int(ProtocolType.GRPC), RAW, CLASS)


def messages():
    header = InferRequestHeader(batch_size=2, flags=InferRequestHeader.FLAG_SEQUENCE_START)
    header.input.add(name="I", dims=[2, 3])
    header.output.add(name="O").cls.count = 3
    print(header)
    print(header.SerializeToString().hex(), type(header).__name__, header.DESCRIPTOR.full_name)
    config = model_config.ModelConfig(name="m", max_batch_size=4)
    config.input.add(name="I", data_type=model_config.TYPE_FP32, format=model_config.ModelInput.FORMAT_NHWC, dims=[1])
    print(config, config.DESCRIPTOR.full_name)
    print(model_config.DataType.Name(model_config.TYPE_STRING), server_status.ServerReadyState.keys())
    print(request_status_pb2.RequestStatusCode.items()[:7])
    print(api_pb2.InferRequestHeader is InferRequestHeader, sorted(vars(grpc_service_pb2_grpc.GRPCServiceStub))[:0])
    request = grpc_service_pb2.InferRequest(model_name="m", model_version=-1, meta_data=header)
    print(len(request.SerializeToString()))


def control(wire):
    with ServerHealthContext(wire.url, wire.protocol) as health:
        wire.show("live", health.is_live)
        wire.show("ready", health.is_ready)
    wire.show("closed", health.is_live)
    status = ServerStatusContext(wire.url, wire.protocol)
    all = status.get_server_status()
    print(type(all).__name__, all.id, server_status.ServerReadyState.Name(all.ready_state), sorted(all.model_status))
    first = status.get_last_request_id()
    status.get_server_status()
    print("next id", status.get_last_request_id() - first)
    status.close()
    wire.show("closed status", status.get_server_status)
    one = ServerStatusContext(wire.url, wire.protocol, "addsub_int32").get_server_status()
    for name, model in one.model_status.items():
        print(name, model.config)
        print([(version, state.ready_state) for version, state in sorted(model.version_status.items())])
    wire.show("unknown model", ServerStatusContext(wire.url, wire.protocol, "absent").get_server_status)
    repository = ModelRepositoryContext(wire.url, wire.protocol)
    print(sorted(entry.name for entry in repository.get_model_repository_index().models))
    models = ModelControlContext(wire.url, wire.protocol, http_headers=["X-One:1"])
    wire.show("unload", models.unload, "echo")
    wire.show("load", models.load, "echo")
    wire.show("load unknown", models.load, "absent")
    models.close()
    wire.show("closed control", models.load, "echo")


def results(wire):
    for kind in ADDSUB:
        context = wire.context(f"addsub_{SHORT.get(kind, kind)}")
        for batch in (1, 3):
            a = [np.arange(i, i + 16).astype(kind) for i in range(batch)]
            b = [np.arange(16).astype(kind) for _ in range(batch)]
            wire.show(f"addsub {kind} {batch}", context.run, {"INPUT0": a, "INPUT1": b},
                      {"OUTPUT0": RAW, "OUTPUT1": RAW}, batch)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    context = wire.context("addsub_int32")
    got = context.run({"INPUT0": [np.arange(16, dtype=np.int32)] , "INPUT1": [np.arange(32, dtype=np.int32)[::2]]},
                      {"OUTPUT0": RAW})
    got["OUTPUT0"][0] += 1
    print(f"{wire.title} not contiguous, changed in place", plain(got))
    print(context.get_last_request_model_name(), context.get_last_request_model_version(),
          context.get_last_request_id() > 0)
    ones = {"INPUT0": [np.arange(16, dtype=np.int32)], "INPUT1": [np.ones(16, np.int32)]}
    wire.show("classes", context.run, ones, {"OUTPUT0": (CLASS, 2), "OUTPUT1": RAW})
    scores = [np.array(s, np.float32) for s in ([1, 5, 2, 4, 3], [0.5, -1, 0.25, -2, 0])]
    wire.show("labels", wire.context("classes").run, {"INPUT0": scores}, {"OUTPUT0": (CLASS, 3)}, 2)
    wire.show("no batching", wire.context("addsub_int32_nobatch").run, ones, {"OUTPUT0": RAW})
    wire.show("reshape", wire.context("reshape").run, {"INPUT0": [values[:2, :3]]}, {"OUTPUT0": RAW})
    wire.show("nonzero", wire.context("nonzero").run, {"INPUT0": [np.zeros((2, 3), np.float32)]}, {"OUTPUT0": RAW})
    context = wire.context("identity_fp32")
    for shape in ([3], [1], [700]):
        got = context.run({"INPUT0": [np.full(shape, 0.5, np.float32)]}, {"OUTPUT0": RAW})
        print(got["OUTPUT0"][0].shape)
    texts = [np.array(["", "a", "gr\u00fcezi", "x" * 300], object), np.array([1, 2.5, "b", None], object)]
    wire.show("strings", wire.context("identity_string").run, {"INPUT0": texts}, {"OUTPUT0": RAW}, 2)
    wire.show("bytes", wire.context("identity_string").run, {"INPUT0": [np.array([b"\xff\xfe", b"\x80"])]},
              {"OUTPUT0": RAW})
    for version in (None, 1, 3):
        context = wire.context("versions", version)
        wire.show(f"version {version}", context.run, {"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        print(context.get_last_request_model_version())
    stat = context.get_stat()
    print(sorted(stat), stat["completed_request_count"], stat["cumulative_total_request_time_ns"] > 0)


def asynchronous(wire):
    context = wire.context("addsub_int32")
    done = threading.Semaphore(0)
    ready = []

    def arrived(ctx, id):
        ready.append((ctx is context, id))
        done.release()

    for i in range(8):
        inputs = {"INPUT0": [np.full(16, i, np.int32)], "INPUT1": [np.ones(16, np.int32)]}
        context.async_run(arrived, inputs, {"OUTPUT0": RAW, "OUTPUT1": (CLASS, 1)})
    for _ in range(8):
        assert done.acquire(timeout=TIMEOUT)
    print(all(same for same, _ in ready), sorted(id for _, id in ready))
    results = [context.get_async_run_results(id) for _, id in ready]
    for result in sorted(results, key=lambda result: result["OUTPUT0"][0][0]):
        wire.show("async", lambda: result)
    context = wire.context("fails")
    context.async_run(arrived, {"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
    assert done.acquire(timeout=TIMEOUT)
    wire.show("async failure", context.get_async_run_results, ready[-1][1])


def sequences(wire):
    ids = itertools.count(1000 if wire.streaming else 2000 + int(wire.protocol) * 10)
    first, second = next(ids), next(ids)
    context = wire.context("sums", correlation_id=first)
    print(context.correlation_id() == first)
    for flags, value, id in ((1, 5, 0), (1, 100, second), (0, 7, first), (2, 1, second), (2, 3, first)):
        wire.show(f"sequence {flags}", context.run, {"INPUT0": [np.array([value], np.int32)]}, {"OUTPUT0": RAW},
                  flags=flags, corr_id=id)
    print(context.correlation_id() - first)
    context.close()


def errors(wire):
    one = np.ones(2, np.float32)
    ones = np.ones(16, np.int32)
    wire.show("unknown model", wire.context, "absent")
    wire.show("model fails", wire.context("fails").run, {"INPUT0": [one]}, {"OUTPUT0": RAW})
    context = wire.context("addsub_int32")
    both = {"INPUT0": [ones], "INPUT1": [ones]}
    wire.show("batch", context.run, {"INPUT0": [ones] * 9, "INPUT1": [ones] * 9}, {"OUTPUT0": RAW}, 9)
    wire.show("batch 0", context.run, both, {"OUTPUT0": RAW}, 0)
    wire.show("unknown input", context.run, dict(both, INPUT9=[ones]), {"OUTPUT0": RAW})
    wire.show("unknown output", context.run, both, {"OUTPUT9": RAW})
    wire.show("wrong size", context.run, {"INPUT0": [ones[:3]], "INPUT1": [ones]}, {"OUTPUT0": RAW})
    wire.show("wrong type", context.run, {"INPUT0": [ones.astype(np.int64)], "INPUT1": [ones]}, {"OUTPUT0": RAW})
    wire.show("too many values", context.run, {"INPUT0": [ones] * 2, "INPUT1": [ones]}, {"OUTPUT0": RAW})
    wire.show("no list", context.run, {"INPUT0": ones, "INPUT1": [ones]}, {"OUTPUT0": RAW})
    wire.show("no array", context.run, {"INPUT0": ["text"], "INPUT1": [ones]}, {"OUTPUT0": RAW})
    wire.show("no format", context.run, both, {"OUTPUT0": (7,)})
    wire.show("no region", context.run, both, {"OUTPUT0": (RAW, 7)})
    wire.show("after errors", context.run, both, {"OUTPUT1": RAW})
    wire.show("strings as classes", wire.context("identity_string").run,
              {"INPUT0": [np.array(["x"], object)]}, {"OUTPUT0": (CLASS, 1)})
    wire.show("version", wire.context("versions", 2).run, {"INPUT0": [one]}, {"OUTPUT0": RAW})
    for value in (np.ones(2), np.array([], object), "text"):
        show("no strings", serialize_string_tensor, value)
    print(plain(serialize_string_tensor(np.array(["ab", "c"], object))))


def regions(wire):
    control = SharedMemoryControlContext(wire.url, wire.protocol)
    name = f"tour{os.getpid()}"
    handles = [shm.create_shared_memory_region(f"{name}_{i}", f"/{name}_{i}", 64) for i in range(3)]
    values = np.arange(16, dtype=np.int32)
    for handle in handles[:2]:
        shm.set_shared_memory_region(handle, [values[:8], values[8:]])
    for handle in handles:
        wire.show("register", control.register, handle)
    status = control.get_shared_memory_status()
    for region in status.shared_memory_region:
        print(region.name.replace(name, ""), region.system_shared_memory.shared_memory_key.replace(name, ""),
              region.system_shared_memory.offset, region.byte_size)
    context = wire.context("addsub_int32")
    wire.show("regions", context.run, {"INPUT0": handles[0], "INPUT1": (handles[1], [16])},
              {"OUTPUT0": (RAW, handles[2]), "OUTPUT1": RAW})
    wire.show("region and array", context.run, {"INPUT0": handles[0], "INPUT1": [values]}, {"OUTPUT0": RAW})
    wire.show("unregister", control.unregister, handles[0])
    text = wire.show("unregistered", lambda: None)
    try:
        context.run({"INPUT0": handles[0], "INPUT1": [values]}, {"OUTPUT0": RAW})
    except InferenceServerException as error:
        print(masked(error).replace(name, ""))
    wire.show("unregister all", control.unregister_all)
    print(len(control.get_shared_memory_status().shared_memory_region), text)
    for handle in handles:
        show("destroy", shm.destroy_shared_memory_region, handle)
    show("no list", shm.set_shared_memory_region, handles[0], values)
    show("no array", shm.set_shared_memory_region, handles[0], ["text"])
    control.close()
    wire.show("closed", control.unregister_all)


def main():
    arguments = argparse.ArgumentParser()
    for kind in ("http", "grpc", "metrics"):
        arguments.add_argument(f"--{kind}", required=True, help="HOST:PORT")
    given = arguments.parse_args()
    protocols()
    messages()
    show("HTTP stream", InferContext, given.http, ProtocolType.HTTP, "echo", streaming=True)
    wires = [Wire("http", given.http, ProtocolType.HTTP, False), Wire("grpc", given.grpc, ProtocolType.GRPC, False),
             Wire("stream", given.grpc, ProtocolType.GRPC, True)]
    for wire in wires:
        if not wire.streaming:
            control(wire)
        results(wire)
        asynchronous(wire)
        sequences(wire)
        errors(wire)
        regions(wire)
    # Port 1 has no server. What follows the colon is the text of a library.
    for protocol in (ProtocolType.HTTP, ProtocolType.GRPC):
        try:
            InferContext("127.0.0.1:1", protocol, "echo")
        except InferenceServerException as error:
            print(str(error).partition(": ")[0])


if __name__ == "__main__":
    main()
