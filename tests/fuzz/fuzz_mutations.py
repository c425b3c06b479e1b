"""Mutations of documents: of bytes, of tokens, and of the structure that lines, columns and JSON have.

`mutated(seeds, name, number)` is the same in every process: no input has to be kept to be seen again.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Sequence

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

BYTES = (
    b"\x00", b"\xff", b"\x80", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" ", b"\x85",
    b"\x0c", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xa8", b"\x1f\x8b", b"\x7f", b'"', b"\\", b"{", b"}", b"[",
    b"]", b"|", b"-", b"<", b"\xf0\x9f\x98\x80", b"\xcc\x81",
)  # fmt: skip
TOKENS = (
    b"0", b"-1", b"1", b"999999999", b"9999999999", b"1e999", b"-1e999", b"1e308", b"NaN", b"Infinity", b"true",
    b"null", b"9" * 400, b"9" * 4301, b"1_0", b"\xd9\xa1", b"0-0", b"0p0", b"1-999999999", b"p1", b"p0", b"/",
    b"|||", b" ||| ", b"NULL", b"({", b"})", b"({ / / })", b"# sentence pair 1", b"source", b"target",
    b"premise\thypothesis", b"S", b"P", b"N/A", b"\\ud800", b"\\udc80", b"\\ud83d\\ude00", b"\\u0000",
    b"\\u2028", b"sure", b"links", b"confidence", b"score", b"id", b"source_pos", b"target_x", b"[]", b"{}",
    b"[[]]", b'""', b"_", b"-", b"B-", b"-B", b"<s snum=1>", b"</s>", b"1.",
)  # fmt: skip
VALUES = (
    0, -1, 1, 10**9, 10**20, 10**400, 1e308, float("inf"), float("-inf"), float("nan"), 0.5, True, None, "", "a",
    "a b", " ", "\ud800", "\udcff", "\U0001f600", "\u2028", "\x00", [], {}, [[]], [None], [0, 0], [[0, 0]],
    [[0, 1], [0]], {"0-0": 1}, {"0-0": 10**400}, {"\ud800": 1}, ["a", "b"], ["a", ""], ["\ud800"], [1e308],
    "0-0", "0-0 1-1", "links", ["O", "PER-B"], [2, 0],
)  # fmt: skip
KEYS = (
    "id", "name", "source", "target", "sure", "possible", "sureAlign", "possibleAlign", "confidence", "score",
    "links", "source_pos", "target_head", "source_ner", "source_heads", "source_x", "label", "", "\ud800",
    "meta",
)  # fmt: skip
LONG = 20_000  # bytes that a mutation makes of one piece
_TOKEN = re.compile(rb"[^\s\"{}\[\]:,|]+|\s+|.", re.DOTALL)


def _span(rng: random.Random, data: bytes, longest: int = 24) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randrange(longest))


# ---- bytes


def flipped(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    if not data:
        return b"\x00"
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def inserted(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(BYTES) * rng.choice((1, 1, 1, 2, 7)) + data[at:]


def deleted(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def doubled(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data, 80)
    return data[:end] + data[start:end] + data[end:]


def cut(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.7 else data[rng.randrange(len(data) + 1) :]


def lengthened(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data, 8)
    piece = data[start:end] or rng.choice(BYTES)
    return data[:start] + piece * (LONG // len(piece)) + data[end:]


# ---- tokens


def _tokens(change: Callable[[random.Random, list[bytes], int], None]) -> Mutation:
    def mutation(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        tokens = _TOKEN.findall(data)
        if not tokens:
            return rng.choice(TOKENS)
        change(rng, tokens, rng.randrange(len(tokens)))
        return b"".join(tokens)

    return mutation


def _replace(rng: random.Random, tokens: list[bytes], at: int) -> None:
    tokens[at] = rng.choice(TOKENS)


def _drop(rng: random.Random, tokens: list[bytes], at: int) -> None:
    del tokens[at]


def _exchange(rng: random.Random, tokens: list[bytes], at: int) -> None:
    other = rng.randrange(len(tokens))
    tokens[at], tokens[other] = tokens[other], tokens[at]


def _repeat(rng: random.Random, tokens: list[bytes], at: int) -> None:
    tokens.insert(at, tokens[rng.randrange(len(tokens))])


# ---- lines and columns


def _lines(change: Callable[[random.Random, list[bytes], int, Sequence[bytes]], None]) -> Mutation:
    def mutation(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        lines = data.split(b"\n")
        change(rng, lines, rng.randrange(len(lines)), others)
        return b"\n".join(lines)

    return mutation


def _drop_line(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    del lines[at]


def _move_line(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    lines.insert(rng.randrange(len(lines)), lines.pop(at))


def _repeat_line(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    lines[at:at] = [lines[at]] * rng.choice((1, 1, 2, 60))


def _join_lines(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    lines[at : at + 2] = [rng.choice((b"", b" ", b"\t", b"\r")).join(lines[at : at + 2])]


def _foreign_line(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    lines.insert(at, rng.choice(rng.choice(others).split(b"\n")))


def _blank_line(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    lines.insert(at, rng.choice((b"", b"\r", b" ", b"\t", b"\xc2\xa0", b"\xef\xbb\xbf", b"\xe2\x80\xa8")))


def _change_columns(rng: random.Random, lines: list[bytes], at: int, others: Sequence[bytes]) -> None:
    separator = b"\t" if b"\t" in lines[at] else rng.choice((b" ||| ", b" ", b", "))
    columns = lines[at].split(separator)
    place = rng.randrange(len(columns))
    rng.choice(
        (
            lambda: columns.pop(place),
            lambda: columns.insert(place, rng.choice((b"", *TOKENS))),
            lambda: columns.insert(place, columns.pop()),
            lambda: columns.append(columns[place]),
        )
    )()
    lines[at] = rng.choice((separator, separator, b"\t", b" ||| ")).join(columns)


# ---- JSON


def _objects(value: object) -> list:
    """Every list and object inside a value, with itself."""
    found, left = [], [value]
    while left:
        one = left.pop()
        if isinstance(one, (dict, list)):
            found.append(one)
            left += one.values() if isinstance(one, dict) else one
    return found


def _change_value(rng: random.Random, value: object) -> object:
    containers = [one for one in _objects(value) if one]
    if not containers:
        return rng.choice(VALUES)
    place = rng.choice(containers)
    key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
    kind = rng.randrange(6)
    if kind == 0:
        del place[key]
    elif kind == 1 and isinstance(place, dict):
        place[rng.choice(KEYS)] = place.pop(key)
    elif kind == 2:
        other = rng.choice(containers)
        place[key] = json.loads(json.dumps(rng.choice(list(other.values() if isinstance(other, dict) else other))))
    elif kind == 3 and isinstance(place, dict):
        place[rng.choice(KEYS)] = rng.choice(VALUES)
    else:
        place[key] = rng.choice(VALUES)
    return value


def changed_json(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change a value of the document or of one of its lines, if that is JSON."""
    for whole in (True, False):
        lines = [data] if whole else data.split(b"\n")
        at = rng.randrange(len(lines))
        try:
            value = json.loads(lines[at])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, (dict, list)):
            text = json.dumps(_change_value(rng, value), ensure_ascii=rng.random() < 0.7)
            lines[at] = text.encode("utf-8", "surrogatepass").replace(b"Infinity", b"1e999")
            return b"\n".join(lines)
    return inserted(rng, data, others)


