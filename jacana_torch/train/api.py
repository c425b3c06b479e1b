"""Train from Python: `jacana_torch.train(pairs, gold)` does what `jacana-torch train` does, without Hydra."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..corpora import write
from ..errors import ConfigError, PairError
from ..model import persist
from ..model.model import Model, Pair, as_pair
from ..types import Alignment, Example, Link
from ..util import conf

Gold = Alignment | str | Iterable[Link]
_CHOICES = ("aligner", "annotate", "symmetrize", "features")


def train(
    pairs: Iterable[Pair],
    gold: Iterable[Gold],
    *,
    dev: tuple[Iterable[Pair], Iterable[Gold]] | None = None,
    output: str | Path | None = None,
    experiment: str | None = None,
    aligner: str | None = None,
    features: Sequence[str] | None = None,
    annotate: str | None = None,
    symmetrize: str | None = None,
    start: str | None = None,
    settings: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Model:
    """Train a model on pairs and their gold alignments, and return it.

    Without more, this is `jacana-torch train data.train=FILE`: the same configuration, the same weights. `gold`
    has an alignment for each pair: an `Alignment`, a string as `"0-0 1-2"`, or links. It counts the tokens of
    lists, and of strings those of the tokeniser. `dev` are pairs and gold to score on. The model is saved to
    `output`, if given.

    `experiment`, `aligner`, `features`, `annotate` and `symmetrize` choose files of conf/, as `aligner="hmm"` or
    `features=["string", "position"]`. `start` names a model to fine-tune. `settings` has values by dotted name, as
    `{"trainer.l2": 4.0}`. For checkpoints, cross-validation, TensorBoard and sweeps use the command line.
    """
    from .compose import composed

    choices = {
        name: value
        for name, value in zip(_CHOICES, (aligner, annotate, symmetrize, features), strict=True)
        if value is not None
    }
    named = {"experiment": experiment, **choices, "start": start, **(settings or {})}
    config = composed(experiment, choices, settings)
    if config["cv"]:
        raise ConfigError("cv: cross-validation is for the command line")
    overrides = [f"{name}={_written(value)}" for name, value in named.items() if value is not None]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _write(pairs, gold, folder / "train.jsonl", "training")
        config["data"] |= {"root": temporary, "train": [str(folder / "train.jsonl")], "dev": []}
        if dev is not None:
            _write(*dev, folder / "dev.jsonl", "dev")
            config["data"]["dev"] = [str(folder / "dev.jsonl")]
        directory = folder / "model" if output is None else Path(output).expanduser()
        config |= {"output": str(directory), "start": start, "overwrite": overwrite}
        _run(config, folder / "run", overrides)
        return persist.load(directory, trust_files=True)


def _run(config: dict[str, Any], folder: Path, overrides: list[str]) -> None:
    """Train as the command line does; PyTorch's threads are as before afterwards."""
    import torch

    from .run import train

    folder.mkdir()
    threads = torch.get_num_threads()
    try:
        train(config, folder, sorted({*conf.paths("features"), *config["features"]}), overrides)
    finally:
        torch.set_num_threads(threads)


def _written(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, (list, tuple)) else str(value)


def _write(pairs: Iterable[Pair], gold: Iterable[Gold], path: Path, what: str) -> None:
    """Write examples as a corpus, whose tokens are final."""
    write(_examples(pairs, gold, what), path, "jsonl")


def _examples(pairs: Iterable[Pair], gold: Iterable[Gold], what: str) -> Iterable[Example]:
    given = iter(gold)
    end = object()
    number = 0
    for number, item in enumerate(pairs, start=1):
        links = next(given, end)
        if links is end:
            raise ConfigError(f"there are more {what} pairs than gold alignments ({number - 1})")
        try:
            pair = as_pair(item).without_text()
            yield Example(pair, _alignment(links, pair))
        except PairError as error:
            raise type(error)(error.reason, number) from None
        except (TypeError, ValueError) as error:
            raise PairError(f"the gold alignment: {error}", number) from None
    if next(given, end) is not end:
        raise ConfigError(f"there are more gold alignments than {what} pairs ({number})")


def _alignment(gold: Any, pair: Any) -> Alignment:
    sizes = len(pair.source), len(pair.target)
    if isinstance(gold, Alignment):
        if (gold.n_source, gold.n_target) != sizes:
            raise ValueError(f"it is of {gold.n_source} x {gold.n_target} tokens, and the pair has {sizes}")
        return gold
    if isinstance(gold, str):
        from ..corpora.pharaoh import parse_links

        sure, possible = parse_links(gold)
        return Alignment(*sizes, frozenset(sure), frozenset(possible))
    return Alignment(*sizes, frozenset((int(i), int(j)) for i, j in gold))
