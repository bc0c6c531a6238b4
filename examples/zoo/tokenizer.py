"""A model of Triton's Python backend: WordPiece tokens of texts, as BERT's uncased tokenizer makes them.

Input TEXT, BYTES [batch, 1]. Outputs input_ids and attention_mask, INT64 [batch, tokens]: as many tokens as the longest
text of the batch has. vocabulary.txt lies beside this file.
"""

import pathlib
import unicodedata

import numpy
import triton_python_backend_utils as pb_utils

LONGEST = 256


def words_of(text):
    """Lower-case words without accents; each punctuation mark and each Chinese character is a word."""
    text = unicodedata.normalize("NFD", text.lower())
    word = ""
    for letter in text:
        category = unicodedata.category(letter)
        if category == "Mn" or category.startswith("C") and letter not in "\t\n\r":
            continue
        alone = category[0] in "PS" and letter.isascii() or category[0] == "P" or "\u4e00" <= letter <= "\u9fff"
        if (alone or letter.isspace()) and word:
            yield word
            word = ""
        if alone:
            yield letter
        elif not letter.isspace():
            word += letter
    if word:
        yield word


class TritonPythonModel:
    def initialize(self, args):
        lines = pathlib.Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8").split("\n")
        self.numbers = {piece: number for number, piece in enumerate(lines)}
        self.unknown, self.first, self.last = (self.numbers[f"[{name}]"] for name in ("UNK", "CLS", "SEP"))

    def pieces(self, word):
        """The longest pieces of the vocabulary, from the left."""
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self.numbers), None)
            if end is None or len(word) > 100:
                return [self.unknown]
            found.append(self.numbers[prefix + word[start:end]])
            start = end
        return found

    def tokens(self, text):
        pieces = [piece for word in words_of(text) for piece in self.pieces(word)]
        return [self.first, *pieces[:LONGEST - 2], self.last]

    def execute(self, requests):
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)
            rows = [self.tokens(text.decode("utf-8", "replace")) for text in texts]
            width = max(len(row) for row in rows)
            ids = numpy.array([row + [0] * (width - len(row)) for row in rows], dtype=numpy.int64)
            mask = numpy.array([[1] * len(row) + [0] * (width - len(row)) for row in rows], dtype=numpy.int64)
            outputs = [pb_utils.Tensor("input_ids", ids), pb_utils.Tensor("attention_mask", mask)]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
