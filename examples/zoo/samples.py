"""Draws the pictures and the sound of the examples, with the standard library alone: nobody else's work is needed.

    samples.py DIR    writes traffic_light.png, face.png, text.png and speech.wav
"""

import math
import pathlib
import random
import struct
import sys
import wave
import zlib

RATE = 16000

# Letters of 5 x 7 points, one number a row.
LETTERS = {
    "A": (14, 17, 17, 31, 17, 17, 17), "C": (14, 17, 16, 16, 16, 17, 14), "D": (30, 17, 17, 17, 17, 17, 30),
    "E": (31, 16, 16, 30, 16, 16, 31), "F": (31, 16, 16, 30, 16, 16, 16), "H": (17, 17, 17, 31, 17, 17, 17),
    "I": (14, 4, 4, 4, 4, 4, 14), "L": (16, 16, 16, 16, 16, 16, 31), "M": (17, 27, 21, 21, 17, 17, 17),
    "N": (17, 25, 21, 21, 19, 17, 17), "O": (14, 17, 17, 17, 17, 17, 14), "R": (30, 17, 17, 30, 20, 18, 17),
    "S": (15, 16, 16, 14, 1, 1, 30), "T": (31, 4, 4, 4, 4, 4, 4), "U": (17, 17, 17, 17, 17, 17, 14),
    "V": (17, 17, 17, 17, 17, 10, 4), "W": (17, 17, 17, 21, 21, 27, 17), "Y": (17, 17, 10, 4, 4, 4, 4),
}


