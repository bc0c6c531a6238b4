# SPDX-License-Identifier: Apache-2.0
"""Messages of `model_config.proto` (v1)."""

from tensorrtserver.api import _protobuf

_protobuf.fill(globals(), "model_config.proto")
