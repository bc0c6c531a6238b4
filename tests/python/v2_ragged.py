"""Ragged batching with the v2 client, as in Triton's L0_batch_input.

The models wait for four rows, which the requests of each test have together, and so form one batch.
"""

import numpy as np

import checks
from v2_stream import Stream, counts

SIZES = [2, 4, 1, 3]


def full(*shape):
    return np.full(shape, shape[-1], np.float32)


class Ragged(checks.Case):
    def together(self, model, inputs, output, name="RAGGED_INPUT"):
        """Sends all inputs and returns the output of each; they were executed in one run."""
        with Stream() as stream:
            for values in inputs:
                stream.send(model, {name: values}, outputs=[output])
            results = [result.as_numpy(output) for result in stream.results()]
        self.assertEqual(counts(model)["executions"], 1)
        return results

    def every(self, model, output, expected):
        """Each request gets one row, which says something of the whole batch."""
        for got in self.together(model, [full(1, n) for n in SIZES], output):
            np.testing.assert_array_equal(got, np.array([expected], np.float32))

    def test_ragged_input_is_flat(self):
        self.every("flat", "RAGGED_OUTPUT", [n for n in SIZES for _ in range(n)])

    def test_element_count(self):
        self.every("element_count", "BATCH_AND_SIZE_OUTPUT", SIZES)

    def test_accumulated_element_count(self):
        self.every("accumulated", "BATCH_AND_SIZE_OUTPUT", [2, 6, 7, 10])

    def test_accumulated_element_count_with_zero(self):
        self.every("with_zero", "BATCH_OUTPUT", [0, 2, 6, 7, 10])

    def test_accumulated_element_count_with_zero_of_an_isolated_model(self):
        self.every("isolated", "BATCH_OUTPUT", [0, 2, 6, 7, 10])

    def test_max_element_count_as_shape(self):
        self.every("max_as_shape", "BATCH_OUTPUT", [0, 0, 0, 0])

    def test_item_shape_flatten(self):
        inputs = [full(1, 4, 1), full(1, 1, 2), full(1, 1, 2), full(1, 2, 2)]
        for got in self.together("flatten", inputs, "BATCH_OUTPUT"):
            np.testing.assert_array_equal(got, [[4, 1, 1, 2, 1, 2, 2, 2]])

    def test_item_shape(self):
        """A request of two rows gets two."""
        inputs = [full(2, 1, 2), full(1, 1, 2), full(1, 2, 2)]
        expected = [[[1, 2], [1, 2]], [[1, 2]], [[2, 2]]]
        for got, row in zip(self.together("items", inputs, "BATCH_OUTPUT"), expected, strict=True):
            np.testing.assert_array_equal(got, row)

    def cut(self, model, inputs):
        for got, sent in zip(self.together(model, inputs, "OUTPUT0", "INPUT0"), inputs, strict=True):
            np.testing.assert_array_equal(got, 2 * sent)

    def test_output_is_cut_by_the_shapes_of_the_input(self):
        self.cut("cut", [full(1, 2), full(2, 4), full(1, 0)])

    def test_output_of_an_isolated_model_is_cut(self):
        self.cut("cut_isolated", [full(1, 2), full(1, 4), full(1, 1), full(1, 3)])

    def test_backend_gathers_ragged_inputs_or_reads_each(self):
        for model in ("merged", "each", "custom"):
            inputs = [full(1, 2), full(1, 4), full(1, 0), full(1, 3)]
            for got, sent in zip(self.together(model, inputs, "OUTPUT0", "INPUT0"), inputs, strict=True):
                np.testing.assert_array_equal(got, sent)

    def test_one_request_is_a_batch(self):
        with Stream() as stream:
            stream.send("alone", {"RAGGED_INPUT": full(1, 3)})
            [result] = stream.results()
        np.testing.assert_array_equal(result.as_numpy("RAGGED_OUTPUT"), [[3, 3, 3]])
        np.testing.assert_array_equal(result.as_numpy("BATCH_AND_SIZE_OUTPUT"), [[3]])
        np.testing.assert_array_equal(result.as_numpy("BATCH_OUTPUT"), [[0, 3]])


if __name__ == "__main__":
    checks.run()
