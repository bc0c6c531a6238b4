"""Asks the models of fetch.py and prints what they say. Needs Python's standard library alone.

    show.py classifier PICTURE.png       the three likeliest of 1000 classes
    show.py detector PICTURE.png         where faces are
    show.py ocr PICTURE.png              lines of text
    show.py speech SOUND.wav             when somebody speaks; 16 kHz, 16 bits, one channel
    show.py sentence TEXT TEXT...        how near the other sentences are to the first one

Pictures are PNG files of 8 bits a channel without interlacing. --url=URL names another server than localhost:8000.
"""

import argparse
import array
import json
import math
import struct
import sys
import urllib.error
import urllib.request
import wave
import zlib


class Client:
    def __init__(self, url):
        self.url = url

    def infer(self, model, inputs, outputs, **parameters):
        """`inputs`: name, datatype, shape and bytes of each. Returns (shape, bytes) of each output."""
        described = [{"name": name, "datatype": kind, "shape": shape, "parameters": {"binary_data_size": len(raw)}}
                     for name, kind, shape, raw in inputs]
        wanted = [{"name": name, "parameters": {"binary_data": True, **more}} for name, more in outputs.items()]
        head = json.dumps({"inputs": described, "outputs": wanted, "parameters": parameters}).encode()
        body = head + b"".join(raw for *_, raw in inputs)
        headers = {"Inference-Header-Content-Length": str(len(head))}
        answer, content = self.call(f"v2/models/{model}/infer", body, headers)
        length, found = int(answer["Inference-Header-Content-Length"]), {}
        at = length
        for output in json.loads(content[:length])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            found[output["name"]] = (output["shape"], content[at:at + size])
            at += size
        return found

    def call(self, path, body=None, headers=None):
        request = urllib.request.Request(f"{self.url}/{path}", body, headers or {})
        try:
            with urllib.request.urlopen(request) as response:
                return response.headers, response.read()
        except urllib.error.HTTPError as refused:
            sys.exit(f"show.py: {self.url}/{path}: {refused.code} {refused.read().decode()}")
        except urllib.error.URLError as failed:
            sys.exit(f"show.py: {self.url}: {failed.reason}")


def texts(raw):
    """The elements of a BYTES tensor."""
    found, at = [], 0
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        found.append(raw[at + 4:at + 4 + size].decode())
        at += 4 + size
    return found


def floats(raw):
    return array.array("f", raw)


def read_png(path):
    """Width, height, and a bytes of RGB for each row."""
    content = open(path, "rb").read()
    if content[:8] != b"\x89PNG\r\n\x1a\n":
        sys.exit(f"show.py: {path} is not a PNG file; convert it, for example with ImageMagick: convert {path} picture.png")
    at, packed = 8, b""
    while at < len(content):
        size, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, at + 8)
        elif kind == b"IDAT":
            packed += content[at + 8:at + 8 + size]
        at += size + 12
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(color)
    if depth != 8 or interlaced or not channels:
        sys.exit(f"show.py: {path} has {depth} bits a channel, color type {color}, interlacing {interlaced}; "
                 "a picture of 8 bits in gray or color without interlacing is expected")
    lines, stride = zlib.decompress(packed), width * channels
    before, rows = bytearray(stride), []
    for y in range(height):
        start = y * (stride + 1)
        line = unfilter(lines[start], bytearray(lines[start + 1:start + 1 + stride]), before, channels)
        before = line
        parts = [line[i::channels] for i in range(channels)] if channels > 2 else [line[::channels]] * 3
        rows.append([bytes(part) for part in parts[:3]])
    return width, height, rows


