"""Makes the model repository of the client programs (docs/clients.md). Needs a C++ compiler, and no Python packages.

    python3 examples/clients/models.py DIRECTORY [--tensorflow] [--client DIST]

The classification models have the shapes of the models that the programs were written for, and random weights.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import network

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = 8


def tensor(name, kind, dims, *more):
    return "  {\n" + "".join(f"    {line}\n" for line in (
        f'name: "{name}"', f"data_type: TYPE_{kind}", f"dims: [ {', '.join(map(str, dims))} ]", *more)) + "  }"


def listed(key, entries):
    return key + " [\n" + ",\n".join(entries) + "\n]\n"


def write(folder, platform, inputs, outputs, files, more="", labels=None, batch=BATCHES):
    """One model: its configuration, the files of version 1, and labels as (file, lines)."""
    (folder / "1").mkdir(parents=True, exist_ok=True)
    sections = listed("input", inputs) + listed("output", outputs)
    head = f'name: "{folder.name}"\nplatform: "{platform}"\nmax_batch_size: {batch}\n'
    (folder / "config.pbtxt").write_text(head + sections + more)
    for name, contents in files.items():
        (folder / "1" / name).write_bytes(contents)
    if labels is not None:
        (folder / labels[0]).write_text("".join(f"{line}\n" for line in labels[1]))


def addsub(repository, name, kind):
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1; strings are decimal numbers."""
    element = {"INT32": network.INT32, "STRING": network.STRING}[kind]
    inputs, outputs = ["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]
    operators, nodes = ["Add", "Sub"], []
    if kind == "STRING":
        nodes = [network.onnx_node("Cast", [i], [f"{i}_number"], to=network.INT32) for i in inputs]
        for operator, output in zip(operators, outputs):
            nodes.append(network.onnx_node(operator, [f"{i}_number" for i in inputs], [f"{output}_number"]))
            nodes.append(network.onnx_node("Cast", [f"{output}_number"], [output], to=network.STRING))
    else:
        nodes = [network.onnx_node(operator, inputs, [output]) for operator, output in zip(operators, outputs)]
    model = network.onnx_model(
        name, nodes, [(i, element, [16]) for i in inputs], [(o, element, [16]) for o in outputs])
    write(repository / name, "onnxruntime_onnx", [tensor(i, kind, [16]) for i in inputs],
          [tensor(o, kind, [16]) for o in outputs], {"model.onnx": model})


def classifier(repository, name, platform, net, output, names, dims, files):
    classes = net.channels[output]
    order = "NHWC" if dims[-1] == 3 else "NCHW"
    labels = f"{net.name}_labels.txt"
    write(repository / name, platform, [tensor(names[0], "FP32", dims, f"format: FORMAT_{order}")],
          [tensor(names[1], "FP32", [classes], f'label_filename: "{labels}"')], files,
          labels=(labels, [f"class {i}" for i in range(classes)]))


def library(source, target, *options):
    compiler = os.environ.get("CXX", "c++")
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-std=c++11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
               "-o", str(target), str(HERE / source), *options]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"models.py: cannot compile {source}: {error}\n  CXX names the C++ compiler (default: c++)")


def control(name, what):
    return f'    {{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{what} int32_false_true: [ 0, 1 ] }} ] }}'


def sequence(repository, name, file, strategy, controls, *options):
    """OUTPUT is the sum of a sequence so far."""
    more = (f'default_model_filename: "{file}"\ninstance_group [ {{ count: 1 kind: KIND_CPU }} ]\n'
            "sequence_batching {\n  max_sequence_idle_microseconds: 60000000\n"
            + strategy + listed("  control_input", controls) + "}\n")
    write(repository / name, "custom", [tensor("INPUT", "INT32", [1])], [tensor("OUTPUT", "INT32", [1])], {}, more)
    library("sequence.cc", repository / name / "1" / file, *options)


