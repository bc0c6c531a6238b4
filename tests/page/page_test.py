#!/usr/bin/env python3
"""The status page in a browser, with models under load: `cargo xtask page-test` runs it.

Each view in light, dark and on a phone; pictures of them in OUT. Fails on console errors, on
requests to other hosts, on serious findings of axe-core, and on names that become markup.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names of models that would do something if they became markup, or would break the lines.
HOSTILE = ["<img src=x onerror=alert(1)>", "&lt;b&gt;\u202e\u05d0\u05d1\u05d2 rtl", "x" * 120 + "\u00fc" * 60]
LONG_ID = "<b>" + "y" * 300
IDENTITY = """name: %s
backend: "onnxruntime"
max_batch_size: 8
input { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_STRING dims: [ 1 ] }
"""
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


def quoted(text):
    return '"' + "".join("\\%03o" % b if b < 32 or b > 126 or b in b'"\\' else chr(b) for b in text.encode()) + '"'


def make_repository(into):
    for name in ["digits", "simple", "dynamic_shape", "addsub_fp32", "row_totals", "identity_string"]:
        shutil.copytree(ROOT / "examples/models" / name, into / name)
    # Its batches wait longer than they need to.
    digits = into / "digits/config.pbtxt"
    digits.write_text(digits.read_text().replace("max_queue_delay_microseconds: 200", "max_queue_delay_microseconds: 4000"))
    source = (into / "identity_string/config.pbtxt").read_text()
    for name in HOSTILE:
        shutil.copytree(into / "identity_string", into / name)
        (into / name / "config.pbtxt").write_text(source.replace('"identity_string"', quoted(name)))
    broken = into / "broken"
    broken.mkdir()
    (broken / "config.pbtxt").write_text('name: "broken"\nbackend: "<i onclick=alert(2)>no such backend"\n')


class Server:
    def __init__(self, dist, models, *more):
        flags = ["--model-repository", models, "--backend-dir", dist / "backends", "--http-port=0", "--grpc-port=0", "--metrics-port=0",
                 "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1", "--exit-on-error=false",
                 "--model-control-mode=explicit", "--load-model=*", "--trace-config=level=TIMESTAMPS", "--trace-config=rate=20",
                 "--trace-slow-ms=200", "--trace-kept=100", *more]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([dist / "bin/trtserver", *flags], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = self.metrics = None
        for line in self.process.stdout:
            if line.startswith("listening http "):
                self.url = "http://" + line.split()[2]
            if line.startswith("listening metrics "):
                self.metrics = line.split()[2]
            if line.strip() == "ready":
                break
        if self.url is None or self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(self.log.read().decode())
        self.reader = threading.Thread(target=self.process.stdout.read, daemon=True)
        self.reader.start()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read()

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)


def load(server, stop):
    """Requests to digits, some of them with a wrong shape."""
    good = {"inputs": [{"name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64}]}
    wrong = {"id": LONG_ID, "inputs": [{"name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 7, 8], "data": [0.5] * 56}]}
    at = 0
    while not stop.is_set():
        at += 1
        with contextlib.suppress(urllib.error.HTTPError):
            server.ask("/v2/models/digits/infer", wrong if at % 50 == 0 else good)


class Visit:
    """A page in a browser, whose errors are collected."""

    def __init__(self, browser, server, look, findings):
        self.server, self.findings, self.look = server, findings, look
        self.context = browser.new_context(**LOOKS[look])
        self.page = self.context.new_page()
        self.page.set_default_timeout(20000)
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.note(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.note(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.note(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: request.url.startswith((server.url, "data:", "blob:")) or self.note(f"asks {request.url}"))

    def use_files(self, folder):
        """Files of the page as they are in `folder`, to look at a change without a build."""
        def fulfil(route):
            name = route.request.url.rsplit("/", 1)[1]
            route.fulfill(response=route.fetch(), body=(folder / name).read_text())
        self.page.route("**/ui/*", fulfil)

    def note(self, text):
        self.findings.append(f"{self.look}: {text}")

    def open(self, path):
        self.page.goto(self.server.url + "/#/" + path)
        expect(self.page.locator("#connection")).to_have_text("Live")

    def check(self, name, out):
        """Axe's findings, sideways scrolling, and a picture."""
        for violation in Axe().run(self.page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:200] for node in violation["nodes"][:3]]
                self.note(f"{name}: axe {violation['id']} ({violation['impact']}): {nodes}")
        # A phone zooms out for a page that is too wide.
        width = self.page.evaluate("Math.max(document.documentElement.scrollWidth, window.innerWidth)")
        if width > LOOKS[self.look]["viewport"]["width"]:
            self.note(f"{name}: the page is {width} wide")
        self.page.screenshot(path=out / f"{name}-{self.look}.png", full_page=True)

    def close(self):
        self.context.close()


