"""As v2_trees.py, with the v1 client."""

import checks
import trees
import v1_checks
from trtis_client import InferContext, ProtocolType

RAW = InferContext.ResultFormat.RAW


class Http(v1_checks.Protocol):
    PROTOCOL = ProtocolType.HTTP

    def test_all_models(self):
        rows, models = trees.expected()
        for name, scores in models.items():
            with self.subTest(name):
                inputs = {"input__0": list(rows)}
                got = self.context(name).run(inputs, {"output__0": RAW}, len(rows))
                for row, expected in zip(got["output__0"], scores):
                    trees.assert_equal(row, expected)


class Grpc(Http):
    PROTOCOL = ProtocolType.GRPC


if __name__ == "__main__":
    checks.run()