def unfilter(kind, line, before, channels):
    for i in range(len(line)) if kind else ():
        left, up = line[i - channels] if i >= channels else 0, before[i]
        corner = before[i - channels] if i >= channels else 0
        guess = left + up - corner
        nearest = min((abs(guess - one), order, one) for order, one in enumerate((left, up, corner)))[2]
        line[i] = line[i] + (left, up, (left + up) // 2, nearest)[kind - 1] & 255
    return line


def planes(picture, width, height, values, box=None):
    """The part `box` of a picture, scaled to a size: the planes red, green, blue. `values`: 256 floats of each."""
    full_width, full_height, rows = picture
    left, top, right, bottom = box or (0, 0, full_width, full_height)
    columns, lines = steps(left, right, width, full_width), steps(top, bottom, height, full_height)
    out = array.array("f")
    for channel, table in enumerate(values):
        for y, below, share in lines:
            one, two = rows[y][channel], rows[below][channel]
            line = [a + (b - a) * share for a, b in zip(one, two)] if share else one
            out.extend([table[round(line[x] + (line[right] - line[x]) * part)] for x, right, part in columns])
    return out.tobytes()


def steps(first, last, count, limit):
    """For `count` points between two places: the points before and after each, and how near it is to the latter."""
    found = []
    for at in range(count):
        place = min(max(first + (at + 0.5) * (last - first) / count - 0.5, 0), limit - 1)
        found.append((int(place), min(int(place) + 1, limit - 1), place - int(place)))
    return found


def normalized(means, deviations):
    """For each channel the value of each of 256 levels."""
    return [[(level / 255 - mean) / deviation for level in range(256)] for mean, deviation in zip(means, deviations)]


IMAGENET = normalized((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def show_classifier(client, picture):
    raw = planes(read_png(picture), 224, 224, [[(level - 127) / 128 for level in range(256)]] * 3)
    answer = client.infer("efficientnet_lite0", [("image", "FP32", [1, 3, 224, 224], raw)],
                          {"probabilities": {"classification": 3}})
    for text in texts(answer["probabilities"][1]):
        share, _, name = text.split(":", 2)
        print(f"{float(share):5.1%}  {name}")


def show_detector(client, picture):
    image = read_png(picture)
    width, height = (math.ceil(size / 32) * 32 for size in image[:2])
    raw = planes(image, width, height, [[float(level) for level in range(256)]] * 3)
    answer = client.infer("centerface", [("input.1", "FP32", [1, 3, height, width], raw)], {"537": {}, "538": {}, "539": {}})
    heat, sizes, offsets = (floats(answer[name][1]) for name in ("537", "538", "539"))
    columns, count = width // 4, len(heat)
    faces = []
    for at in sorted(range(count), key=lambda at: -heat[at]):
        if heat[at] < 0.5:
            break
        y, x = divmod(at, columns)
        tall, broad = (math.exp(sizes[at + part]) * 4 for part in (0, count))
        middle = (x + offsets[at + count] + 0.5) * 4, (y + offsets[at] + 0.5) * 4
        if all(abs(middle[0] - other[0]) > broad / 2 or abs(middle[1] - other[1]) > tall / 2 for other in faces):
            faces.append(middle)
            print(f"{heat[at]:5.1%}  face of {broad:.0f} x {tall:.0f} points, its middle at {middle[0]:.0f}, {middle[1]:.0f}")
    if not faces:
        print("no face")


def regions(mask, width, height):
    """Boxes of connected points, from the left."""
    seen, boxes = bytearray(len(mask)), []
    for start in range(len(mask)):
        if not mask[start] or seen[start]:
            continue
        seen[start], todo, found = 1, [start], []
        while todo:
            at = todo.pop()
            found.append(at)
            x = at % width
            for near, inside in ((at - 1, x > 0), (at + 1, x < width - 1), (at - width, at >= width), (at + width, at < width * (height - 1))):
                if inside and mask[near] and not seen[near]:
                    seen[near] = 1
                    todo.append(near)
        xs, ys = [at % width for at in found], [at // width for at in found]
        if len(found) > 30:
            boxes.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1))
    return sorted(boxes)


def show_ocr(client, picture):
    image = read_png(picture)
    width, height = (math.ceil(size / 32) * 32 for size in image[:2])
    raw = planes(image, width, height, IMAGENET)
    answer = client.infer("text_detection", [("x", "FP32", [1, 3, height, width], raw)], {"sigmoid_0.tmp_0": {}})
    mask = bytes(share > 0.3 for share in floats(answer["sigmoid_0.tmp_0"][1]))
    config = json.loads(client.call("v2/models/text_recognition/config")[1])
    characters = [""] + config["parameters"]["characters"]["string_value"].split("\n") + [" "]
    lines = []
    for left, top, right, bottom in regions(mask, width, height):
        # The network marks the middle of a line.
        edge = (bottom - top) * 0.6
        box = [max(left - edge, 0), max(top - edge, 0), min(right + edge, width), min(bottom + edge, height)]
        box = [part * full / padded for part, full, padded in zip(box, image[:2] * 2, (width, height) * 2)]
        long = max(round(48 * (box[2] - box[0]) / (box[3] - box[1])), 48)
        raw = planes(image, long, 48, normalized((0.5,) * 3, (0.5,) * 3), box)
        answer = client.infer("text_recognition", [("x", "FP32", [1, 3, 48, long], raw)], {"softmax_5.tmp_0": {}})
        (_, steps, width_of), raw = answer["softmax_5.tmp_0"]
        scores, line, last = floats(raw), "", 0
        for step in range(steps):
            row = scores[step * width_of:(step + 1) * width_of]
            best = max(range(width_of), key=row.__getitem__)
            line += characters[best] if best != last else ""
            last = best
        line = " ".join(line.split())
        # Words that are far apart are regions of their own.
        same = next((other for other in lines if other[0] < (top + bottom) / 2 < other[1]), None)
        if same and line:
            same[2] += " " + line
        elif line:
            lines.append([top, bottom, line])
    for _, _, line in sorted(lines):
        print(line)


def show_speech(client, sound):
    with wave.open(sound) as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (16000, 2, 1):
            sys.exit(f"show.py: {sound} has {file.getframerate()} Hz, {8 * file.getsampwidth()} bits and {file.getnchannels()} "
                     "channels; 16000 Hz, 16 bits and one channel are expected")
        samples = array.array("h", file.readframes(file.getnframes()))
    chunks, spoken, begun = len(samples) // 512, False, 0.0
    for number in range(chunks):
        raw = array.array("f", (sample / 32768 for sample in samples[number * 512:(number + 1) * 512])).tobytes()
        answer = client.infer("silero_vad", [("chunk", "FP32", [1, 512], raw)], {"output": {}}, sequence_id=1,
                              sequence_start=number == 0, sequence_end=number == chunks - 1)
        share, now = floats(answer["output"][1])[0], number * 512 / 16000
        if not spoken and share > 0.5:
            spoken, begun = True, now
        elif spoken and share < 0.35:
            spoken = False
            print(f"speech from {begun:.1f} s to {now:.1f} s")
    if spoken:
        print(f"speech from {begun:.1f} s to the end")


def show_sentence(client, *sentences):
    encoded = [sentence.encode() for sentence in sentences]
    raw = b"".join(struct.pack("<I", len(text)) + text for text in encoded)
    answer = client.infer("sentence", [("TEXT", "BYTES", [len(encoded), 1], raw)], {"embedding": {}})
    numbers = floats(answer["embedding"][1])
    width = len(numbers) // len(encoded)
    rows = [numbers[at * width:(at + 1) * width] for at in range(len(encoded))]
    for sentence, row in list(zip(sentences, rows))[1:]:
        print(f"{sum(a * b for a, b in zip(rows[0], row)):5.2f}  {sentence}")


SHOWN = {"classifier": show_classifier, "detector": show_detector, "ocr": show_ocr, "speech": show_speech, "sentence": show_sentence}


def main():
    parser = argparse.ArgumentParser(description="Asks the models of fetch.py and prints what they say.")
    parser.add_argument("example", choices=SHOWN)
    parser.add_argument("what", nargs="+", help="a file, or sentences")
    parser.add_argument("--url", default="http://localhost:8000")
    given = parser.parse_args()
    if given.example != "sentence" and len(given.what) != 1:
        parser.error(f"{given.example} takes one file")
    SHOWN[given.example](Client(given.url.rstrip("/")), *given.what)


if __name__ == "__main__":
    main()
