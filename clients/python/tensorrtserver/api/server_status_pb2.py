# SPDX-License-Identifier: Apache-2.0
"""Messages of `server_status.proto` (v1)."""

from tensorrtserver.api import _protobuf

_protobuf.fill(globals(), "server_status.proto")
