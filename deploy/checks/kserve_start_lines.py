"""Start lines of KServe's runtimes, with the layouts of models that KServe makes."""

import os
import shutil
import time

from .server import ROOT, TIMEOUT, check_drain, check_infer, check_ports, check_probes, copy_model, started


def bare(model, names):
    """Files of one model, as the storage initializer puts them."""

    def prepare(folder):
        at = folder / "mnt/models"
        at.mkdir(parents=True)
        for name in names:
            shutil.copy(ROOT / "tests/models" / model / name, at)

    return prepare


def run_kserve(dist, runtimes, findings):
    runtime = runtimes["trtserver"]["spec"]
    (container,) = runtime["containers"]
    words = container["args"]
    check_ports(findings, "runtime trtserver", words, [container["readinessProbe"]["httpGet"]["port"]])
    findings.expect("--http-port=8080" in words, "runtime trtserver", "KServe expects HTTP at 8080")
    layouts = {
        "onnx": (bare("addsub_fp32", ["1/model.onnx"]), "digits"),
        "caffe2": (bare("netdef/addsub_fp32", ["1/model.netdef", "1/init_model.netdef", "config.pbtxt"]), "digits"),
        "repository": (lambda folder: copy_model("addsub_fp32", folder / "mnt/models"), "addsub_fp32"),
    }
    for name, (prepare, model) in layouts.items():
        where = f"runtime trtserver, {name}"
        with started(dist, words, prepare, {"INFERENCE_SERVICE_NAME": "digits"}) as server:
            server.wait_ready()
            check_probes(findings, where, server, container)
            check_infer(findings, where, server, model)
            if name == "onnx":
                check_drain(findings, where, server, model, container)
    run_formats(dist, words, findings)
    run_modelcar(dist, words, container, findings)
    run_agent(dist, runtimes["trtserver-multi-model"], findings)


def run_formats(dist, words, findings):
    """Formats whose libraries an install may lack: files of one model, without a configuration."""
    formats = {
        "xgboost": ("libxgboost.so", "trees/xgb_binary", ["1/model.json"]),
        "lightgbm": ("lib_lightgbm.so", "trees/lgbm_binary", ["1/model.txt"]),
        "openvino_ir": ("libopenvino_c.so", "openvino/baked", ["1/model.xml", "1/model.bin"]),
    }
    for name, (library, model, files) in formats.items():
        if (dist / "lib" / library).exists():
            with started(dist, words, bare(model, files), {"INFERENCE_SERVICE_NAME": "digits"}) as server:
                server.wait_ready()
                status, text = server.ask("/v2/models/digits/ready")
                findings.expect(status == 200, f"runtime trtserver, {name}", f"{status} {text}")


def run_modelcar(dist, words, container, findings):
    """/mnt/models is a link into the root of another process, and comes late."""
    where = "runtime trtserver, modelcar"

    def prepare(folder):
        (folder / "mnt").mkdir()
        at = folder / "proc/7/root/models"
        at.mkdir(parents=True)
        shutil.copy(ROOT / "tests/models/addsub_fp32/1/model.onnx", at)

    env = {"INFERENCE_SERVICE_NAME": "digits", "MODEL_INIT_MODE": "async"}
    with started(dist, words, prepare, env) as server:
        log, begin = server.folder / "log", time.monotonic()
        while "/mnt/models" not in log.read_text() and time.monotonic() - begin < TIMEOUT:
            time.sleep(0.02)
        findings.expect(not server.ready.is_set(), where, "ready before there is a model")
        os.symlink(server.folder / "proc/7/root/models", server.folder / "mnt/models")
        server.wait_ready()
        check_probes(findings, where, server, container)
        check_infer(findings, where, server, "digits")


def run_agent(dist, runtime, findings):
    """Load and unload as KServe's agent asks for them."""
    where = "runtime trtserver-multi-model"
    (container,) = runtime["spec"]["containers"]
    with started(dist, container["args"], lambda folder: (folder / "mnt/models").mkdir(parents=True)) as server:
        server.wait_ready()
        check_probes(findings, where, server, container)
        shutil.copytree(ROOT / "tests/models/addsub_fp32", server.folder / "mnt/models/addsub_fp32")
        for action, served in (("load", True), ("unload", False)):
            status, text = server.ask(f"/v2/repository/models/addsub_fp32/{action}", b"{}")
            findings.expect(status == 200, where, f"{action}: {status} {text}")
            if served:
                check_infer(findings, where, server, "addsub_fp32")
        begin = time.monotonic()
        while server.ask("/v2/models/addsub_fp32/ready")[0] == 200 and time.monotonic() - begin < TIMEOUT:
            time.sleep(0.05)
        status, _ = server.ask("/v2/models/addsub_fp32/ready")
        findings.expect(status != 200, where, "serves a model that was unloaded")
