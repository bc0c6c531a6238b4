"""Cases with a client of the v2 protocol, one for each wire: `library`, and `client`."""

import tritonclient.grpc
import tritonclient.http

import checks


class HttpCase(checks.Case):
    library = tritonclient.http

    def setUp(self):
        self.client = self.library.InferenceServerClient(checks.HTTP)
        self.addCleanup(self.client.close)


class GrpcCase(checks.Case):
    library = tritonclient.grpc

    def setUp(self):
        self.client = self.library.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
