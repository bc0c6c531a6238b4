"""Compares the structures and functions of `_library.py` with `trtserver_client.h`: sizes, offsets, numbers of arguments.

    wheel_layout.py HEADER [COMPILER]
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

from trtserver_client import _library


def c_name(name):
    """`V1ResultInfo` is `trtc_v1_result_info`."""
    return "trtc_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def structures():
    for name, kind in vars(_library).items():
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure:
            yield ("V2Output" if name == "V2Output" else name), kind


def main():
    header = pathlib.Path(sys.argv[1])
    lines, expected = [], []
    for name, kind in structures():
        lines.append(f'printf("{name} %zu\\n", sizeof({c_name(name)}));')
        expected.append(f"{name} {ctypes.sizeof(kind)}")
        for field, *_ in kind._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({c_name(name)}, {field}), '
                         f"sizeof((({c_name(name)} *)0)->{field}));")
            place = getattr(kind, field)
            expected.append(f"{name}.{field} {place.offset} {place.size}")
    source = f'#include "{header.resolve()}"\n#include <stdio.h>\nint main(void) {{\n' + "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "layout")
        program.with_suffix(".c").write_text(source)
        compiler = sys.argv[2] if len(sys.argv) > 2 else "cc"
        subprocess.run([compiler, "-o", program, program.with_suffix(".c")], check=True)
        found = subprocess.run([program], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines()
    wrong = [f"{ours}, in the header {theirs}" for ours, theirs in zip(expected, found) if ours != theirs]
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    declared = re.findall(r"\b(trtc_\w+)\(([^)]*)\);", text)
    counts = {name: 0 if given.strip() == "void" else given.count(",") + 1 for name, given in declared}
    ours = {**_library._FALLIBLE, **_library._QUICK, **{name: given for name, (_, given) in _library._OTHERS.items()}}
    for name, arguments in ours.items():
        if counts.get("trtc_" + name) != len(arguments):
            wrong.append(f"{name} has {len(arguments)} arguments, in the header {counts.get('trtc_' + name)}")
    print(f"{len(expected)} sizes and offsets and {len(ours)} functions compared")
    sys.exit("\n".join(wrong) or None)


main()