class Canvas:
    def __init__(self, width, height, color):
        self.width, self.height = width, height
        self.rows = [[color] * width for _ in range(height)]

    def paint(self, color, inside):
        """Gives the points for which `inside` is true a color, or what `color(x, y)` returns."""
        for y, row in enumerate(self.rows):
            for x in range(self.width):
                if inside(x, y):
                    row[x] = color(x, y) if callable(color) else color

    def rectangle(self, color, left, top, right, bottom):
        self.paint(color, lambda x, y: left <= x < right and top <= y < bottom)

    def ellipse(self, color, x0, y0, rx, ry):
        self.paint(color, lambda x, y: ((x - x0) / rx) ** 2 + ((y - y0) / ry) ** 2 <= 1)

    def text(self, words, left, top, size, color):
        for at, letter in enumerate(words):
            for row, bits in enumerate(LETTERS.get(letter, ())):
                for column in range(5):
                    if bits >> (4 - column) & 1:
                        x, y = left + (at * 6 + column) * size, top + row * size
                        self.rectangle(color, x, y, x + size, y + size)

    def smooth(self):
        """Each point becomes the mean of itself and its neighbours."""
        old, right, bottom = self.rows, self.width - 1, self.height - 1
        def mean(x, y):
            near = [old[b][a] for b in (max(y - 1, 0), y, min(y + 1, bottom)) for a in (max(x - 1, 0), x, min(x + 1, right))]
            return tuple(sum(part) // 9 for part in zip(*near))
        self.rows = [[mean(x, y) for x in range(self.width)] for y in range(self.height)]

    def write_png(self, path):
        lines = b"".join(b"\0" + bytes(part for point in row for part in point) for row in self.rows)
        def chunk(kind, body):
            return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def draw_traffic_light():
    canvas = Canvas(224, 224, (150, 190, 230))
    canvas.rectangle((60, 60, 60), 107, 170, 118, 224)
    def housing(x, y):
        """A box with round corners."""
        beside, above = max(91 - x, x - 133, 0), max(34 - y, y - 161, 0)
        return beside ** 2 + above ** 2 <= 14 ** 2
    canvas.paint((25, 25, 25), housing)
    for y, color in ((48, (230, 30, 30)), (98, (60, 50, 10)), (148, (10, 50, 20))):
        canvas.ellipse(color, 112, y, 21, 21)
    return canvas


def draw_face():
    canvas = Canvas(160, 160, (120, 150, 180))
    canvas.rectangle((60, 70, 120), 30, 138, 130, 160)
    canvas.rectangle((205, 160, 130), 66, 110, 95, 145)
    canvas.ellipse((60, 40, 30), 80, 68, 44, 50)
    def skin(x, y):
        light = 1 - 0.3 * (((x - 72) / 40) ** 2 + ((y - 75) / 55) ** 2)
        return tuple(int(part * max(light, 0.5)) for part in (240, 195, 165))
    canvas.ellipse(skin, 80, 80, 36, 48)
    for x in (65, 95):
        canvas.ellipse((70, 45, 35), x, 62, 9, 2.2)
        canvas.ellipse((245, 245, 245), x, 71, 7.5, 4)
        canvas.ellipse((60, 40, 30), x, 71, 3.6, 3.8)
        canvas.ellipse((15, 10, 10), x, 71, 1.8, 1.8)
    canvas.ellipse((195, 145, 118), 80, 88, 5, 9)
    for x in (76.5, 83.5):
        canvas.ellipse((120, 75, 60), x, 95, 2, 1.4)
    canvas.ellipse((175, 75, 75), 80, 108, 13, 5)
    canvas.ellipse((110, 40, 40), 80, 107, 12, 1.3)
    return canvas


def draw_text():
    canvas = Canvas(320, 96, (250, 248, 240))
    canvas.text("HELLO FROM TRITON", 8, 12, 3, (20, 20, 20))
    canvas.text("TENSORS SERVED", 8, 56, 3, (40, 40, 120))
    canvas.smooth()
    return canvas


# Formants of vowels in Hz, by Peterson and Barney's measurements, rounded.
VOWELS = {"a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010), "o": (570, 840, 2410), "u": (300, 870, 2240)}


def speak(vowels, seconds, pitch):
    """A voice: pulses of the vocal cords, through three resonances that glide from vowel to vowel."""
    count, phase, memory, out = int(seconds * RATE), 0.0, [[0.0, 0.0] for _ in range(3)], []
    noise = random.Random(1)
    for at in range(count):
        place = at / count * len(vowels)
        one, two = vowels[int(place)], vowels[min(int(place) + 1, len(vowels) - 1)]
        glide = max(place % 1 - 0.7, 0) / 0.3
        hertz = pitch * (1 + 0.15 * math.sin(2.2 * at / RATE * math.pi))
        phase += hertz / RATE
        pulse = 1.0 if phase >= 1 else 0.0
        phase -= int(phase)
        sample = pulse + noise.gauss(0, 0.01)
        for (first, second), state, width in zip(zip(VOWELS[one], VOWELS[two]), memory, (80, 90, 120)):
            formant = first + (second - first) * glide
            r = math.exp(-math.pi * width / RATE)
            sample += 2 * r * math.cos(2 * math.pi * formant / RATE) * state[0] - r * r * state[1]
            state[1], state[0] = state[0], sample
        # Syllables.
        out.append(sample * math.sin(math.pi * (place % 1)) ** 0.5)
    loudest = max(abs(sample) for sample in out)
    return [0.6 * sample / loudest for sample in out]


def write_speech(path):
    """A second of faint noise, 1.5 seconds of voice, a second of faint noise."""
    noise = random.Random(2)
    def quiet():
        return [noise.gauss(0, 0.001) for _ in range(RATE)]
    samples = quiet() + speak("aeioaiu", 1.5, 120) + quiet()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(b"".join(struct.pack("<h", int(32767 * max(-1, min(1, one)))) for one in samples))


def write_samples(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("traffic_light", draw_traffic_light), ("face", draw_face), ("text", draw_text)):
        draw().write_png(folder / f"{name}.png")
    write_speech(folder / "speech.wav")


if __name__ == "__main__":
    write_samples(pathlib.Path(sys.argv[1]))
