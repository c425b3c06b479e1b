"""The reader of Parquet that the words of glove-6b need: Snappy by hand, and the real index."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.resources import parquet


def thrift_varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def snappy_literals(data: bytes) -> bytes:
    """Valid Snappy of literals of all header widths, and one overlapping copy where the data starts with a run."""
    out, at = thrift_varint(len(data)), 0
    run = len(data) - len(data.lstrip(data[:1]))
    if run > 5:
        length = min(run - 1, 64)
        out, at = out + b"\0" + data[:1] + bytes([(length - 1) << 2 | 2, 1, 0]), 1 + length
    for size in (3, 70, 300, 1 << 20):
        piece = data[at : at + size]
        if piece:
            n = len(piece) - 1
            head = bytes([n << 2]) if n < 60 else bytes([60 << 2, n]) if n < 256 else bytes([61 << 2]) + n.to_bytes(2, "little")  # fmt: skip # noqa: E501
            out, at = out + head + piece, at + len(piece)
    assert at == len(data)
    return out


@given(st.binary(max_size=600) | st.builds(lambda k, b: b"z" * k + b, st.integers(0, 90), st.binary(max_size=90)))
def test_snappy(data):
    assert bytes(parquet._snappy(snappy_literals(data))) == data


def test_snappy_copies():
    stream = (
        thrift_varint(18) + b"\x0cabcd" + bytes([0b000_010_01, 4]) + bytes([7 << 2 | 3]) + struct.pack("<I", 3)
    )
    assert bytes(parquet._snappy(stream)) == b"abcd" + b"abcdab" + b"dabdabda"[:8]
    with pytest.raises(ValueError, match="before the beginning"):
        parquet._snappy(thrift_varint(6) + b"\x04ab" + bytes([0b000_000_01, 9]))


def test_not_parquet():
    for data in (b"", b"PAR1PAR1", b"PAR1" + b"\xff" * 50 + b"PAR1", b"PAR1" + b"\0" * 50 + b"\4\0\0\0PAR1"):
        with pytest.raises(ValueError, match="damaged|not a Parquet|cut short|anything but"):
            parquet.read_strings(data)


def test_real_index_has_every_word_once():
    if not resources.available("glove-6b"):
        pytest.skip("glove-6b is not installed: jacana-torch resources install glove-6b")
    words = parquet.read_strings((resources.path("glove-6b") / "glove_6B_index.parquet").read_bytes())
    assert len(words) == len(set(words)) == 400_000
    assert words[:4] == ["the", ",", ".", "of"] and words[-1] == "sandberger"
