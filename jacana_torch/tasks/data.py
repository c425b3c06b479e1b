"""Readers of the data sets of similarity, paraphrase and entailment, from files that you have.

| file | what it is |
|---|---|
| `.jsonl` | `{"id", "source", "target"}` with `label` (0 or 1) or `score`; sides are strings or lists of tokens |
| `.xml` | the RTE challenges: `<pair id= entailment= or value=><t>...<h>...` |
| `msr_paraphrase_*.txt`, `.tsv` with the header `Quality #1 ID ...` | the MSR paraphrase corpus |
| `STS.input.X.txt` | SemEval's STS; its gold is `STS.gs.X.txt` beside it |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..annotate.tokens import tokenize
from ..errors import ConfigError, CorpusError
from ..types import Sentence, SentencePair
from ..util.json_values import encodable, identifier, parse_object, shown
from .lines import lines_of

_TRUE = {"yes": 1.0, "true": 1.0, "entailment": 1.0, "1": 1.0}
_FALSE = {"no": 0.0, "false": 0.0, "unknown": 0.0, "contradiction": 0.0, "0": 0.0}


@dataclass(frozen=True)
class Judged:
    """Pairs of one data set and what people said of each: labels 0 and 1, or a number."""

    name: str
    pairs: Sequence[SentencePair]
    wanted: Sequence[float]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True)
class Task:
    """A task: what is asked, the files of its sets below a folder of corpora, and ids that are left out."""

    kind: str  # entailment, paraphrase or similarity
    files: Sequence[str]
    folds: int
    about: str

    @property
    def labelled(self) -> bool:
        return self.kind != "similarity"


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        "rte2": Task("entailment", ["extrinsic/rte2.dev.jsonl"], 10, "RTE2, development set"),
        "rte3": Task("entailment", ["extrinsic/rte3.dev.jsonl"], 10, "RTE3, development set"),
        "sts": Task(
            "similarity",
            ["extrinsic/sts2012.MSRpar.jsonl", "extrinsic/sts2012.OnWN.jsonl"],
            10,
            "SemEval 2012 similarity: MSRpar and OnWN",
        ),
        "msrp": Task("paraphrase", ["extrinsic/msrp.train.jsonl"], 5, "MSR paraphrase corpus, training set"),
    }
)


def read(path: str | Path, drop: str | Path | None = None) -> Judged:
    """Read one data set, without the ids that the file `drop` lists."""
    path = Path(path).expanduser()
    try:
        rows = list(_rows(path))
        dropped = set(Path(drop).expanduser().read_text(encoding="utf-8").split()) if drop else set()
    except UnicodeDecodeError as error:
        raise CorpusError(f"is not UTF-8 ({error})", str(path)) from None
    except OSError as error:
        raise CorpusError(f"cannot be read ({error.strerror})", str(error.filename or path)) from None
    kept = [(pair, wanted) for pair, wanted in rows if pair.id not in dropped]
    if not kept:
        raise CorpusError("has no pairs" if not rows else "has no pairs that are not dropped", str(path))
    pairs, values = zip(*kept, strict=True)
    return Judged(path.stem, pairs, values, len(rows) - len(kept))


def leaks_beside(path: Path) -> Path | None:
    """Return the list of ids to drop that a folder of corpora has for a file: leaks/drop_from_rte2.dev.txt."""
    found = path.parents[1] / "leaks" / f"drop_from_{path.stem}.txt" if len(path.parents) > 1 else path
    return found if found != path and found.is_file() else None


def _rows(path: Path) -> Iterator[tuple[SentencePair, float]]:
    if path.suffix in (".jsonl", ".ndjson"):
        return _json(path)
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("<"):
        return _xml(text, path)
    if path.name.startswith("STS.input"):
        return _sts(text, path)
    if text.startswith(("Quality", "\ufeffQuality")):
        return _msrp(text, path)
    raise CorpusError(
        "is no data set that can be read: .jsonl, RTE's XML, msr_paraphrase_train.txt or STS.input.X.txt",
        str(path),
    )


def _json(path: Path) -> Iterator[tuple[SentencePair, float]]:
    for number, line in lines_of(path):
        if not line.strip(" \t\r"):
            continue
        try:
            item = parse_object(line)
            pair = SentencePair(
                _side(item["source"]), _side(item["target"]), identifier(item, "id") or str(number)
            )
            wanted = _value(item["label"] if "label" in item else item["score"])
            if "label" in item and wanted not in (0, 1):
                raise ValueError(f"a label is 0 or 1, and not {shown(item['label'])}")
            yield pair, wanted
        except KeyError as error:
            raise CorpusError(f"the record has no {error}", str(path), number) from None
        except (TypeError, ValueError) as error:
            raise CorpusError(
                f"is not a record with source, target and label or score: {error}", str(path), number
            ) from None


def _value(given: Any) -> float:
    try:
        value = float(given)
    except OverflowError:  # a whole number beyond all floats
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{shown(given)} is no finite number")
    return value


def _side(given: Any) -> Sentence:
    if isinstance(given, str):
        encodable(given)
        return Sentence(tokenize(given), text=given)
    if isinstance(given, list) and all(isinstance(token, str) and token for token in given):
        encodable("".join(given))
        return Sentence(given)
    raise ValueError("a side is a string or a list of tokens")


def _xml(text: str, path: Path) -> Iterator[tuple[SentencePair, float]]:
    from xml.etree import ElementTree

    if "<!ENTITY" in text:
        raise CorpusError("defines entities, which no RTE file does", str(path))
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise CorpusError(f"is not XML: {error}", str(path)) from None
    for number, item in enumerate(root.iter("pair"), start=1):
        name = item.get("id") or str(number)
        value = str(item.get("entailment") or item.get("value") or "").lower()
        sides = [item.findtext(tag) for tag in ("t", "h")]
        label = _TRUE.get(value, _FALSE.get(value))
        if label is None or None in sides:
            raise CorpusError(f"pair {name} needs <t>, <h> and entailment= or value=, YES or NO", str(path))
        one, other = (_side(" ".join(str(side).split())) for side in sides)
        yield SentencePair(one, other, name), label


def _lines(text: str) -> list[str]:
    """Cut a text at its line feeds: nothing else ends a line."""
    return text.removesuffix("\n").split("\n")


def _msrp(text: str, path: Path) -> Iterator[tuple[SentencePair, float]]:
    for number, line in enumerate(_lines(text)[1:], start=2):
        found = line.split("\t")
        if len(found) != 5 or found[0] not in ("0", "1"):
            raise CorpusError("expected Quality, two ids and two sentences between tabs", str(path), number)
        yield SentencePair(_side(found[3]), _side(found[4]), f"{found[1]}-{found[2]}"), float(found[0])


def _sts(text: str, path: Path) -> Iterator[tuple[SentencePair, float]]:
    gold = path.with_name(path.name.replace("STS.input", "STS.gs", 1))
    values = _lines(gold.read_text(encoding="utf-8"))
    lines = _lines(text)
    if len(values) != len(lines):
        raise CorpusError(f"has {len(values)} scores for {len(lines)} pairs", str(gold))
    for number, (line, value) in enumerate(zip(lines, values, strict=True), start=1):
        found = line.split("\t")
        if len(found) < 2:
            raise CorpusError("expected two sentences between tabs", str(path), number)
        if not value.strip():
            continue  # later years judge some pairs only
        try:
            wanted = _value(value)
        except ValueError:
            raise CorpusError(f"{value[:40]!r} is no score", str(gold), number) from None
        yield SentencePair(_side(found[0]), _side(found[1]), str(number)), wanted


def task_named(name: str) -> Task:
    if name not in TASKS:
        raise ConfigError(f"there is no task {name!r}: choose {', '.join(TASKS)}")
    return TASKS[name]