def ensemble(repository, dist, names, classes):
    """preprocess_resnet50_ensemble: pictures as files, which a library reads and scales for resnet50_netdef."""
    preprocess, dims = "image_preprocess_nchw_3x224x224_inception", [3, 224, 224]
    include, lib = dist.resolve() / "include", dist.resolve() / "lib"
    if not (lib / "libtrtserver_client.so").exists():
        sys.exit(f"models.py: no libtrtserver_client.so in {lib}: `cargo xtask build` makes it")
    file = "libimagepreprocess.so"
    write(repository / preprocess, "custom", [tensor("INPUT", "STRING", [1])], [tensor("OUTPUT", "FP32", dims)], {},
          f'default_model_filename: "{file}"\ninstance_group [ {{ count: 1 kind: KIND_CPU }} ]\n')
    # The library finds the client library where it is now.
    library("image_preprocess.cc", repository / preprocess / "1" / file, f"-I{include}", f"-L{lib}",
            "-ltrtserver_client", f"-Wl,-rpath,{lib}")
    steps = [step(preprocess, "INPUT", "INPUT", "OUTPUT", "picture"),
             step("resnet50_netdef", names[0], "picture", names[1], "OUTPUT")]
    write(repository / "preprocess_resnet50_ensemble", "ensemble", [tensor("INPUT", "STRING", [1])],
          [tensor("OUTPUT", "FP32", [classes])], {},
          "ensemble_scheduling {\n" + listed("  step", steps) + "}\n")


def step(model, source, source_tensor, target, target_tensor):
    return (f'    {{\n      model_name: "{model}"\n      model_version: -1\n'
            f'      input_map {{ key: "{source}" value: "{source_tensor}" }}\n'
            f'      output_map {{ key: "{target}" value: "{target_tensor}" }}\n    }}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="receives the models; models of other names are kept")
    parser.add_argument("--tensorflow", action="store_true", help="add inception_graphdef, which needs TensorFlow's library")
    parser.add_argument("--client", type=pathlib.Path, metavar="DIST",
                        help="add preprocess_resnet50_ensemble, whose library uses the C client library of this install")
    given = parser.parse_args()
    repository = given.directory
    addsub(repository, "simple", "INT32")
    addsub(repository, "simple_string", "STRING")

    controls = [control("START", "START"), control("READY", "READY")]
    sequence(repository, "simple_sequence", "libsequence.so", "", controls)
    identified = controls + [
        control("END", "END"), '    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }']
    oldest = "  oldest { max_candidate_sequences: 64 }\n"
    sequence(repository, "simple_dyna_sequence", "libdyna_sequence.so", oldest, identified, "-DBY_CORRELATION_ID")

    net, output = network.resnet50()
    dims, names = [3, 224, 224], ("gpu_0/data", "gpu_0/softmax")
    predict, init = network.netdef(net, output, names)
    classifier(repository, "resnet50_netdef", "caffe2_netdef", net, output, names, dims,
               {"model.netdef": predict, "init_model.netdef": init})
    if given.client:
        ensemble(repository, given.client, names, net.channels[output])
    names = ("input", "output")
    classifier(repository, "resnet50_onnx", "onnxruntime_onnx", net, output, names, dims,
               {"model.onnx": network.onnx(net, output, names, dims)})

    net, output = network.inception()
    dims = [299, 299, 3]
    classifier(repository, "inception_onnx", "onnxruntime_onnx", net, output, names, dims,
               {"model.onnx": network.onnx(net, output, names, dims)})
    if given.tensorflow:
        names = ("input", "InceptionV3/Predictions/Softmax")
        classifier(repository, "inception_graphdef", "tensorflow_graphdef", net, output, names, dims,
                   {"model.graphdef": network.graphdef(net, output, names, dims)})
    print(f"{repository}: {', '.join(sorted(path.name for path in repository.iterdir()))}")


if __name__ == "__main__":
    main()
