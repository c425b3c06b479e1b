"""Read a list of words from Parquet: one column of strings, plain or with a dictionary, with or without Snappy.

This saves a dependency of 80 MB. A file with anything else is an error that names it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

MAGIC = b"PAR1"
_BYTE_ARRAY, _UNCOMPRESSED, _SNAPPY = 6, 0, 1
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8


def read_strings(data: bytes) -> list[str]:
    """Every value of the file's only column. Raises ValueError for damage and unsupported features."""
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError("it is not a Parquet file, or is cut short")
    try:
        return [word.decode("utf-8") for word in _values(data)]
    except (IndexError, KeyError, struct.error, TypeError) as error:
        raise ValueError(f"it is damaged ({error!r})") from None


def _values(data: bytes) -> list[bytes]:
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = _Thrift(data[:-8], len(data) - 8 - length).struct()
    schema, rows, groups = footer[2], footer[3], footer[4]
    if len(schema) != 2 or schema[1].get(1) != _BYTE_ARRAY:
        raise ValueError("it holds anything but one column of strings")
    optional = schema[1].get(3, 0) == 1
    values: list[bytes] = []
    for group in groups:
        column = group[1][0][3]
        start = column.get(11) or column[9]  # the dictionary page comes first
        values += _column(data, start, column[5], column[4], optional)
    if len(values) != rows:
        raise ValueError(f"its header says {rows} rows, and it holds {len(values)}")
    return values


def _column(data: bytes, start: int, count: int, codec: int, optional: bool) -> list[bytes]:
    dictionary: list[bytes] = []
    values: list[bytes] = []
    while len(values) < count:
        reader = _Thrift(data, start)
        header = reader.struct()
        start = reader.at + header[3]
        page = _decompress(data[reader.at : start], codec, header[2])
        if header[1] == _DICTIONARY_PAGE:
            dictionary = _plain(page, header[7][1])
        elif header[1] == _DATA_PAGE:
            values += _data_page(page, header[5], dictionary, optional)
        else:
            raise ValueError(f"it has pages of type {header[1]}, which is not supported")
    return values


def _data_page(page: bytes, header: dict[int, Any], dictionary: list[bytes], optional: bool) -> list[bytes]:
    count, encoding, at = header[1], header[2], 0
    if optional:
        (length,) = struct.unpack_from("<I", page, 0)
        at = 4 + length
        if sum(_hybrid(page[4:at], 1, count)) != count:
            raise ValueError("it has missing values")
    if encoding == _PLAIN:
        return _plain(page[at:], count)
    if encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
        return [dictionary[k] for k in _hybrid(page[at + 1 :], page[at], count)]
    raise ValueError(f"it has values of encoding {encoding}, which is not supported")


def _plain(page: bytes, count: int) -> list[bytes]:
    values, at = [], 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(page[at : at + 4], "little")
        if end > len(page):
            raise ValueError("a page is cut short")
        values.append(page[at + 4 : end])
        at = end
    return values


def _hybrid(data: bytes, width: int, count: int) -> Iterator[int]:
    """Numbers in Parquet's hybrid of run-length encoding and bit packing."""
    at = made = 0
    size = (width + 7) // 8
    while made < count:
        header, at = _varint(data, at)
        if header & 1:
            groups = header >> 1
            bits = int.from_bytes(data[at : at + groups * width], "little")
            at += groups * width
            run = [bits >> (k * width) & ((1 << width) - 1) for k in range(min(groups * 8, count - made))]
        else:
            run = [int.from_bytes(data[at : at + size], "little")] * min(header >> 1, count - made)
            at += size
        if not run:
            raise ValueError("an empty run")
        made += len(run)
        yield from run


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _decompress(block: bytes, codec: int, size: int) -> bytes:
    if codec == _UNCOMPRESSED:
        return block
    if codec != _SNAPPY:
        raise ValueError(f"it is compressed with codec {codec}, which is not supported")
    out = _snappy(block)
    if len(out) != size:
        raise ValueError(f"a page of {size} bytes was decompressed to {len(out)}")
    return bytes(out)


def _snappy(block: bytes) -> bytearray:
    out = bytearray()
    _, at = _varint(block, 0)
    while at < len(block):
        tag, at = block[at], at + 1
        kind, upper = tag & 3, tag >> 2
        if kind == 0:  # literal
            if upper >= 60:
                extra = upper - 59
                upper, at = int.from_bytes(block[at : at + extra], "little"), at + extra
            out += block[at : at + upper + 1]
            at += upper + 1
            continue
        if kind == 1:
            length, offset, at = 4 + (upper & 7), (tag >> 5) << 8 | block[at], at + 1
        else:
            wide = 2 if kind == 2 else 4
            length, offset, at = upper + 1, int.from_bytes(block[at : at + wide], "little"), at + wide
        if not 0 < offset <= len(out):
            raise ValueError("a copy that starts before the beginning")
        start = len(out) - offset
        piece = out[start : start + length]
        out += (piece * (length // len(piece) + 1))[:length]  # a copy may overlap its own end
    return out


class _Thrift:
    """Thrift's compact protocol: structs become dicts by field number."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def varint(self) -> int:
        value, self.at = _varint(self.data, self.at)
        return value

    def integer(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            if byte == 0:
                return fields
            number = number + (byte >> 4) if byte >> 4 else self.integer()
            fields[number] = self.value(byte & 15)

    def value(self, kind: int) -> Any:
        if kind in (1, 2):  # the kind is the value
            return kind == 1
        if kind == 3:
            self.at += 1
            return self.data[self.at - 1]
        if kind in (4, 5, 6):
            return self.integer()
        if kind == 7:
            self.at += 8
            return struct.unpack_from("<d", self.data, self.at - 8)[0]
        if kind == 8:
            length = self.varint()
            self.at += length
            return self.data[self.at - length : self.at]
        if kind in (9, 10):
            return self.sequence()
        if kind == 12:
            return self.struct()
        raise ValueError(f"a field of type {kind}, which is not supported")

    def sequence(self) -> list[Any]:
        byte = self.data[self.at]
        self.at += 1
        length = byte >> 4 if byte >> 4 < 15 else self.varint()
        if byte & 15 in (1, 2):  # booleans in a list take a byte each
            self.at += length
            return [b == 1 for b in self.data[self.at - length : self.at]]
        return [self.value(byte & 15) for _ in range(length)]