def check_models(visit, out):
    page = visit.page
    visit.open("models")
    for name in HOSTILE:
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    rate = page.locator("tr", has=page.get_by_role("link", name="digits", exact=True)).locator("td").nth(1)
    expect(rate).to_have_text(re.compile("[1-9]"))
    expect(page.locator(".advice").first).to_contain_text("batches close by delay")
    expect(page.locator("tbody")).to_contain_text("<i onclick=alert(2)>no such backend")
    marked = page.evaluate("document.querySelectorAll('main img, main i, main b, [onclick], [onerror], main script').length")
    if marked:
        visit.note(f"{marked} elements were made of names")
    visit.check("models", out)


def check_keyboard(visit):
    page = visit.page
    visit.open("models")
    page.get_by_label("Filter").focus()
    page.keyboard.type("digi")
    expect(page.locator("tbody tr:not(.note)")).to_have_count(1)
    # Readings come every second: the focus must stay where it is.
    time.sleep(2.5)
    if page.evaluate("document.activeElement.id") != "filter":
        visit.note("the filter has lost the focus")
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "digits":
            break
    page.keyboard.press("Enter")
    expect(page.locator("h2").first).to_contain_text("digits")
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    if outline == "none":
        visit.note("the element with the focus does not show it")


def run_snippets(visit, args, out):
    """The programs that the page shows give the response that the page shows."""
    codes = visit.page.locator("#try pre").all_text_contents()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(args.dist / "lib")}
    curl = subprocess.run(["bash", "-c", codes[0]], capture_output=True, text=True, timeout=60, check=False)
    if '"SCORES"' not in curl.stdout:
        visit.note(f"curl says {curl.stdout} {curl.stderr}")
    if args.client_python:
        ran = subprocess.run([args.client_python, "-c", codes[1]], capture_output=True, text=True, timeout=60, check=False)
        if "SCORES" not in ran.stdout or "seven" not in ran.stdout:
            visit.note(f"Python says {ran.stdout} {ran.stderr}")
    program, source = out / "request", out / "request.cc"
    source.write_text(codes[2])
    library = next(iter(args.dist.glob("**/libtrtserver_client.so")), None)
    if library is None:
        visit.note(f"{args.dist} has no libtrtserver_client.so")
        return
    subprocess.run(["c++", "-std=c++17", "-Wall", "-Werror", "-I", ROOT / "clients/c/include", source, "-o", program, "-L", library.parent,
                    "-ltrtserver_client", f"-Wl,-rpath,{library.parent.resolve()}"], check=True, timeout=120)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False, env=environment)
    if "SCORES BYTES" not in ran.stdout:
        visit.note(f"C++ says {ran.stdout} {ran.stderr}")


