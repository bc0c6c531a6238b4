"""What the image programs share: the requirements on the model, reading and scaling of pictures, and the printed results."""

import os
import sys

import numpy as np
from program import Refused, number
from tensorrtserver.api import model_config_pb2

try:
    from PIL import Image
except ImportError:
    sys.exit("error: the image programs need the package Pillow: pip install pillow")

DataType, ModelInput = model_config_pb2.DataType, model_config_pb2.ModelInput

TYPES = {
    "TYPE_BOOL": np.bool_, "TYPE_UINT8": np.uint8, "TYPE_UINT16": np.uint16, "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64, "TYPE_INT8": np.int8, "TYPE_INT16": np.int16, "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64, "TYPE_FP16": np.float16, "TYPE_FP32": np.float32, "TYPE_FP64": np.float64,
}


def flags_of_model(parser):
    """The flags of image_client and grpc_image_client."""
    parser.add_argument("-a", "--async", dest="at_once", action="store_true", help="Use asynchronous inference API")
    parser.add_argument("--streaming", action="store_true", help="Use streaming inference API. Only with gRPC protocol.")
    parser.add_argument("-m", "--model-name", required=True, help="Name of model")
    parser.add_argument("-x", "--model-version", type=number(-1), default=-1, help="Version of model. Default is the latest.")
    parser.add_argument("-b", "--batch-size", type=number(1), default=1, help="Batch size. Default is 1.")
    parser.add_argument("-s", "--scaling", choices=["NONE", "INCEPTION", "VGG"], default="NONE",
                        help="Type of scaling to apply to image pixels. Default is NONE.")


def flags_of_pictures(parser):
    parser.add_argument("-c", "--classes", type=number(1), default=1, help="Number of class results. Default is 1.")
    parser.add_argument("image_filename", help="Input image / Input folder.")


def config_in(server_status, model):
    if model not in server_status.model_status:
        raise Refused(f"unable to get status for '{model}'")
    config = server_status.model_status[model].config
    if len(config.input) != 1:
        raise Refused(f"expecting 1 input, got {len(config.input)}")
    if len(config.output) != 1:
        raise Refused(f"expecting 1 output, got {len(config.output)}")
    return config


class Model:
    """What a program must know of a classification model; refuses models of another shape."""

    def __init__(self, config, batch_size):
        name, given, taken = config.name, config.output[0], config.input[0]
        if given.data_type != model_config_pb2.TYPE_FP32:
            raise Refused(f"expecting output datatype to be TYPE_FP32, model '{name}' output type is "
                          f"{DataType.Name(given.data_type)}")
        # A vector, which may have more dimensions as long as they are 1.
        if -1 in given.dims:
            raise Refused("variable-size dimension in model output not supported")
        if sum(dim > 1 for dim in given.dims) > 1:
            raise Refused("expecting model output to be a vector")
        if config.max_batch_size == 0 and batch_size != 1:
            raise Refused(f"batching not supported for model '{name}'")
        if config.max_batch_size > 0 and batch_size > config.max_batch_size:
            raise Refused(f"expecting batch size <= {config.max_batch_size} for model {name}")
        if len(taken.dims) != 3:
            raise Refused(f"expecting input to have 3 dimensions, model '{name}' input has {len(taken.dims)}")
        if -1 in taken.dims:
            raise Refused("variable-size dimension in model input not supported")
        if taken.format not in (ModelInput.FORMAT_NCHW, ModelInput.FORMAT_NHWC):
            raise Refused(f"unexpected input format {ModelInput.Format.Name(taken.format)}, "
                          "expecting FORMAT_NCHW or FORMAT_NHWC")
        kind = DataType.Name(taken.data_type)
        if kind not in TYPES:
            raise Refused(f'unexpected input datatype "{kind}" for model "{name}"')
        self.input, self.output, self.type = taken.name, given.name, TYPES[kind]
        self.channels_first = taken.format == ModelInput.FORMAT_NCHW
        if self.channels_first:
            self.channels, self.height, self.width = taken.dims
        else:
            self.height, self.width, self.channels = taken.dims
        if self.channels not in (1, 3):
            raise Refused(f"expecting an input of 1 or 3 channels, model '{name}' has {self.channels}")


def picture(filename, model, scaling):
    """The picture as the model's input: RGB or grey, of its size, type and order."""
    try:
        with Image.open(filename) as image:
            image = image.convert("L" if model.channels == 1 else "RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise Refused(f"unable to read image {filename}: {error}") from error
    pixels = np.asarray(image.resize((model.width, model.height), Image.BILINEAR))
    pixels = pixels.reshape(model.height, model.width, model.channels).astype(model.type)
    if scaling == "INCEPTION":
        pixels = (pixels / 128 - 1).astype(model.type)
    elif scaling == "VGG":
        mean = (128,) if model.channels == 1 else (123, 117, 104)
        pixels = pixels - np.asarray(mean, dtype=model.type)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if model.channels_first else pixels)


def filenames_in(path):
    """The file, or the files of a folder in order."""
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.path.join(path, name) for name in os.listdir(path))
    names = [name for name in names if os.path.isfile(name)]
    if not names:
        raise Refused(f"no images in folder {path}")
    return names


def batches(items, size):
    """Batches of this size; the first items fill up the last one."""
    for start in range(0, len(items), size):
        yield [items[index % len(items)] for index in range(start, start + size)]


def show(filenames, results):
    """Prints the classes of each picture of a batch: (index, value, label)."""
    if len(results) != len(filenames):
        raise Refused(f"expected {len(filenames)} results, got {len(results)}")
    for filename, classes in zip(filenames, results):
        print(f"Image '{filename}':")
        for index, value, label in classes:
            print(f"    {index} ({label}) = {value}")
