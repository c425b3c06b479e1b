"""Inputs that once broke a property, by what they did: (target, bytes)."""

from __future__ import annotations

_DEEP = b"[" * 5000 + b"]" * 5000
_ROW = b'"source_pos": ["NNS", "VBD", "NN", "."], "target_pos": ["NNS", "VBD", "NN", "."]'

FOUND: dict[str, tuple[str, bytes]] = {
    "a very long token whose text is spelt otherwise, in seconds": (
        "jsonl",
        b'{"source": "a '
        + b"b" * 40_000
        + b'", "target": "c", "source_tokens": ["a", "'
        + b"x" * 40_000
        + b'"]}\n',
    ),
    "a confidence near the largest float": ("naacl beside its text", b"1 1 1 S 1e+308\n"),
    "digits of a confidence, in quadratic time": ("naacl beside its text", b"1 1 1 S " + b"1" * 40_000 + b"x\n"),
    "the same while guessing the format": ("guessed", b"1 1 1 S " + b"1" * 40_000 + b"x\n"),
    "a word without links, in quadratic time": ("msr", b"# sentence pair 1\na\n" + b"x" * 100_000 + b"\n"),
    "blank lines after a pair, in quadratic time": (
        "msr",
        b"# sentence pair 1\na\nNULL ({ / / }) b ({ / / })\n" + b"\n" * 100_000,
    ),
    "backslashes of a token, in quadratic time": (
        "mst",
        b"Geese\ta" + b"\\" * 20_000 + b"\nNNS\tVBD\nnsubj\troot\n2\t0\n-\t-\n",
    ),
    "a score above all floats": (
        "jsonl",
        b'{"source": "a", "target": "b", "sure": [], "score": ' + b"9" * 400 + b"}\n",
    ),
    "a confidence above all floats": (
        "jsonl",
        b'{"source": "a", "target": "b", "sure": [], "confidence": {"0-0": ' + b"9" * 400 + b"}}\n",
    ),
    "digits beyond what Python parses": ("jsonl", b'{"source": "a", "target": "b", "x": ' + b"9" * 5000 + b"}\n"),
    "a position with many digits in the message": (
        "jsonl",
        b'{"source": "a", "target": "b", "sure": [[0, ' + b"9" * 4000 + b"]]}\n",
    ),
    "a layer with half a surrogate pair": (
        "jsonl",
        b'{"source": "a", "target": "b", "source_x": ["\\ud800"], "target_pos": ["\\udc80"]}\n',
    ),
    "a layer with an infinite number": ("jsonl", b'{"source": "a", "target": "b", "source_x": [1e999]}\n'),
    "another key with half a surrogate pair": ("jsonl", b'{"source": "a", "target": "b", "x": {"\\udfff": 1}}\n'),
    "another key nested too deeply to write": (
        "jsonl",
        b'{"source": "a", "target": "b", "x": ' + b"[" * 900 + b"]" * 900 + b"}\n",
    ),
    "links without a kind, read as none": ("jacana", b'[{"source": "a", "target": "b", "links": "0-0"}]\n'),
    "a key that is not UTF-8": ("jacana", b'[{"source": "a", "target": "b", "x\xe9": 1}]\n'),
    "a name where there is no id": ("jsonl", b'{"source": "a", "target": "b", "name": "0-0"}\n'),
    "a line of no-break spaces, taken for blank": ("multimwa", b"\xc2\xa0\n\xe2\x80\xa8\n"),
    "a pair that looks like a header": ("text", b"\xef\xbb\xbfa\tb\nsource\ttarget\n"),
    "deep nesting in a sidecar": ("parse.jsonl", b'{"id": "g1", ' + _ROW + b', "x": ' + _DEEP + b"}\n"),
    "digits in a sidecar": ("parse.jsonl", b'{"id": ' + b"9" * 5000 + b", " + _ROW + b"}\n"),
    "a head with many digits in the message": (
        "parse.jsonl",
        b'{"source_heads": [' + b"9" * 4000 + b'], "target_heads": []}\n',
    ),
    "half a surrogate pair in a sidecar": (
        "parse.jsonl",
        b'{"id": "g1", "source_pos": ["\\ud800", "a", "b", "c"], "target_pos": ["a", "b", "c", "d"]}\n',
    ),
    "a list for an id in a sidecar": ("parse.jsonl", b'{"id": [1], ' + _ROW + b"}\n"),
    "a head in digits of another script": ("conllu", "1\ta\ta\tX\tX\t_\t\u0661\tx\t_\t_\n".encode()),
    "a head with an underscore": ("mst", b"a\tb\nN\tN\nx\ty\n1_0\t0\n"),
    "a long number of a token in the message": ("conllu", b"9" * 5000 + b"\ta\ta\tX\tX\t_\t0\tx\t_\t_\n"),
    "a long entity in the message": (
        "conllu",
        b"1\ta\ta\tX\tX\t_\t0\tx\t_\tNER=" + b"x" * 5000 + b"\n",
    ),
    "a sentence of no-break spaces, taken for a blank line": ("mst", b"\xc2\xa0\nN\nx\n0\n-\n"),
}
