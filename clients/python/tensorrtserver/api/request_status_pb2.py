# SPDX-License-Identifier: Apache-2.0
"""Messages of `request_status.proto` (v1)."""

from tensorrtserver.api import _protobuf

_protobuf.fill(globals(), "request_status.proto")
