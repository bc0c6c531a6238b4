"""Load reports of ORCA over gRPC: as text in the trailers of all inference calls, and as a stream;
with tests/wire/load_reports.rs. The library keeps binary reports in trailers to itself."""

import struct

import grpc
from tritonclient.grpc import service_pb2

import checks

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
TEXT = "endpoint-load-metrics"
FIELDS = {5: "utilization", 6: "rps", 7: "eps", 8: "named", 9: "application"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def read_fields(data):
    """Pairs of number and value: doubles, and bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 1:
            yield tag >> 3, struct.unpack_from("<d", data, at)[0]
            at += 8
        else:
            assert tag & 7 == 2, tag
            length, at = varint(data, at)
            yield tag >> 3, data[at : at + length]
            at += length


def read_report(data):
    report = {"application": 0.0, "rps": 0.0, "eps": 0.0, "utilization": {}, "named": {}}
    for number, value in read_fields(data):
        if isinstance(value, bytes):
            entry = dict(read_fields(value))
            report[FIELDS[number]][entry[1].decode()] = entry.get(2, 0.0)
        else:
            report[FIELDS[number]] = value
    return report


def infer_request():
    request = service_pb2.ModelInferRequest(model_name="slow")
    tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 2])
    tensor.contents.fp32_contents.extend([1, 2])
    return request.SerializeToString()


def trailers(channel, form):
    """Those of a unary call, of one that fails, and of a stream."""
    metadata = (("endpoint-load-metrics-format", form),) if form else ()
    infer = channel.unary_unary(INFER)
    _, call = infer.with_call(infer_request(), metadata=metadata)
    yield dict(call.trailing_metadata())
    missing = service_pb2.ModelInferRequest(model_name="missing").SerializeToString()
    try:
        infer(missing, metadata=metadata)
    except grpc.RpcError as error:
        yield dict(error.trailing_metadata())
    stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
    call = stream(iter([infer_request()]), metadata=metadata)
    assert len(list(call)) == 1
    yield dict(call.trailing_metadata())


class Reports:
    # The key of a report, by what the call asks for.
    keys = {}

    def setUp(self):
        self.channel = grpc.insecure_channel(checks.GRPC)
        self.addCleanup(self.channel.close)

    def test_trailers(self):
        for form in ("text", "json", "bin", None):
            count = 0
            for found in trailers(self.channel, form):
                count += 1
                reports = {key: value for key, value in found.items() if key == TEXT}
                expected = self.keys.get(form)
                self.assertEqual(list(reports), [expected] if expected else [], (form, found))
                if expected:
                    self.assertTrue(reports[TEXT].startswith(form.upper() + " "), reports)
            self.assertEqual(count, 3)

    def stream(self):
        # 0.3 s: field 1 of the request is a duration, whose field 2 is in nanoseconds.
        interval = b"\x0a\x06\x10" + b"\x80\xc6\x86\x8f\x01"
        return self.channel.unary_stream(STREAM)(interval, timeout=checks.TIMEOUT)


class Asked(Reports, checks.Case):
    keys = {"text": TEXT, "json": TEXT}

    def test_stream_shows_a_busy_model(self):
        infer = self.channel.unary_unary(INFER)
        # A model that executes one for 20 ms: all but one wait.
        busy = [infer.future(infer_request()) for _ in range(40)]
        for data in self.stream():
            report = read_report(data)
            self.assertEqual(report["application"], max(report["utilization"].values()))
            if report["application"] > 1 and report["rps"] > 0:
                break
            # The time of the stream is limited.
            busy = [infer.future(infer_request()) if call.done() else call for call in busy]
        self.assertGreater(report["named"]["pending_requests"], 0)
        for call in busy:
            call.result(checks.TIMEOUT)


class Always(Reports, checks.Case):
    keys = {"text": TEXT, "json": TEXT}


class Off(Reports, checks.Case):
    def test_stream_is_not_served(self):
        with self.assertRaises(grpc.RpcError) as raised:
            next(self.stream())
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


checks.run()
