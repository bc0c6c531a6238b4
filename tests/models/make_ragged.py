"""Writes the ONNX models of the ragged batching tests to `ragged/`: make.py runs it.

    counts   each row is the whole RAGGED_INPUT, BATCH_AND_SIZE_INPUT and BATCH_INPUT of its batch; the number of rows is
             the size of BATCH_AND_SIZE_INPUT, as in the model of Triton's L0_batch_input
    items    BATCH_INPUT of two dimensions as it is; RAGGED_INPUT is not read
    cut      twice the input, in one dimension
"""

import pathlib

from onnx import TensorProto, helper
from onnx_models import OPSET, IR_VERSION

HERE = pathlib.Path(__file__).resolve().parent / "ragged"


def write(name, inputs, outputs, nodes):
    def tensors(ranks):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}_{i}" for i in range(rank)])
                for name, rank in ranks.items()]

    graph = helper.make_graph(nodes, name, tensors(inputs), tensors(outputs))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    HERE.mkdir(exist_ok=True)
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def make():
    node = helper.make_node
    names = ["RAGGED", "BATCH_AND_SIZE", "BATCH"]
    repeat = [node("Constant", [], ["one"], value_ints=[1]), node("Constant", [], ["zero"], value_ints=[0]),
              node("Shape", ["BATCH_AND_SIZE_INPUT"], ["rows"]),
              node("Concat", ["rows", "one"], ["repeats"], axis=0)]
    for name in names:
        repeat += [node("Unsqueeze", [f"{name}_INPUT", "zero"], [f"{name}_row"]),
                   node("Tile", [f"{name}_row", "repeats"], [f"{name}_OUTPUT"])]
    write("counts", {f"{name}_INPUT": 1 for name in names}, {f"{name}_OUTPUT": 2 for name in names}, repeat)
    write("items", {"RAGGED_INPUT": 1, "BATCH_INPUT": 2}, {"BATCH_OUTPUT": 2},
          [node("Identity", ["BATCH_INPUT"], ["BATCH_OUTPUT"])])
    write("cut", {"INPUT0": 1}, {"OUTPUT0": 1}, [node("Add", ["INPUT0", "INPUT0"], ["OUTPUT0"])])


if __name__ == "__main__":
    make()
