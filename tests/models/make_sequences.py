"""Writes the ONNX models of the sequence tests to `sequences/`: make.py runs it.

    controls_int32   OUTPUT = (INPUT + START) where READY, else 0; the classic model of these tests
    controls_fp32    the same in FP32, and END counts ten: INPUT + START + 10 END
    controls_bool    bools for START, END and READY, and the INT64 correlation id is returned as ID
    state_direct     OUTPUT = sum of the sequence's INPUTs; implicit state only, which begins as zero
    state_oldest     the same behind the strategy "oldest"; START makes it forget, and two places only
    state_initial    the same, but a sequence begins with 1000, from a file; the state can be requested, too
"""

import pathlib

import numpy
from onnx import helper
from onnx_models import TYPES, Tensor, config_text, model_bytes

HERE = pathlib.Path(__file__).resolve().parent / "sequences"
PAIRS = {"INT32": "int32_false_true: [ 0, 1 ]", "FP32": "fp32_false_true: [ 0, 1 ]",
         "BOOL": "bool_false_true: [ false, true ]"}
# No test reaches it; tests that need a shorter one replace it.
IDLE = "max_sequence_idle_microseconds: 60000000"


def flag(name, kind):
    control = f"control [ {{ kind: CONTROL_SEQUENCE_{name} {PAIRS[kind]} }} ]"
    return f'  control_input [ {{ name: "{name}" {control} }} ]\n'


def correlation(kind):
    control = f"control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{kind} }} ]"
    return f'  control_input [ {{ name: "CORRID" {control} }} ]\n'


def state(initial=""):
    return ('  state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ]'
            f"{initial} }} ]\n")


def sequence(strategy, *parts):
    return f"sequence_batching {{\n  {IDLE}\n  {strategy}\n{''.join(parts)}}}\n"


def model(name, inputs, outputs, hidden_inputs, hidden_outputs, nodes, scheduling, batch=4):
    """The graph has the hidden tensors too, the configuration only what clients see."""
    folder = HERE / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    graph = model_bytes(name, inputs + hidden_inputs, outputs + hidden_outputs, nodes, batch > 0)
    (folder / "1" / "model.onnx").write_bytes(graph)
    (folder / "config.pbtxt").write_text(config_text(name, inputs, outputs, batch, scheduling))
    return folder


def node(operator, *names, **attributes):
    return helper.make_node(operator, list(names[:-1]), [names[-1]], **attributes)


def cast(name, kind):
    return node("Cast", name, f"{name}_number", to=TYPES[kind])


