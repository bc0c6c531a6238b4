# SPDX-License-Identifier: Apache-2.0
from typing import Any

def __getattr__(name: str) -> Any: ...