def nested(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Put brackets around a token, many of them."""
    depth = rng.choice((2, 20, 99, 100, 101, 500, 985, 990, 995, 1000, 5000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"({", b"})"), (b"<s snum=1>", b"</s>")))
    tokens = _TOKEN.findall(data) or [b"0"]
    at = rng.randrange(len(tokens))
    end = closing * depth if rng.random() < 0.7 else b""
    tokens[at] = opening * depth + rng.choice((tokens[at], b"0", b"")) + end
    return b"".join(tokens)


# ---- documents


def spliced(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def packed(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def encoded(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "latin-1", "utf-8-sig", "utf-32-le")), "replace")


def crlf(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", b"\r\n")


# A mutation, and how often it is chosen.
MUTATIONS: tuple[tuple[Mutation, float], ...] = (
    (flipped, 4), (inserted, 6), (deleted, 4), (doubled, 3), (cut, 2), (lengthened, 0.3),
    (_tokens(_replace), 9), (_tokens(_drop), 3), (_tokens(_exchange), 3), (_tokens(_repeat), 3),
    (_lines(_drop_line), 3), (_lines(_move_line), 2), (_lines(_repeat_line), 2), (_lines(_join_lines), 2),
    (_lines(_foreign_line), 2), (_lines(_blank_line), 2), (_lines(_change_columns), 6),
    (changed_json, 10), (nested, 1), (spliced, 1), (packed, 0.5), (encoded, 0.5), (crlf, 0.5),
)  # fmt: skip
_CHOICES = [mutation for mutation, _ in MUTATIONS]
_WEIGHTS = [weight for _, weight in MUTATIONS]


def mutated(seeds: Sequence[bytes], others: Sequence[bytes], name: str, number: int) -> bytes:
    """Return input `number` for what is called `name`: a seed after one to five mutations."""
    rng = random.Random(f"{name}/{number}")
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        (mutation,) = rng.choices(_CHOICES, _WEIGHTS)
        data = mutation(rng, data, others)
    return data
