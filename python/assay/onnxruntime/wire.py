"""ONNX files as protobuf fields: as much of the encoding as reading names and replacing single fields needs.

What a session tells of its model (producer, metadata, declared types) is not the library's business, and the package
onnx is not needed to run models: so this reads the file itself. Large weights are skipped, not read.
"""
from __future__ import annotations

from typing import Iterator, NamedTuple, Union

Buffer = Union[bytes, memoryview]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """Not a protobuf message."""


class Field(NamedTuple):
    """A field of a message: its number, its value as a number, or where its bytes are, and where it is as a whole."""

    number: int
    wire: int
    value: int
    data: Buffer
    whole: Buffer

    def text(self) -> str:
        """The value as text."""
        return bytes(self.data).decode("utf-8", "surrogateescape")

    def signed(self) -> int:
        """The value as an int64."""
        return self.value - (1 << 64) if self.value >> 63 else self.value


def _varint(buffer: Buffer, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(buffer) or shift > 63:
            raise Malformed("a number is cut off")
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(buffer: Buffer) -> Iterator[Field]:
    """The fields of a message, in their order."""
    at, end = 0, len(buffer)
    while at < end:
        begin = at
        tag, at = _varint(buffer, at)
        number, wire, value, data = tag >> 3, tag & 7, 0, buffer[0:0]
        if not number:
            raise Malformed("a field has number 0")
        if wire == VARINT:
            value, at = _varint(buffer, at)
        else:
            if wire == BYTES:
                size, at = _varint(buffer, at)
            elif wire in (FIXED64, FIXED32):
                size = 8 if wire == FIXED64 else 4
            else:
                raise Malformed("a field has wire type %d" % wire)
            if size > end - at:
                raise Malformed("a field is cut off")
            data = buffer[at:at + size]
            at += size
        yield Field(number, wire, value, data, buffer[begin:at])


def varint(value: int) -> bytes:
    """A number as a message has it; negative ones as 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """A field with a number."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, data: Buffer) -> bytes:
    """A field with bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(data)) + bytes(data)
