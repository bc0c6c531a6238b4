#!/usr/bin/env python3
"""Converts the digits classifier to OpenVINO's own format, and writes examples/models-openvino.

OpenVINO reads the ONNX file as well; its own format loads faster and has the weights in a file of their own. Needs
examples/requirements-openvino.txt; serving needs the library alone.
"""

import pathlib

import openvino

HERE = pathlib.Path(__file__).resolve().parent


def main():
    model = openvino.convert_model(HERE / "models/digits/1/model.onnx")
    version = HERE / "models-openvino/digits_openvino/1"
    version.mkdir(parents=True, exist_ok=True)
    # Weights stay FP32, so that the scores are those of the ONNX model.
    openvino.save_model(model, version / "model.xml", compress_to_fp16=False)


if __name__ == "__main__":
    main()
