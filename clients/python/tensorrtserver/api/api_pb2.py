# SPDX-License-Identifier: Apache-2.0
"""Messages of `api.proto` (v1)."""

from tensorrtserver.api import _protobuf

_protobuf.fill(globals(), "api.proto")
