"""Imports the client modules of packages that are servers first, without their servers.

`kserve` and `mlserver` import their servers, and some fifty packages, in the `__init__.py` of each package. The clients need
few of them. Here these packages are modules with nothing but a path; the client modules themselves are imported unchanged.
"""

import importlib.util
import sys
import types

PACKAGES = ("kserve", "mlserver", "mlserver.batching", "mlserver.grpc")

for name in PACKAGES:
    package = types.ModuleType(name)
    package.__path__ = list(importlib.util.find_spec(name).submodule_search_locations)
    sys.modules[name] = package
