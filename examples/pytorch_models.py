#!/usr/bin/env python3
"""Compiles the digits classifier to a package of AOTInductor, into examples/models-pytorch.

The package is machine code for the processor that compiles it, so it is not part of the repository. Needs
examples/requirements-pytorch.txt and a C++ compiler; serving needs torch's library alone. `--resnet50` compiles a
network of ResNet-50's shape with arbitrary weights as well, to measure with, into target/zoo-models.
"""

import argparse
import pathlib
import sys

import onnx
import torch
from onnx import numpy_helper
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE / "models-pytorch/digits_pytorch"
RESNET = HERE.parent / "target/zoo-models/resnet50_pytorch"
# Blocks and width of each stage; the first block of a stage halves the picture, except in the first.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def digits():
    """The network of examples/models/digits, with its weights."""
    graph = onnx.load(HERE / "models/digits/1/model.onnx").graph
    weights = {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()) for tensor in graph.initializer}
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(1))
    for layer, linear in enumerate([module[1], module[3]]):
        # ONNX multiplies from the other side.
        linear.weight.data = weights[f"w{layer}"].T.contiguous()
        linear.bias.data = weights[f"b{layer}"]
    return module


class Block(nn.Module):
    """A block of ResNet-50. Normalisation is folded into the convolutions, as for serving."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.narrow = nn.Conv2d(channels, width, 1)
        self.middle = nn.Conv2d(width, width, 3, stride, 1)
        self.wide = nn.Conv2d(width, 4 * width, 1)
        changes = stride > 1 or channels != 4 * width
        self.shortcut = nn.Conv2d(channels, 4 * width, 1, stride) if changes else nn.Identity()

    def forward(self, x):
        y = torch.relu(self.middle(torch.relu(self.narrow(x))))
        return torch.relu(self.shortcut(x) + self.wide(y))


def resnet50():
    torch.manual_seed(7)
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            layers.append(Block(channels, width, 2 if stage and not block else 1))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000), nn.Softmax(1)]
    return nn.Sequential(*layers)


def write(module, shape, rows, folder):
    """Compiles `module` for 1 to `rows` rows of this shape."""
    path = folder / "1/model.pt2"
    path.parent.mkdir(parents=True, exist_ok=True)
    module.eval()
    # Two or more rows: with one, torch would take the batch for a fixed size.
    example = torch.rand(2, *shape)
    batch = torch.export.Dim("batch", max=rows)
    with torch.no_grad():
        program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))
        compiled = torch._inductor.aoti_load_package(str(path))
        if not torch.allclose(compiled(example), module(example), atol=1e-6):
            sys.exit(f"{path}: the compiled module gives other results than the module")
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resnet50", action="store_true", help="as well")
    with_resnet50 = parser.parse_args().resnet50
    # Threads are the server's to choose.
    torch._inductor.config.cpp.dynamic_threads = True
    # The batch is as large as config.pbtxt says.
    write(digits(), (1, 8, 8), 16, DIGITS)
    if with_resnet50:
        write(resnet50(), (3, 224, 224), 16, RESNET)


if __name__ == "__main__":
    main()
