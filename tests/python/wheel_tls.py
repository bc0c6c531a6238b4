"""TLS of our wheel: v2 with its parameters, v1 by the scheme of the URL and the authorities of the system.

    wheel_tls.py … --servers HTTP GRPC HTTP_MUTUAL GRPC_MUTUAL --files CA CERTIFICATE KEY

The addresses are of servers with TLS; those called mutual want a certificate of the client.
"""

import os
import sys

import numpy as np


def taken(flag, count):
    at = sys.argv.index(flag)
    values = sys.argv[at + 1:at + 1 + count]
    del sys.argv[at:at + 1 + count]
    return values


SERVERS, FILES = taken("--servers", 4), taken("--files", 3)
ONE_SIDED, MUTUAL = SERVERS[:2], SERVERS[2:]
CA, CERTIFICATE, KEY = FILES

import checks  # noqa: E402
from tensorrtserver.api import InferContext, InferenceServerException, ProtocolType, ServerHealthContext  # noqa: E402
from trtserver_client import Client, ConnectionFailed, InferenceError  # noqa: E402

VALUES = np.array([[1, 2]], np.float32)
SCHEMES = ("https", "grpcs")


class Tls(checks.Case):
    def infers(self, url, **settings):
        with Client(url, deadline=checks.TIMEOUT, **settings) as client:
            self.assertEqual(client.infer("echo", {"INPUT0": VALUES})["OUTPUT0"].tolist(), VALUES.tolist())

    def fails(self, kind, text, url, **settings):
        with self.assertRaisesRegex(kind, text) as caught, Client(url, deadline=checks.TIMEOUT, **settings) as client:
            client.infer("echo", {"INPUT0": VALUES})
        return caught.exception

    def test_v2(self):
        for scheme, one_sided, mutual in zip(SCHEMES, ONE_SIDED, MUTUAL):
            with self.subTest(scheme):
                url = f"{scheme}://{one_sided}"
                self.infers(url, ca_file=CA)
                self.infers(url, insecure=True)
                error = self.fails(ConnectionFailed, "the TLS handshake failed", url, ca_file=CERTIFICATE)
                self.assertIn(url, str(error))
                url = f"{scheme}://{mutual}"
                self.fails(ConnectionFailed, mutual, url, ca_file=CA)
                self.infers(url, ca_file=CA, certificate_file=CERTIFICATE, key_file=KEY)
                self.fails(InferenceError, "a certificate and its key", url, ca_file=CA, certificate_file=CERTIFICATE)
                self.fails(InferenceError, "cannot read tls_ca_file /nowhere.pem", url, ca_file="/nowhere.pem")

    def test_v1(self):
        kinds = (ProtocolType.HTTP, ProtocolType.GRPC)
        for protocol, scheme, address in zip(kinds, SCHEMES, ONE_SIDED):
            with self.subTest(scheme):
                # The scheme https chooses TLS with both protocols.
                for url in (f"https://{address}",) if scheme == "https" else (f"https://{address}", f"grpcs://{address}"):
                    os.environ["SSL_CERT_FILE"] = CA
                    context = InferContext(url, protocol, "echo")
                    got = context.run({"INPUT0": [VALUES[0]]}, {"OUTPUT0": InferContext.ResultFormat.RAW})
                    self.assertEqual(got["OUTPUT0"][0].tolist(), [1, 2])
                    os.environ["SSL_CERT_FILE"] = CERTIFICATE
                    with self.assertRaisesRegex(InferenceServerException, f"the TLS handshake failed.*s://{address}"):
                        ServerHealthContext(url, protocol).is_live()


if __name__ == "__main__":
    checks.run()