def make():
    whole = lambda name: Tensor(name, "INT32", [1])
    real = lambda name: Tensor(name, "FP32", [1])

    model("controls_int32", [whole("INPUT")], [whole("OUTPUT")], [whole("START"), whole("READY")], [],
          [node("Add", "INPUT", "START", "sum"), node("Mul", "sum", "READY", "OUTPUT")],
          sequence("direct { }", flag("START", "INT32"), flag("READY", "INT32")))

    ten = node("Constant", "ten", value_floats=[10.0])
    model("controls_fp32", [real("INPUT")], [real("OUTPUT")], [real("START"), real("END"), real("READY")], [],
          [ten, node("Mul", "END", "ten", "tens"), node("Add", "INPUT", "START", "started"),
           node("Add", "started", "tens", "sum"), node("Mul", "sum", "READY", "OUTPUT")],
          sequence("direct { }", flag("START", "FP32"), flag("END", "FP32"), flag("READY", "FP32")))

    bools = [Tensor(name, "BOOL", [1]) for name in ("START", "END", "READY")]
    model("controls_bool", [whole("INPUT")], [whole("OUTPUT"), Tensor("ID", "INT64", [1])],
          bools + [Tensor("CORRID", "INT64", [1])], [],
          [cast("START", "INT32"), cast("END", "INT32"), cast("READY", "INT32"),
           node("Constant", "ten", value_ints=[10]), node("Cast", "ten", "ten_32", to=TYPES["INT32"]),
           node("Mul", "END_number", "ten_32", "tens"), node("Add", "INPUT", "START_number", "started"),
           node("Add", "started", "tens", "sum"), node("Mul", "sum", "READY_number", "OUTPUT"),
           node("Identity", "CORRID", "ID")],
          sequence("oldest { max_candidate_sequences: 4 }", *(flag(b.name, "BOOL") for b in bools),
                   correlation("INT64")))

    plain = [node("Add", "INPUT", "STATE_IN", "STATE_OUT"), node("Identity", "STATE_OUT", "OUTPUT")]
    model("state_direct", [whole("INPUT")], [whole("OUTPUT")], [whole("STATE_IN")], [whole("STATE_OUT")], plain,
          sequence("direct { }", state()))
    forgetful = [node("Constant", "one", value_ints=[1]), node("Cast", "one", "one_32", to=TYPES["INT32"]),
                 node("Sub", "one_32", "START", "keep"), node("Mul", "STATE_IN", "keep", "kept"),
                 node("Add", "INPUT", "kept", "STATE_OUT"), node("Identity", "STATE_OUT", "OUTPUT")]
    model("state_oldest", [whole("INPUT")], [whole("OUTPUT")], [whole("START"), whole("STATE_IN")],
          [whole("STATE_OUT")], forgetful,
          sequence("oldest { max_candidate_sequences: 2 preferred_batch_size: [ 2 ] "
                   "max_queue_delay_microseconds: 1000 }", flag("START", "INT32"), state()))
    begin = ' initial_state: { data_type: TYPE_INT32 dims: [ 1 ] data_file: "begin" name: "a thousand" }'
    folder = model("state_initial", [whole("INPUT")], [whole("OUTPUT"), whole("STATE_OUT")], [whole("STATE_IN")], [],
                   plain, sequence("direct { }", state(begin)))
    (folder / "initial_state").mkdir(exist_ok=True)
    (folder / "initial_state" / "begin").write_bytes(numpy.array([1000], "<i4").tobytes())


def check():
    import onnxruntime

    def column(values, kind):
        return numpy.array(values, kind).reshape(-1, 1)

    def run(name, kind, expected, **inputs):
        session = onnxruntime.InferenceSession(HERE / name / "1" / "model.onnx")
        got = session.run(None, {key: column(*value) for key, value in inputs.items()})
        for output, values in zip(got, expected, strict=True):
            assert output.dtype == kind or output.dtype == numpy.int64, output.dtype
            numpy.testing.assert_array_equal(output, column(values, output.dtype))
        print(f"sequences/{name}: right")

    int32, fp32 = numpy.int32, numpy.float32
    run("controls_int32", int32, [[6, 5, 0]], INPUT=([5, 5, 5], int32), START=([1, 0, 0], int32),
        READY=([1, 1, 0], int32))
    run("controls_fp32", fp32, [[6, 15, 0]], INPUT=([5, 5, 5], fp32), START=([1, 0, 0], fp32),
        END=([0, 1, 0], fp32), READY=([1, 1, 0], fp32))
    run("controls_bool", int32, [[6, 15, 0], [7, 8, 2**40]], INPUT=([5, 5, 5], int32), START=([1, 0, 0], bool),
        END=([0, 1, 0], bool), READY=([1, 1, 0], bool), CORRID=([7, 8, 2**40], numpy.int64))
    for name in ("state_direct", "state_initial"):
        run(name, int32, [[7, 5], [7, 5]], INPUT=([5, 5], int32), STATE_IN=([2, 0], int32))
    run("state_oldest", int32, [[5, 7], [5, 7]], INPUT=([5, 5], int32), START=([1, 0], int32),
        STATE_IN=([2, 2], int32))
    done = {"controls_int32", "controls_fp32", "controls_bool", "state_direct", "state_oldest", "state_initial"}
    assert {path.parent.name for path in HERE.glob("*/config.pbtxt")} == done
