"""Protobuf wire format, as far as the files of small models need it. Standard library only."""

import struct


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """A field of an integer type, a bool or an enum."""
    return varint(field << 3) + varint(int(value))


def real(field, value):
    """A field of type float."""
    return varint(field << 3 | 5) + struct.pack("<f", value)


def text(field, value):
    """A string, bytes or message field."""
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def texts(field, values):
    return b"".join(text(field, value) for value in values)


def numbers(field, values):
    """A packed repeated field of an integer type."""
    return text(field, b"".join(map(varint, values)))
