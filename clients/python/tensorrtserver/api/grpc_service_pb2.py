# SPDX-License-Identifier: Apache-2.0
"""Messages of `grpc_service.proto` (v1)."""

from tensorrtserver.api import _protobuf

_protobuf.fill(globals(), "grpc_service.proto")
