"""Shared by the cancellation checks: counts cancelled requests."""

import time
import urllib.request

import checks


class Case(checks.Case):
    """The model `stuck` executes one request at a time, and each until it is cancelled; ten seconds at most."""

    MODEL = "stuck"

    def setUp(self):
        self.before = self.canceled()

    def canceled(self):
        """Requests cancelled while executing or queued."""
        return self.metric('nv_inference_request_failure{model="stuck",reason="CANCELED",version="1"}')

    def waiting(self):
        return self.metric('nv_inference_pending_request_count{model="stuck",version="1"}')

    def metric(self, sample):
        with urllib.request.urlopen(f"http://{checks.METRICS}/metrics") as page:
            for line in page.read().decode().splitlines():
                if line.startswith(sample + " "):
                    return float(line.split()[-1])
        self.fail(f"no {sample}")

    def until(self, what, holds):
        begin = time.monotonic()
        while not holds():
            self.assertLess(time.monotonic() - begin, checks.TIMEOUT, what)
            time.sleep(0.005)

    def all_gone(self, count):
        """This many requests were cancelled since the check began, and none is left."""
        self.until(f"{count} requests cancelled", lambda: self.canceled() == self.before + count)
        self.assertEqual(self.waiting(), 0)
