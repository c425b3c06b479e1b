"""The corpora of a training run: what conf/data says in, examples with gold links out.

A corpus may have a sidecar, a file of annotation, matched to the whole corpus before pairs are dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import corpora
from ..annotate import Annotator
from ..errors import ConfigError, CorpusError
from ..types import Example

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dataset:
    """What to train on, and what to score while training (may be empty)."""

    train: list[Example]
    dev: list[Example]


def load(
    data: Mapping[str, Any],
    links: str = "sure",
    sidecars: Sequence[str | None] = (),
    reader: Callable[[Path], Annotator] | None = None,
) -> Dataset:
    """All that `data` names. `links="all"` makes possible links sure ones.

    With a `reader`, which makes the annotator of a file, there is one of `sidecars` for each corpus, those of
    `train` first; None where one has none; a single one serves them all.
    """
    if links not in ("sure", "all"):
        raise ConfigError(f"links={links!r} is neither sure nor all")
    if data["limit"] is not None and data["limit"] < 1:
        raise ConfigError(f"data.limit={data['limit']}: how many pairs to train on, or null for all")
    root = Path(data["root"]).expanduser()
    train, dev = ([_at(root, name) for name in data[part]] for part in ("train", "dev"))
    if not train:
        raise ConfigError("there is nothing to train on: set data.train=[FILE...] or choose experiment=NAME")
    annotators: list[Annotator | None] = [None] * (len(train) + len(dev))
    if reader is not None:
        annotators = [None if path is None else reader(path) for path in _sidecars(sidecars, root, [*train, *dev])]
    dropped = _ids([_at(root, name) for name in data["drop_ids"]])
    parts, left_out = [], 0
    for files, annotator_of in ((train, annotators[: len(train)]), (dev, annotators[len(train) :])):
        found = [e for file, a in zip(files, annotator_of, strict=True) for e in _examples(file, links, a)]
        parts.append([e for e in found if e.pair.id not in dropped])
        left_out += len(found) - len(parts[-1])
    if dropped:  # none at all means that the lists and the corpora have nothing to do with each other
        log.log(logging.INFO if left_out else logging.WARNING, "%d pairs left out by data.drop_ids", left_out)
    dataset = Dataset(parts[0][: data["limit"]], parts[1])
    if not dataset.train:
        raise ConfigError(f"there is nothing to train on in {', '.join(map(str, train))}")
    return dataset


def _at(root: Path, name: str) -> Path:
    path = root / Path(name).expanduser()
    if not path.exists() and Path(name).exists():
        raise ConfigError(
            f"{path}: there is no such file; relative paths start at data.root, so write $PWD/{name}"
        )
    return path


def _examples(file: Path, links: str, annotator: Annotator | None) -> list[Example]:
    """The examples of one corpus, which must all have gold links."""
    found = list(corpora.read(str(file)))
    for example in found:
        if example.gold is None:
            raise CorpusError(f"there are pairs without gold links ({str(example.pair.source)[:60]!r})", str(file))
    if annotator is not None:
        pairs = annotator([example.pair for example in found])
        found = [replace(example, pair=pair) for example, pair in zip(found, pairs, strict=True)]
    return list(_with_possible(found)) if links == "all" else found


def _with_possible(examples: Sequence[Example]) -> Iterator[Example]:
    for example in examples:
        gold = example.gold
        if gold is not None:
            gold = replace(gold, sure=gold.sure | gold.possible, possible=frozenset())
        yield replace(example, gold=gold)


def _sidecars(names: Sequence[str | None], root: Path, corpora_of: Sequence[Path]) -> list[Path | None]:
    if not names:
        raise ConfigError(
            "annotate=given needs data.sidecar=[FILE...]: one for each of data.train, then of data.dev"
        )
    if len(names) not in (1, len(corpora_of)):
        raise ConfigError(
            f"data.sidecar names {len(names)} files for the {len(corpora_of)} of data.train and data.dev "
            f"({', '.join(path.name for path in corpora_of)}): one for each, in this order"
        )
    paths = [None if name is None else _at(root, name) for name in names]
    return paths * len(corpora_of) if len(names) == 1 else paths


def _ids(files: Sequence[Path]) -> frozenset[str]:
    """The ids that some files name, one a line."""
    ids: set[str] = set()
    for path in files:
        try:
            ids.update(line.strip() for line in path.read_text(encoding="utf-8").split("\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"cannot be read: {error}", str(path)) from None
    return frozenset(ids - {""})
