"""Writes the Caffe2 models of the wire tests to `netdef/`: the models of make.py under their names, converted from the ONNX
files, as far as Caffe2 has their types and operators.

`make_netdef.py` writes them (examples/requirements.txt). `make_netdef.py --check` runs each once in Caffe2 and compares; it
needs Python 3.8 with torch==1.8.1, 'numpy<1.24', protobuf==3.20.3, future and six.
"""

import pathlib
import shutil
import sys

import numpy

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "netdef"
# A configuration of `scalar` is refused, whatever the platform.
LEFT_OUT = {"scalar"}


def make():
    sys.path.insert(0, str(HERE.parent.parent / "examples"))
    from netdef_models import Unsupported, convert

    shutil.rmtree(TARGET, ignore_errors=True)
    for file in (*sorted(HERE.glob("*/config.pbtxt")), *sorted(HERE.glob("sequences/*/config.pbtxt"))):
        source = file.parent.relative_to(HERE)
        if source.name in LEFT_OUT:
            continue
        try:
            convert(HERE / source, TARGET / source)
        except Unsupported as reason:
            print(f"{source}: left out, {reason}")


def run(folder, inputs):
    from caffe2.proto import caffe2_pb2
    from caffe2.python import workspace

    nets = []
    for name in ("init_model.netdef", "model.netdef"):
        net = caffe2_pb2.NetDef()
        net.ParseFromString((folder / name).read_bytes())
        nets.append(net)
    init, net = nets
    workspace.ResetWorkspace()
    workspace.RunNetOnce(init)
    for name, value in inputs.items():
        workspace.FeedBlob(name, value)
    workspace.RunNetOnce(net)
    return [workspace.FetchBlob(name) for name in net.external_output]


def check():
    """The numbers are those of make.py and make_sequences.py."""
    column = lambda kind, *values: numpy.array(values, kind).reshape(-1, 1)
    for version in sorted(TARGET.glob("**/[0-9]")):
        name = version.parent.name
        parts = name.split("_")
        kind = {"fp32": "float32", "fp64": "float64", "fp16": "float16"}.get(parts[-1] if len(parts) < 2 else parts[1])
        kind = numpy.dtype(kind or (parts[1] if len(parts) > 1 and parts[0] in ("addsub", "identity") else "float32"))
        if kind == numpy.float16:
            print(f"{name}: not run, Caffe2 on a CPU has no float16")
            continue
        if parts[0] == "addsub":
            a, b = numpy.arange(16, 32).astype(kind).reshape(1, 16), numpy.arange(16).astype(kind).reshape(1, 16)
            inputs, expected = {"INPUT0": a, "INPUT1": b}, [a + b, a - b]
        elif parts[0] == "identity" or name == "classes":
            x = numpy.array([[1, 5, 2, 4, 3]]).astype(kind)
            inputs, expected = {"INPUT0": x}, [x]
        elif name == "sum_fp32":
            inputs, expected = {"INPUT0": numpy.array([[1, 2, 3], [4, 5, 6]], kind)}, [column(kind, 6, 15)]
        elif name == "reshape":
            inputs, expected = {"INPUT0": numpy.ones((1, 6), kind)}, [numpy.full((1, 6), 2, kind)]
        elif parts[0] == "versions":
            inputs, expected = {"INPUT0": numpy.ones((1, 2), kind)}, [numpy.full((1, 2), 1 + int(version.name), kind)]
        elif name == "controls_int32":
            inputs = {"INPUT": column("int32", 5, 5, 5), "START": column("int32", 1, 0, 0),
                      "READY": column("int32", 1, 1, 0)}
            expected = [column("int32", 6, 5, 0)]
        elif name == "controls_fp32":
            inputs = {"INPUT": column(kind, 5, 5, 5), "START": column(kind, 1, 0, 0), "END": column(kind, 0, 1, 0),
                      "READY": column(kind, 1, 1, 0)}
            expected = [column(kind, 6, 15, 0)]
        elif name == "controls_bool":
            inputs = {"INPUT": column("int32", 5, 5, 5), "START": column(bool, 1, 0, 0), "END": column(bool, 0, 1, 0),
                      "READY": column(bool, 1, 1, 0), "CORRID": column("int64", 7, 8, 2**40)}
            expected = [column("int32", 6, 15, 0), column("int64", 7, 8, 2**40)]
        elif name in ("state_direct", "state_initial", "state_oldest"):
            inputs = {"INPUT": column("int32", 5, 5), "STATE_IN": column("int32", 2, 0)}
            if name == "state_oldest":
                inputs["START"] = column("int32", 1, 0)
            sums = [5, 5] if name == "state_oldest" else [7, 5]
            expected = [column("int32", *sums)] * 2
        else:
            sys.exit(f"{name}: it has no check")
        for got, right in zip(run(version, inputs), expected):
            assert got.dtype == right.dtype, (name, got.dtype)
            numpy.testing.assert_array_equal(got, right, name)
        print(f"{name}: right")


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else make()
