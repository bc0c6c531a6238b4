"""Reads the sample pictures with the finished model in ONNX Runtime, the way a client does."""

import pathlib
import sys

import numpy
import onnxruntime
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent


def main():
    model = HERE.parent / "models" / "digits"
    labels = (model / "digit_labels.txt").read_text().splitlines()
    session = onnxruntime.InferenceSession(model / "1" / "model.onnx")
    wrong = 0
    for file in sorted((HERE / "pictures").glob("*.png")):
        grey = numpy.asarray(Image.open(file).convert("L"), numpy.float32)
        blocks = grey.reshape(8, grey.shape[0] // 8, 8, grey.shape[1] // 8).mean(axis=(1, 3))
        scores, = session.run(None, {"IMAGE": ((255 - blocks) / 255).reshape(1, 1, 8, 8)})
        label = labels[scores[0].argmax()]
        wrong += label != file.stem
        print(f"{file.name}: {label} ({scores[0].max():.3f})")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
