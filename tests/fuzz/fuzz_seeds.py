"""Valid documents to mutate: our own sentences in every format that there is, and as sidecars.

Formats are those of `corpora.formats()`. A format that is not named here gets the documents that it writes.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from jacana_torch import corpora
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


def _example(source, target, sure=None, possible=(), id=None, extra=None, confidence=None, **layers) -> Example:
    sides = []
    for words in (source, target):
        text = words if sure is None and isinstance(words, str) else None
        tokens = tuple(words.split()) if isinstance(words, str) else tuple(words)
        sides.append(Sentence(tokens, {name: values[: len(tokens)] for name, values in layers.items()}, text))
    pair = SentencePair(*sides, id)
    if sure is None:
        return Example(pair, None, extra)
    sizes = len(pair.source), len(pair.target)
    return Example(pair, Alignment(*sizes, frozenset(sure), frozenset(possible), confidence or {}), extra)


ALIGNED = (
    _example(
        "Two geese crossed the yard .", "The yard was crossed by geese .",
        [(1, 5), (2, 3), (4, 1), (5, 6)], [(3, 0)], "g1",
    ),
    _example(
        "Rain fell", "It rained",
        [(1, 1)], [(0, 1)], "g2", {"label": "yes", "meta": {"n": [1, None]}}, {(1, 1): 0.75},
    ),
    _example("", "Nothing", [], (), "g3"),
    _example(
        "caf\u00e9 \u201cau lait\u201d \U0001f95b", "milk -LRB- 2\u00bd cl -RRB-",
        [(0, 0), (3, 0)], (), "g4", pos=("NN",) * 6,
    ),
)  # fmt: skip
TEXT = (
    _example("It's  raining again.", "Rain, again!"),
    _example("Open the door", "the door is open"),
    _example("", ""),
    _example("na\u00efve \u4f60\u597d", "NULL ({ / / })"),
)
_JOURNAL = (
    {"jacana_annotation": 1, "file": "geese.txt", "pairs": 2, "digest": "00"},
    {"do": "pair", "pair": 0, "id": "g1", "source": ["Two", "geese", "ate"], "target": ["geese", "caf\u00e9"]},
    {"do": "begin", "by": "ann", "pair": 0, "sure": [[1, 0]], "possible": [[2, 1]]},
    {"do": "status", "by": "ann", "pair": 0, "status": "accepted", "note": "x"},
    {"do": "begin", "by": "ben", "pair": 0, "sure": [], "possible": []},
    {"do": "edit", "by": "ben", "pair": 0, "cells": [[0, 0, "sure"], [2, 1, "possible"]]},
    {"do": "undo", "by": "ben"},
    {"do": "redo", "by": "ben"},
    {
        "do": "edit",
        "by": "ben",
        "pair": 0,
        "cells": [[0, 0, "none"], [1, 0, "sure"]],
        "at": "2026-01-01T00:00:00Z",
    },
    {"do": "status", "by": "ben", "pair": 0, "status": "accepted"},
    {"do": "model", "name": "m", "pairs": 1},
)
# What formats can hold besides what they write, by name.
VARIANTS = {
    "text": [
        "Sentence 1\tSentence 2\none door\tthe door\n",
        "one door ||| the door\r\n\r\na ||| b",
        "\ufeffa b\tc\n",
    ],
    "pharaoh": ["source\ttarget\tlinks\na b\tc\t0-0\n", "a b ||| c ||| 0-0  1-0\n\n"],
    "talp": ["premise\thypothesis\tlinks\na b\tc\t0-0 1p0\n", "a ||| c ||| 0p0\n"],
    "naacl": ["0001 1 1 S 0.5\n1 2 2 P .25e-1\n\n3 0 1\n2 2 2 1e-3\n"],
    "jsonl": [
        '{"id": 7, "source": "Rain fell", "target": ["It", "rained"], "sureAlign": "1-1", "possibleAlign": ""}\n'
        '\n{"source": "It\'s  late.", "target": "Late!", "score": 4.5, "source_url": "x", "tags": ["a", {"b": 1}]}'
    ],
    "jacana": [
        '[{"name": "n", "source": "Rain fell", "target": "It rained", "sureAlign": "1-1", "possibleAlign": ""},\n'
        ' {"id": 8, "source": ["Rain"], "target": "It\'s rain", "x": [1, [2, {"y": "z"}]]}]\n'
    ],
    "msr": [
        "\ufeff# Sentence pair (7) source length 2 target length 2 alignment score : 0.01\r\nRain fell \r\n"
        "NULL ({ 1 }) It ({ }) \ufeffrained ({ 2 / / }\r\n\r\n"
        "# sentence pair\nx\nNULL ({ / / }) y ({ p1 / 2 / }) \n"
    ],
    "journal": ["".join(json.dumps(event) + "\n" for event in _JOURNAL)],
    "multimwa": ["id\tsource\t-\ttarget\t-\t-\t-\tsure\tpossible\n4\ta b\tN/A\tc\tN/A\t1\t1\t0-0\t1-0\tx\n\n"],
}
TAGGED = (
    b"<s snum=0001> Two geese </s>\n<s snum=0002> Rain fell </s>\n",
    b'<s snum=0001> geese </s>\n<s snum="0002"> it rained </s>\n',
)

_LAYERS = {"pos": ["NNS", "VBD", "NN", "."], "heads": [2, 0, 2, 2], "deprels": ["nsubj", "root", "dobj", "punct"]}
_ROW = {f"{side}_{name}": values for side in ("source", "target") for name, values in _LAYERS.items()}
_ROW |= {"source_ner": ["O", "PER-B", "PER-I", "O"], "target_lemma_auto": ["goose", "Eat", "grass", "."]}
_MST = "Geese\tate\tgrass\t.\nNNS\tVBD\tNN\t.\nnsubj\troot\tdobj\tpunct\n2\t0\t2\t2\n-\t-\t-\t-\n\n"
_CONLLU = (
    "# sent_id = 1\n"
    "1\tGeese\tgoose\tNOUN\tNNS\t_\t2\tnsubj\t_\tNER=B-ANIMAL\n"
    "2-3\tate grass\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tate\teat\tVERB\tVBD\t_\t0\troot\t_\t_\n"
    "2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tgrass\t_\tNOUN\tNN\t_\t2\tobj\t_\tA=b|NER=S-X\n"
    "4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_\n\n"
)
# Documents of each reader of `annotate.sidecars.READERS`, which all annotate the pairs below.
SIDECARS = {
    "parse.jsonl": [
        "".join(json.dumps({"id": name, **_ROW}) + "\n" for name in ("g1", "g2")),
        json.dumps(_ROW) + "\n",
    ],
    "mst": [_MST * 4, "\ufeff" + _MST.replace("\n", "\r\n") * 2 + "\n\n"],
    "conllu": [_CONLLU * 4, "\n\n" + _CONLLU.replace("\tgoose", "\t_") * 2],
}
_GEESE = Sentence(("Geese", "ate", "grass", "."))
ANNOTATED = (
    SentencePair(_GEESE, _GEESE, "g1"),
    SentencePair(_GEESE, Sentence(("geese", "ate", "grass", ".")), "g2"),
)


@contextmanager
def quiet() -> Iterator[None]:
    """Log no warnings: of headers, and of what formats cannot hold."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def written(examples, format: str, **more) -> bytes:
    stream = io.BytesIO()
    with quiet():
        corpora.write(examples, stream, format, on_bad=corpora.SkipBad(), **more)
    return stream.getvalue()


def documents(format: str) -> list[bytes]:
    """Return valid documents of a format."""
    found = []
    if corpora.can_write(corpora.format_named(format)):
        found += [written(examples, format) for examples in (ALIGNED, TEXT, (*ALIGNED, *TEXT))]
    found += [variant.encode() for variant in VARIANTS.get(format, ())]
    return [document for document in dict.fromkeys(found) if document.strip()]


def links_alone(format: str) -> list[bytes]:
    """Return documents of a format with the links of ALIGNED, without text."""
    found = [written(ALIGNED, format, links_only=True)]
    if corpora.format_named(format).read is None:
        found += [variant.encode() for variant in VARIANTS.get(format, ())]
    return found


def sidecars(name: str) -> list[bytes]:
    return [document.encode() for document in SIDECARS[name]]
