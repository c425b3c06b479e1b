"""Pairs that a better model has aligned: a smaller one learns from text that nobody has annotated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from ... import corpora
from ...errors import ConfigError, CorpusError
from ...types import Example
from ...util.build import Items, NotNegative, OnDisk, Positive


@dataclass(frozen=True)
class Labelled:
    """Take pairs at random from `files`, which `jacana-torch align --to jsonl` has written, and trust their links.

    At most `share` times as many as there are training pairs are taken; null: all. `drop_ids` are files with one
    id per line: pairs that are never taken. `teacher` is the model that aligned them: a cross-validation that
    scores what the teacher was trained on says so. `style` is the convention that it learnt, one of `data.styles`;
    null: the pairs are dealt to all of them.
    """

    files: Annotated[Sequence[Annotated[str, OnDisk()]], Items(1)]
    teacher: str | None = None
    drop_ids: Sequence[Annotated[str, OnDisk()]] = ()
    share: NotNegative | None = None
    style: str | None = None
    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        dropped, found = self._dropped(), list[Example]()
        for file in self.files:
            if not Path(file).exists():
                raise ConfigError(
                    f"{file}: there is no such file; conf/data/augment/silver.yaml says how to make it, and "
                    "data.augment.makers.silver=null does without"
                )
            for example in corpora.read(file):
                if example.gold is None:
                    raise CorpusError(
                        f"pair {example.pair.id} has no links: align it with jacana-torch align --to jsonl", file
                    )
                if example.pair.id not in dropped and len(example.pair.source) and len(example.pair.target):
                    found.append(example)
        if self.share is not None:
            found = rng.sample(found, min(len(found), round(self.share * len(examples))))
        for k, example in enumerate(found):
            yield replace(example, group=f"labelled {example.pair.id or k}", style=self.style)

    def _dropped(self) -> set[str]:
        ids = set[str]()
        for name in self.drop_ids:
            try:
                ids.update(Path(name).read_text(encoding="utf-8").split())
            except OSError as error:
                raise ConfigError(f"data.augment: {name} cannot be read: {error.strerror}") from None
        return ids
