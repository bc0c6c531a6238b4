"""Trains the `digits` model and writes it, its labels, its report and the sample pictures.

The data are the 1,797 handwritten digits that come with scikit-learn (8 by 8 pixels, 0 to 16).
A third is held out; the network never sees it, and the sample pictures are taken from it.

What the model takes: IMAGE, one channel of 8 by 8 pixels, 0.0 for paper to 1.0 for full ink.
What it gives: SCORES, ten probabilities, zero to nine.
"""

import pathlib
import sys

import numpy
from onnx import helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from onnx_models import Tensor, write  # noqa: E402

LABELS = "zero one two three four five six seven eight nine".split()
HIDDEN = 32
ENLARGE = 8  # the pictures are 64 by 64, so that a person sees something


def main():
    data = load_digits()
    ink = (data.images / 16.0).astype(numpy.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        ink, data.target, test_size=1 / 3, random_state=1, stratify=data.target)

    network = MLPClassifier(hidden_layer_sizes=(HIDDEN,), alpha=0.01, max_iter=2000, random_state=1)
    network.fit(train_x.reshape(-1, 64), train_y)
    guesses = network.predict(test_x.reshape(-1, 64))
    accuracy = float((guesses == test_y).mean())
    right = int((guesses == test_y).sum())
    print(f"held out: {right} of {len(test_y)} right, {accuracy:.1%}")
    if accuracy < 0.95:
        sys.exit("not good enough to be shown")

    write_model(network)
    write_pictures(network, test_x, test_y)
    (HERE / "README.md").write_text(REPORT.format(
        trained=len(train_y), tested=len(test_y), right=right, accuracy=accuracy, hidden=HIDDEN))


def write_model(network):
    weights = []
    for layer, (w, b) in enumerate(zip(network.coefs_, network.intercepts_)):
        weights.append(numpy_helper.from_array(w.astype(numpy.float32), f"w{layer}"))
        weights.append(numpy_helper.from_array(b.astype(numpy.float32), f"b{layer}"))
    nodes = [
        helper.make_node("Flatten", ["IMAGE"], ["pixels"], axis=1),
        helper.make_node("Gemm", ["pixels", "w0", "b0"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w1", "b1"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["SCORES"], axis=1),
    ]
    folder = write(
        HERE.parent / "models", "digits",
        [Tensor("IMAGE", "FP32", [1, 8, 8])],
        [Tensor("SCORES", "FP32", [10], more=['label_filename: "digit_labels.txt"'])],
        {1: nodes}, max_batch_size=16, initializers=weights,
        more="dynamic_batching {\n  preferred_batch_size: [ 8, 16 ]\n  max_queue_delay_microseconds: 200\n}\n")
    (folder / "digit_labels.txt").write_text("\n".join(LABELS) + "\n")


def write_pictures(network, images, digits):
    """For each digit, the first held-out picture that the network gets right and is sure of."""
    scores = network.predict_proba(images.reshape(-1, 64))
    for digit, label in enumerate(LABELS):
        index = next(i for i in range(len(digits))
                     if digits[i] == digit and scores[i].argmax() == digit and scores[i].max() > 0.9)
        paper = 255 - numpy.rint(images[index] * 255).astype(numpy.uint8)
        Image.fromarray(paper.repeat(ENLARGE, axis=0).repeat(ENLARGE, axis=1)).save(
            HERE / "pictures" / f"{label}.png", optimize=True)
        if label == "seven":  # for docs/requests.md: what the model takes, without a picture format
            ((255 - paper) / 255).astype("<f4").tofile(HERE / "seven.f32")


REPORT = """# The digits model

A network of {hidden} hidden units that reads handwritten digits, trained by `train.py` on the data set that
comes with scikit-learn (8 by 8 pixels). This page is written by the script.

| | |
|---|---|
| pictures trained on | {trained} |
| pictures held out | {tested} |
| held-out pictures read right | {right} ({accuracy:.1%}) |

- Input `IMAGE`, FP32 [1, 8, 8]: 0.0 is paper, 1.0 is full ink.
- Output `SCORES`, FP32 [10]: probabilities of zero to nine; the labels are in `digit_labels.txt`.
- `pictures/` holds one held-out picture of each digit, black ink on white paper, enlarged to 64 by 64: the first
  one of its kind that the network reads right with a score above 0.9. A client averages each block of 8 by 8
  pixels and takes (255 - grey) / 255.
- `seven.f32` is `pictures/seven.png` as the model takes it: 64 little-endian floats.

To train it again:

```
python3 -m venv /tmp/train && /tmp/train/bin/pip install -r examples/requirements.txt
/tmp/train/bin/python examples/digits/train.py
/tmp/train/bin/python examples/make_models.py
/tmp/train/bin/python examples/netdef_models.py
```

The last command converts the model to NetDef (`examples/models-caffe2`). `examples/tensorflow_models.py`, which needs
`examples/requirements-tensorflow.txt`, converts it to GraphDef and SavedModel (`examples/models-tensorflow`).
`examples/openvino_models.py`, which needs `examples/requirements-openvino.txt`, converts the model to OpenVINO's format
(`examples/models-openvino`).
`examples/pytorch_models.py`, which needs `examples/requirements-pytorch.txt`, compiles it for PyTorch
(`examples/models-pytorch`).
`examples/trees_models.py`, which needs `examples/requirements-trees.txt`, trains decision trees of LightGBM and XGBoost
on the same pictures (`examples/models-trees`).
"""


if __name__ == "__main__":
    main()
