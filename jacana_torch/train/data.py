"""The examples of a training run: the corpora that `data` names, with the layers that the aligner reads."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..annotate import Annotator, missing
from ..corpora import read
from ..errors import ConfigError, CorpusError, PairError
from ..model.model import Model
from ..types import PROVIDERS, Example

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dataset:
    """Examples to train on, and examples to score while training (may be empty)."""

    train: list[Example]
    dev: list[Example]


def load(
    data: Mapping[str, Any],
    links: str = "sure",
    sidecars: Sequence[str | None] = (),
    reader: Callable[[Path], Annotator] | None = None,
) -> Dataset:
    """Read the corpora of `data.train` and `data.dev`, without the pairs that `data.drop_ids` lists.

    `links="all"` makes possible links sure ones. `data.styles` names the convention of each corpus, those of
    `train` first, and `data.weights` says how much a pair of each corpus of `train` counts. `data.limit` is how
    many of the first pairs are trained on, or a list of how many of each corpus. A sidecar is a file that
    annotates a whole corpus: `reader` makes the annotator of such a file, and `sidecars` has one for each corpus
    (or None), those of `train` first. A single sidecar serves all corpora.
    """
    if links not in ("sure", "all"):
        raise ConfigError(f"links={links!r}: choose sure or all")
    limit = data["limit"]
    most: list[int | None] = limit if isinstance(limit, list) else [None] * len(data["train"])
    for one in (*most, None if limit is most else limit):
        if not (one is None or (type(one) is int and one > 0)) or len(most) != len(data["train"]):
            raise ConfigError(
                f"data.limit={limit}: give the number of pairs to train on, or null for all; or a list of these, "
                "one for each file of data.train"
            )
    root = Path(data["root"]).expanduser()
    locate = partial(_located, root)
    train = list(map(locate, data["train"]))
    if not train:
        raise ConfigError("there is nothing to train on: set data.train=[FILE...] or choose experiment=NAME")
    files = [*train, *map(locate, data["dev"])]
    annotators: list[Annotator | None] = [None] * len(files)
    if reader is not None:
        annotators = [None if path is None else reader(path) for path in _sidecars(sidecars, root, files)]
    styles: list[str | None] = [None] * len(files)
    if data.get("styles"):
        styles = _styles(data["styles"], len(train), len(files))
    weights = [1.0] * len(train)
    if data.get("weights"):
        weights = _weights(data["weights"], len(train))
    dropped, n_dropped = _ids(root, data["drop_ids"]) if data["drop_ids"] else set(), 0
    parts: tuple[list[Example], list[Example]] = ([], [])
    for number, (file, annotator) in enumerate(zip(files, annotators, strict=True)):
        first = len(parts[0])
        for example in _examples(file, links, annotator):
            if example.pair.id in dropped:
                n_dropped += 1
            elif number < len(train):
                parts[0].append(replace(example, style=styles[number], weight=weights[number]))
            else:
                parts[1].append(replace(example, style=styles[number]))
        if number < len(train) and (count := most[number]) is not None:
            del parts[0][first + count :]
    if dropped:  # if no pair has one of these ids, the lists probably belong to other corpora
        log.log(logging.INFO if n_dropped else logging.WARNING, "%d pairs left out by data.drop_ids", n_dropped)
    if not parts[0]:
        raise ConfigError(f"there is nothing to train on in {', '.join(map(str, train))}")
    return Dataset(parts[0] if isinstance(limit, list) else parts[0][:limit], parts[1])


def annotated(model: Model, data: Dataset, sidecar: bool = False) -> Dataset:
    """Add the layers that the model's aligner reads; an error names the layers that neither source provides."""
    both = [*data.train, *data.dev]
    try:
        pairs = model.prepare(list(map(attrgetter("pair"), both)))
    except PairError as error:
        place = (error.number or 1) - 1
        kind, number = ("training", place + 1) if place < len(data.train) else ("dev", place + 1 - len(data.train))
        name = "" if both[place].pair.id is None else f" ({both[place].pair.id})"
        raise PairError(f"{kind} pair {number}{name}: {error.reason}") from None
    lacking = sorted(missing(pairs, list(filter(PROVIDERS.__contains__, model.requires))))
    if lacking:
        able = set.intersection(*(set(PROVIDERS[layer]) for layer in lacking))
        raise ConfigError(
            f"the features read {', '.join(model.requires)}, and the corpora "
            f"{'and their sidecars ' if sidecar else ''}lack {', '.join(lacking)}: "
            f"annotate={' or annotate='.join(sorted(able))} provides that"
        )
    ready: list[Example] = []
    for example, pair in zip(both, pairs, strict=True):
        ready.append(replace(example, pair=pair))
    return Dataset(ready[: len(data.train)], ready[len(data.train) :])


def _located(root: Path, name: str) -> Path:
    path = root / Path(name).expanduser()
    if not path.exists() and Path(name).exists():
        raise ConfigError(
            f"{path}: there is no such file; relative paths start at data.root, so write $PWD/{name}"
        )
    return path


def _examples(file: Path, links: str, annotator: Annotator | None) -> list[Example]:
    """Read one corpus, whose pairs must all have gold links."""
    found = list(read(str(file)))
    for k, example in enumerate(found):
        gold = example.gold
        if gold is None:
            raise CorpusError(f"there are pairs without gold links ({str(example.pair.source)[:60]!r})", str(file))
        if links == "all":
            found[k] = replace(example, gold=replace(gold, sure=gold.sure | gold.possible, possible=frozenset()))
    if annotator is None:
        return found
    pairs = annotator([example.pair for example in found])
    return [replace(example, pair=pair) for example, pair in zip(found, pairs, strict=True)]


def _sidecars(names: Sequence[str | None], root: Path, files: Sequence[Path]) -> list[Path | None]:
    """The sidecar of each corpus file."""
    if not names:
        raise ConfigError(
            "annotate=given needs data.sidecar=[FILE...]: one for each of data.train, then of data.dev"
        )
    if len(names) not in (1, len(files)):
        raise ConfigError(
            f"data.sidecar names {len(names)} files for the {len(files)} of data.train and data.dev "
            f"({', '.join(path.name for path in files)}): give one for each, in this order"
        )
    paths = [None if name is None else _located(root, name) for name in names]
    return paths * len(files) if len(names) == 1 else paths


def _weights(given: Sequence[Any], train: int) -> list[float]:
    if len(given) != train or not all(type(weight) in (int, float) and 0 < weight < math.inf for weight in given):
        raise ConfigError(
            f"data.weights={given}: give a number above 0 for each of the {train} files of data.train"
        )
    return list(map(float, given))


def _styles(names: Sequence[str | None], train: int, files: int) -> list[str | None]:
    """The convention of each corpus; none for those of `dev` if only those of `train` are named."""
    if len(names) not in (train, files):
        raise ConfigError(
            f"data.styles names {len(names)} conventions for {train} files of data.train and {files - train} of "
            "data.dev: give one for each, or for those of data.train (null for none)"
        )
    for name in names:
        if not (name is None or (type(name) is str and name.isidentifier())):
            raise ConfigError(f"data.styles: {name!r} is not a name of letters, digits and _")
    return [*names, *[None] * (files - len(names))]


def _ids(root: Path, files: Sequence[str]) -> set[str]:
    """Read lists of ids, one per line."""
    ids: set[str] = set()
    for name in files:
        path = _located(root, name)
        try:
            ids.update(line.strip() for line in path.read_text(encoding="utf-8").split("\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"cannot be read: {error}", str(path)) from None
    return ids - {""}
