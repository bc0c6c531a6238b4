"""The client programs (clients/programs): outputs, exit codes and errors, in Python and C++, which are compared.

`--programs FOLDER` names the folder of the C++ programs; without it Python is checked alone. A Python program runs in this
process, so that packages are imported once.
"""

import contextlib
import io
import os
import pathlib
import re
import runpy
import socket
import subprocess
import sys
import tempfile
import warnings

import trtis_client  # noqa: F401  (adapts PyPI's package to this Python)

import checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "clients" / "programs" / "python"
PROGRAMS = None
if "--programs" in sys.argv:
    at = sys.argv.index("--programs")
    _, PROGRAMS = sys.argv[at:at + 2]
    del sys.argv[at:at + 2]
sys.path.insert(0, str(SCRIPTS))

from PIL import Image  # noqa: E402

PAIRS = "".join(f"{i} + 1 = {i + 1}\n{i} - 1 = {i - 1}\n" for i in range(16))


def run_python(program, *arguments):
    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, [program, *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            # PyPI's package uses deprecated names of numpy.
            warnings.simplefilter("ignore")
            runpy.run_path(str(SCRIPTS / f"{program}.py"), run_name="__main__")
        code = 0
    except SystemExit as end:
        # As the interpreter does: a text is printed and means 1.
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            err.write(end.code + "\n")
    finally:
        sys.argv = argv
    return code, out.getvalue(), err.getvalue()


def run_cpp(program, *arguments):
    done = subprocess.run([os.path.join(PROGRAMS, program), *arguments], capture_output=True, text=True,
                          timeout=checks.TIMEOUT)
    return done.returncode, done.stdout, done.stderr


RUNNERS = [run_python] + ([run_cpp] if PROGRAMS else [])
# No C++ form: it is about gRPC's own Python package.
PYTHON_ONLY = ["grpc_image_client"]


class Programs(checks.Case):
    def succeeds(self, run, program, *arguments):
        code, out, err = run(program, *arguments)
        self.assertEqual((code, err), (0, ""), f"{program} {arguments} printed\n{out}")
        return out

    def each(self, program, protocols=("http", "grpc")):
        """(runner, protocol, arguments) for each language and protocol."""
        for run in RUNNERS:
            for protocol in protocols:
                url = checks.HTTP if protocol == "http" else checks.GRPC
                with self.subTest(program, language=run.__name__, protocol=protocol):
                    yield run, ["-u", url, "-i", protocol]


class Simple(Programs):
    def test_simple_client(self):
        for run, server in self.each("simple_client"):
            headers = ["-H", "X-Team:one"] if "http" in server else []
            out = self.succeeds(run, "simple_client", *server, *headers)
            self.assertRegex(out, r"\AHealth for model simple:?\nLive: (True|1)\nReady: (True|1)\nStatus for model simple:?\n")
            self.assertIn('model_status {\n  key: "simple"\n', out)
            self.assertTrue(out.endswith("\n" + PAIRS), out)
            if run is run_python:
                statistics = out[out.index("====Infer Statistcs===="):]
                self.assertRegex(statistics, "^====Infer Statistcs====\ncompleted_request_count: 1\n"
                                 r"cumulative_total_request_time_ns: \d+\ncumulative_send_time_ns: \d+\n"
                                 r"cumulative_receive_time_ns: \d+\n======================= \n\n\n")

    def test_simple_string_client(self):
        for run, server in self.each("simple_string_client"):
            self.assertEqual(self.succeeds(run, "simple_string_client", *server), PAIRS)

    def test_simple_callback_client(self):
        for run, server in self.each("simple_callback_client"):
            out = self.succeeds(run, "simple_callback_client", *server)
            if run is run_python:
                lines = sorted(line for line in out.splitlines() if line.startswith(("Callback", "Main")))
                self.assertEqual(lines, ["Callback 0 is called", "Callback 1 is called"] + [
                    f"Main thread retrieved request {i}'s results:" for i in (0, 1)])
                arrays = "[ 1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16]\n[-1  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14]\n"
                self.assertEqual(out.count("results:\n" + arrays), 2, out)
            else:
                called = [f"Callback no.{i} is called\n" for i in (0, 1)]
                deferred = f"All done\nGetting results from deferred response\n{PAIRS}"
                self.assertIn(out, [a + PAIRS + b + PAIRS + deferred for a, b in (called, called[::-1])])

    def test_simple_shm_client(self):
        for run, server in self.each("simple_shm_client"):
            out = self.succeeds(run, "simple_shm_client", *server)
            self.assertIn("\n" + PAIRS, out)
            self.assertIn("shared_memory_region {\n", out[out.index(PAIRS):])

    def test_simple_shm_string_client(self):
        shifted = "".join(f"{i} + 1 = {i + 1}\n{i} - 1 = {i - 1}\n" for i in range(1, 17))
        for run, server in self.each("simple_shm_string_client"):
            pairs = PAIRS if run is run_python else shifted
            out = self.succeeds(run, "simple_shm_string_client", *server)
            self.assertIn("shared_memory_region {\n", out[out.index(pairs):])


class Sequences(Programs):
    VALUES = [11, 7, 5, 3, 2, 0, 1]

    def expected(self, last):
        """Running sums; `last` is added to the last ones."""
        lines, sums = [], [0, 100]
        for index, value in enumerate([*self.VALUES, None]):
            if value is None:
                sums = [total + more for total, more in zip(sums, last)]
            lines.append(f"[{index}] {sums[0]} : {sums[1]}\n")
            sums = [sums[0] + (value or 0), sums[1] - (value or 0)]
        return "".join(lines)

    def test_simple_sequence_client(self):
        headers = {(): "streaming : non-streaming\n", ("-r",): "non-streaming : streaming\n", ("-a",): "streaming : streaming\n"}
        for run in RUNNERS:
            for offset, (flags, header) in enumerate(headers.items()):
                for dynamic in (False, True):
                    first = (1000 if run is run_python else 1) + 2 * offset
                    ids = [first, first + 1]
                    with self.subTest(language=run.__name__, flags=flags, dynamic=dynamic):
                        arguments = ["-u", checks.GRPC, "-o", str(offset), *flags, *(["-d"] if dynamic else [])]
                        out = self.succeeds(run, "simple_sequence_client", *arguments)
                        if run is run_cpp:
                            first_line, out = out.split("\n", 1)
                            self.assertEqual(first_line, f"sequence 0 correlation ID {ids[0]} : sequence 1 correlation ID {ids[1]}")
                        # With -r the first sequence is sent over the second context.
                        last = ids[::-1] if flags == ("-r",) else ids
                        self.assertEqual(out, header + self.expected(last if dynamic else [0, 0]))


def pictures(folder):
    """Pictures of the models' size, so that no scaling makes a difference, and one that is scaled."""
    for number, side in enumerate((224, 224, 299, 64)):
        across = Image.linear_gradient("L").resize((side, side))
        bands = [across, across.rotate(90 * (number + 1)), Image.radial_gradient("L").resize((side, side))]
        Image.merge("RGB", bands).save(folder / f"picture{number}.png")
    Image.merge("RGB", bands).save(folder / "picture4.jpg", quality=95)


CLASS = re.compile(r"^    (\d+) \((.*)\) = ([-+.e0-9]+)$")


class Images(Programs):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = pathlib.Path(made.name)
        pictures(cls.folder)
        cls.names = sorted(str(file) for file in cls.folder.iterdir())

    def requests(self, out):
        """Requests of the output, each as (batch size, [(file, [(class, value)])])."""
        found = []
        for line in out.splitlines():
            if request := re.fullmatch(r"Request (\d+), batch size (\d+)", line):
                self.assertEqual(int(request[1]), len(found))
                found.append((int(request[2]), []))
            elif image := re.fullmatch("Image '(.*)':", line):
                found[-1][1].append((image[1], []))
            else:
                index, label, value = CLASS.fullmatch(line).groups()
                self.assertEqual(label, f"class {index}")
                found[-1][1][-1][1].append((int(index), float(value)))
        return found

    def alike(self, got, expected):
        """The same classes, with values as close as two ways to print and to scale them are."""
        self.assertEqual(len(got), len(expected))
        for (size, images), (expected_size, expected_images) in zip(got, expected):
            self.assertEqual((size, [name for name, _ in images]), (expected_size, [name for name, _ in expected_images]))
            for (name, classes), (_, others) in zip(images, expected_images):
                self.assertEqual(len(classes), len(others))
                self.assertEqual(classes[0][0], others[0][0], name)
                self.assertAlmostEqual(classes[0][1], others[0][1], delta=0.05 * others[0][1], msg=name)

    def test_image_clients(self):
        # With VGG, C++ and Python subtract the means in different orders, as the originals did.
        for model, scaling in (("resnet50_netdef", "NONE"), ("resnet50_onnx", "INCEPTION"), ("inception_onnx", "INCEPTION")):
            common = ["-m", model, "-s", scaling, "-c", "3", "-b", "2"]
            expected = self.requests(self.succeeds(run_python, "image_client", "-u", checks.HTTP, *common, str(self.folder)))
            self.assertEqual([[name for name, _ in images] for _, images in expected],
                             [self.names[:2], self.names[2:4], [self.names[4], self.names[0]]])
            for run in RUNNERS:
                for flags in (["-a"], ["-i", "grpc"], ["-i", "gRPC", "-a"], ["-i", "grpc", "--streaming"],
                              ["-i", "grpc", "--streaming", "-a"], ["-i", "HTTP"]):
                    url = checks.GRPC if "grpc" in str(flags).lower() else checks.HTTP
                    with self.subTest(model, language=run.__name__, flags=flags):
                        out = self.succeeds(run, "image_client", "-u", url, *common, *flags, str(self.folder))
                        self.alike(self.requests(out), expected)
            for flags in ([], ["-a"], ["--streaming"]):
                with self.subTest(model, flags=flags):
                    out = self.succeeds(run_python, "grpc_image_client", "-u", checks.GRPC, *common, *flags, str(self.folder))
                    self.alike(self.requests(out), expected)

    @checks.needs("graphdef")
    def test_graphdef_and_onnx_classify_alike(self):
        """The two files hold one network."""
        for scaling in ("INCEPTION", "VGG"):
            common = ["-u", checks.HTTP, "-s", scaling, "-c", "3", str(self.folder)]
            expected = self.requests(self.succeeds(run_python, "image_client", "-m", "inception_onnx", *common))
            got = self.requests(self.succeeds(run_python, "image_client", "-m", "inception_graphdef", *common))
            self.alike(got, expected)

    def test_scaling_of_pictures(self):
        """The same values as numpy computes from the picture's pixels."""
        import classification
        import numpy as np

        pixels = np.asarray(Image.open(self.names[0])).astype(np.float32)
        shape = type("Shape", (), {"channels": 3, "height": 224, "width": 224, "type": np.float32, "channels_first": True})
        for scaling, expected in (("NONE", pixels), ("INCEPTION", pixels / 128 - 1), ("VGG", pixels - [123, 117, 104])):
            got = classification.picture(self.names[0], shape, scaling)
            np.testing.assert_array_equal(got, expected.transpose(2, 0, 1).astype(np.float32))
        shape.channels, shape.channels_first = 1, False
        grey = np.asarray(Image.open(self.names[0]).convert("L")).astype(np.float32)[:, :, np.newaxis]
        np.testing.assert_array_equal(classification.picture(self.names[0], shape, "VGG"), grey - 128)
        if PROGRAMS:
            for scaling, expected in (("NONE", pixels), ("INCEPTION", pixels / 128 - 1), ("VGG", pixels - [104, 117, 123])):
                dump = self.folder.with_suffix(".dump")
                self.succeeds(run_cpp, "image_client", "-u", checks.HTTP, "-m", "resnet50_onnx", "-s", scaling,
                              "-p", str(dump), self.names[0])
                got = np.fromfile(dump, np.float32).reshape(3, 224, 224)
                dump.unlink()
                np.testing.assert_array_equal(got, expected.transpose(2, 0, 1).astype(np.float32))

    def test_jpeg(self):
        """Baseline and progressive files, with all and with a quarter of the chroma, in grey and in CMYK."""
        import classification
        import numpy as np

        across = Image.linear_gradient("L").resize((224, 224))
        colour = Image.merge("RGB", [across, across.rotate(90), Image.radial_gradient("L").resize((224, 224))])
        forms = {
            "full": (colour, {"subsampling": 0}),
            "subsampled": (colour, {"subsampling": 2}),
            "progressive": (colour, {"subsampling": 2, "progressive": True}),
            "restarts": (colour, {"restart_marker_blocks": 4}),
            "grey": (across, {}),
            "cmyk": (colour.convert("CMYK"), {}),
        }
        shape = type("Shape", (), {"channels": 3, "height": 224, "width": 224, "type": np.float32, "channels_first": True})
        with tempfile.TemporaryDirectory() as folder:
            for name, (picture, options) in forms.items():
                file, dump = pathlib.Path(folder, f"{name}.jpg"), pathlib.Path(folder, "dump")
                picture.save(file, quality=90, **options)
                expected = np.asarray(Image.open(file).convert("RGB")).astype(np.float32).transpose(2, 0, 1)
                arguments = ["-u", checks.HTTP, "-m", "resnet50_onnx", "-s", "NONE"]
                with self.subTest(name):
                    np.testing.assert_array_equal(classification.picture(str(file), shape, "NONE"), expected)
                    for run in RUNNERS:
                        dumped = ["-p", str(dump)] if run is run_cpp else []
                        out = self.succeeds(run, "image_client", *arguments, *dumped, str(file))
                        self.assertEqual([[image for image, _ in images] for _, images in self.requests(out)], [[str(file)]])
                    if PROGRAMS:
                        # Decoders round differently, and differ in how they scale chroma.
                        got = np.fromfile(dump, np.float32).reshape(3, 224, 224)
                        np.testing.assert_allclose(got, expected, rtol=0, atol=6)

    @checks.needs("ensemble")
    def test_ensemble_image_client(self):
        inputs = ["-s", "INCEPTION", "-m", "resnet50_netdef", "-b", "5", "-c", "2"]
        expected = self.requests(self.succeeds(RUNNERS[-1], "image_client", "-u", checks.HTTP, *inputs, str(self.folder)))
        for run, server in self.each("ensemble_image_client"):
            out = self.succeeds(run, "ensemble_image_client", *server, "-c", "2", str(self.folder))
            self.alike(self.requests("Request 0, batch size 5\n" + out), expected)


class BadInput(Programs):
    def fails(self, run, program, arguments, *texts, code=1):
        got, out, err = run(program, *arguments)
        self.assertEqual(got, code, f"{program} {arguments}: {out}{err}")
        self.assertNotIn("Traceback", err)
        for text in texts:
            self.assertRegex(err, text)

    def test_pictures(self):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            (folder / "empty").mkdir()
            (folder / "text.png").write_text("no picture")
            Image.new("RGB", (224, 224)).save(folder / "whole.png")
            (folder / "cut.png").write_bytes((folder / "whole.png").read_bytes()[:200])
            cases = [("empty", "no images in folder .*empty"), ("absent.png", "absent.png"), ("text.png", "text.png"),
                     ("cut.png", "cut.png")]
            for run in RUNNERS:
                for name, text in cases:
                    for program, url in (("image_client", checks.HTTP), ("grpc_image_client", checks.GRPC)):
                        if run is run_cpp and program in PYTHON_ONLY:
                            continue
                        with self.subTest(program, language=run.__name__, name=name):
                            self.fails(run, program, ["-u", url, "-m", "resnet50_onnx", str(folder / name)], "^error: |^Failed", text)

    def test_models(self):
        cases = [
            (["-m", "absent"], "no status available for unknown model 'absent'"),
            (["-m", "simple"], "expecting 1 input, "),
            (["-m", "simple_sequence"], "output datatype to be TYPE_FP32, model .simple_sequence. output type is TYPE_INT32"),
            (["-m", "resnet50_onnx", "-b", "9"], "expecting batch size <= 8 for model .?resnet50_onnx"),
            (["-m", "resnet50_onnx", "-x", "7"], "Inference request for unknown model 'resnet50_onnx'|no version 7|unknown"),
        ]
        with tempfile.TemporaryDirectory() as made:
            picture = os.path.join(made, "picture.png")
            Image.new("RGB", (224, 224)).save(picture)
            for run in RUNNERS:
                for flags, text in cases:
                    with self.subTest(language=run.__name__, flags=flags):
                        self.fails(run, "image_client", ["-u", checks.HTTP, *flags, picture], "^error: ", text)
                    if run is run_python:
                        self.fails(run, "grpc_image_client", ["-u", checks.GRPC, *flags, picture], "^error: ", text)

    def test_flags(self):
        for run in RUNNERS:
            # argparse exits with 2.
            usage = 2 if run is run_python else 1
            with self.subTest(language=run.__name__):
                self.fails(run, "image_client", ["-m", "m", "--streaming", "p"], "Streaming is only allowed with gRPC protocol",
                           code=usage)
                self.fails(run, "image_client", ["p"], "-m", code=usage)
                self.fails(run, "image_client", ["-m", "m", "-b", "0", "p"], "-b", code=usage)
                self.fails(run, "image_client", ["-m", "m", "-s", "SOME", "p"], "SOME", code=usage)
                self.fails(run, "image_client", ["-m", "m", "-x", "-2", "p"], "-x", code=usage)
                self.fails(run, "simple_sequence_client", ["-o", "-5"], "-o.* >= 0, got '-5'", code=usage)
                self.fails(run, "simple_client", ["-H", "no colon"], "'Header:Value', got 'no colon'", code=usage)
                for program, more in (("simple_client", []), ("ensemble_image_client", ["p"])):
                    self.fails(run, program, ["-i", "ftp", *more], "unexpected protocol.* .?ftp.?, expecting HTTP or gRPC", code=usage)
                if run is run_cpp:
                    self.fails(run, "image_client", ["-m", "m", "-b", "9" * 30, "p"], "-b is out of range, got '9{30}'")
                self.fails(run, "simple_client", ["--no-such-flag"], code=usage)
                self.fails(run, "image_client", ["-m", "m", "p", "surplus"], "surplus", code=usage)
                for program in ("simple_client", "simple_string_client", "simple_sequence_client"):
                    self.fails(run, program, ["surplus"], "surplus", code=usage)
                    self.assertIn("-u", self.succeeds(run, program, "--help"))

    def test_protocols_in_any_case(self):
        for run in RUNNERS:
            for protocol, url in (("HTTP", checks.HTTP), ("gRPC", checks.GRPC)):
                for program in ("simple_client", "simple_string_client"):
                    with self.subTest(program, language=run.__name__, protocol=protocol):
                        self.succeeds(run, program, "-u", url, "-i", protocol)

    def test_headers_are_of_no_use_with_grpc(self):
        for run in RUNNERS:
            for program in ("simple_client", "simple_shm_client"):
                with self.subTest(program, language=run.__name__):
                    code, out, err = run(program, "-u", checks.GRPC, "-i", "grpc", "-H", "X-Team:one")
                    self.assertEqual((code, err), (0, "WARNING: HTTP headers specified with -H are ignored when using "
                                                      "non-HTTP protocol.\n"))

    def test_url_that_is_none(self):
        for run in RUNNERS:
            for protocol in ("http", "grpc"):
                with self.subTest(language=run.__name__, protocol=protocol):
                    self.fails(run, "simple_string_client", ["-u", "not a url", "-i", protocol], "^error: .*not a url")

    def test_server_that_refuses_connections(self):
        with socket.socket() as unused:
            # Bound and not listening: connections are refused, and no other program gets the port.
            unused.bind(("127.0.0.1", 0))
            url = f"127.0.0.1:{unused.getsockname()[1]}"
            simple = ["simple_client", "simple_string_client", "simple_callback_client", "simple_shm_client",
                      "simple_shm_string_client"]
            for run in RUNNERS:
                for program in simple:
                    for protocol in ("http", "grpc"):
                        with self.subTest(program, language=run.__name__, protocol=protocol):
                            self.fails(run, program, ["-u", url, "-i", protocol], f"^error: .*{url}")
                with self.subTest(language=run.__name__):
                    self.fails(run, "simple_sequence_client", ["-u", url], f"^error: .*{url}")
                    self.fails(run, "image_client", ["-u", url, "-m", "m", "p"], f"^error: .*{url}")
                    self.fails(run, "ensemble_image_client", ["-u", url, "p"], f"^error: .*{url}")
            self.fails(run_python, "grpc_image_client", ["-u", url, "-m", "m", "p"], f"^error: .*{url}")


if __name__ == "__main__":
    checks.run()
