"""Fails if a public item of the packages has no docstring.

    docstrings.py PACKAGE...
"""

import importlib
import inspect
import pkgutil
import sys


def modules(package):
    yield package
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        # Generated from protocol files.
        if not found.name.rsplit(".", 1)[1].startswith("_") and "_pb2" not in found.name:
            module = importlib.import_module(found.name)
            yield from modules(module) if found.ispkg else [module]


def public(module):
    """Names and objects of a module, and the methods and properties of its classes."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        item = getattr(module, name, None)
        if not (inspect.isclass(item) or inspect.isfunction(item)):
            continue
        if item.__module__.split(".")[0] != module.__name__.split(".")[0]:
            continue
        yield name, item
        for part, value in vars(item).items() if inspect.isclass(item) else []:
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if inspect.isfunction(value) and not part.startswith("_"):
                yield f"{name}.{part}", value


def main():
    counted, missing = 0, []
    for package in sys.argv[1:]:
        for module in modules(importlib.import_module(package)):
            for name, item in [("the module", module), *public(module)]:
                counted += 1
                if not inspect.getdoc(item):
                    missing.append(f"{module.__name__}: {name}")
    print(f"{counted} docstrings")
    if missing:
        sys.exit("no docstring:\n  " + "\n  ".join(sorted(set(missing))))


main()