def check_model(visit, args):
    page = visit.page
    visit.open("model/digits/1")
    expect(page.get_by_role("heading", name="Batches")).to_be_visible()
    expect(page.locator("main")).to_contain_text("line 3")
    expect(page.locator("main")).to_contain_text("completed by the server")
    page.set_input_files("#try input[type=file]", ROOT / "examples/digits/pictures/seven.png")
    # Ink is black here, and high for the model.
    for label, value in [("black is", "1"), ("white is", "0")]:
        page.get_by_label(label).fill(value)
        page.get_by_label(label).dispatch_event("change")
    expect(page.locator("#try")).to_contain_text("64 values: the picture")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#try")).to_contain_text("Answered in")
    expect(page.locator("#try .bars .name").first).to_have_text("seven")
    if visit.look == "light":
        run_snippets(visit, args, args.out)
    for details in page.locator("details").all():
        details.locator("summary").click()
    visit.check("model", args.out)
    page.get_by_label("values of IMAGE").fill("1 2 3")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#try .error").last).to_contain_text("has 64 values, found 3")
    # Strings, and a table.
    visit.open("model/identity_string/1")
    page.get_by_label("values of", exact=False).first.fill("<u>text</u>")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#try td")).to_have_text("<u>text</u>")
    page.get_by_label("values of", exact=False).first.fill("one\ntwo")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#try td")).to_have_text(["one", "two"])
    visit.check("strings", args.out)
    visit.open("model/broken/")
    expect(page.locator("main")).to_contain_text("no such backend")


def check_token(browser, args, models, findings):
    """Without a token the page says what is missing; with one it shows what the token may see."""
    with tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        file.write("anonymous - read:health\nviewer " + hashlib.sha256(b"a-token").hexdigest() + " read:metadata,model-config,statistics\n")
        file.flush()
        server = Server(args.dist, models, f"--auth-file={file.name}")
        own = []
        visit = Visit(browser, server, "light", own)
        page = visit.page
        page.goto(server.url + "/")
        expect(page.locator("main")).to_contain_text("No access")
        page.get_by_role("button", name="Access").click()
        visit.check("access", args.out)
        page.get_by_label("Token").fill("a-token")
        page.get_by_role("button", name="Use").click()
        expect(page.locator("#connection")).to_have_text("Live")
        expect(page.get_by_role("link", name="digits", exact=True)).to_be_visible()
        page.get_by_role("link", name="Server", exact=True).click()
        expect(page.locator("main")).to_contain_text("it lacks scope read:logging")
        visit.close()
        if server.stop() != 0:
            own.append("light: the server with tokens did not end well")
        # The browser reports refusals by itself.
        findings.extend(text for text in own if not re.search(r"status of 40[13]", text))


def check_server(visit, out):
    page, server = visit.page, visit.server
    visit.open("server")
    expect(page.locator("main")).to_contain_text("onnxruntime")
    expect(page.locator("svg rect.cell").first).to_be_visible()
    page.get_by_label("Traces").locator("li", has_text="sampled").get_by_role("button").first.click()
    expect(page.locator(".waterfall + .legend")).to_contain_text("compute")
    changes = page.get_by_role("region", name="Changes of the repository")
    server.ask("/v2/repository/models/simple/unload", {})
    expect(changes).to_contain_text("unloading simple")
    server.ask("/v2/repository/models/simple/load", {})
    expect(changes).to_contain_text("loaded simple version 1: in")
    log = page.get_by_role("region", name="Last lines of the log")
    expect(log).to_contain_text("successfully loaded 'simple'")
    page.get_by_label("At least").select_option("error")
    expect(log).not_to_contain_text("successfully loaded 'simple'")
    expect(log).to_contain_text("no such backend")
    visit.check("server", out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist", type=pathlib.Path, required=True)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--client-python", help="Python with tritonclient, for the program that the page shows")
    parser.add_argument("--files", type=pathlib.Path, help="use the page's files in this folder in place of those of the server")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    findings = []
    with tempfile.TemporaryDirectory() as models, sync_playwright() as playwright:
        make_repository(pathlib.Path(models))
        server = Server(args.dist, models)
        stop = threading.Event()
        threads = [threading.Thread(target=load, args=(server, stop), daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            browser = playwright.chromium.launch(executable_path=args.chromium)
            for look in LOOKS:
                visit = Visit(browser, server, look, findings)
                if args.files:
                    visit.use_files(args.files)
                for check in (check_models, check_model, check_server):
                    check(visit, args if check is check_model else args.out)
                if look == "light":
                    check_keyboard(visit)
                visit.close()
                if look == "light":
                    check_token(browser, args, models, findings)
                print(f"page-test: {look}: {len(findings)} findings", flush=True)
            browser.close()
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)
            status = server.stop()
        if status != 0:
            findings.append(f"the server ended with status {status}")
    for finding in findings:
        print("page-test:", finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
