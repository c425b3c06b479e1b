"""`jacana-torch compare task=...`: compare systems by a task that their alignments are used for.

It takes settings as `compare` does, key=value, but composes no training: systems are shipped models, aligners that
need no training, and directories. A named aligner that has to be trained is trained on links first, and kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, JacanaError, ModelError
from . import note

if TYPE_CHECKING:
    from ..model.model import Model
    from ..tasks.data import Judged, Task
    from ..tasks.experiment import Figures
    from ..types import Alignment

SETTINGS: Mapping[str, str] = {
    "task": "rte2, rte3, sts, msrp, or several as [rte2,rte3], whose pairs are then taken as one set",
    "aligners": "a list of models, aligners or directories; {label: name} names one in the table",
    "files": "files of the data sets, if they are elsewhere than in data.root",
    "drop_ids": "files of ids to leave out, one for each data set; [] for none (leaks/drop_from_* of data.root)",
    "data.root": "the folder of corpora (JACANA_DATA)",
    "train": "what aligners that have to be trained are trained on: a group of conf/data (msr)",
    "folds": "of cross-validation (the task's own: 10, msrp 5)",
    "seed": "of the folds (1)",
    "format": "text, markdown, latex or json (text)",
    "output": "a file (stdout)",
    "kept": "the folder of models and alignments that are kept (runs/tasks)",
}
FORMATS = ("text", "markdown", "latex", "json")


def run(arguments: Sequence[str]) -> None:
    """Compare the systems and write the table."""
    from ..corpora import write_chunks
    from ..tasks.experiment import sheet
    from ..util.tables import FORMATS as TABLES

    given = _settings(arguments)
    form = str(given.get("format", "text"))
    if form not in FORMATS:
        raise ConfigError(f"format={form}: choose {', '.join(FORMATS)}")
    names = [str(name) for name in _list(given["task"])]
    task, sets, root = _data(names, given)
    folds, seed = (_whole(given, name, usual) for name, usual in (("folds", task.folds), ("seed", 1)))
    rows: list[Figures] = []
    for label, name in _systems(given):
        rows += _rows(label, name, task, sets, folds, seed, root, given)
    if form == "json":
        text = json.dumps({"task": names, "folds": folds, "seed": seed, "rows": [row.to_dict() for row in rows]})
    else:
        text = TABLES[form]([sheet("+".join(names), task, sets, rows, folds, seed)])
    if output := given.get("output"):
        write_chunks([f"{text}\n"], Path(str(output)).expanduser())
    else:
        sys.stdout.write(f"{text}\n")


def _settings(arguments: Sequence[str]) -> dict[str, Any]:
    import yaml

    given: dict[str, Any] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in SETTINGS:
            raise ConfigError(f"{argument}: compare task=... takes these settings:{_known()}")
        try:
            given[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"{argument}: the value is not YAML, as in aligners=[core,standard]") from None
    if given.get("task") is None:
        raise ConfigError(f"compare task=... takes these settings:{_known()}")
    if not given.get("aligners"):
        raise ConfigError("aligners=[NAME,...]: name the systems to compare")
    return given


def _known() -> str:
    return "".join(f"\n  {key}: {about}" for key, about in SETTINGS.items())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _whole(given: Mapping[str, Any], name: str, usual: int) -> int:
    value = given.get(name, usual)
    if type(value) is not int or value < 1:
        raise ConfigError(f"{name}={value}: a whole number above 0")
    return value


def _systems(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for item in _list(given["aligners"]):
        label, name = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else (item, item)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"aligners: {item!r} is no system: name a model, or {{label: model}}")
        found.append((str(label), name))
    return found


def _data(names: Sequence[str], given: Mapping[str, Any]) -> tuple[Task, list[Judged], Path]:
    """The task, and its data sets; a list of ids beside a set says what is dropped."""
    from ..tasks.data import leaks_beside, read, task_named

    tasks = [task_named(name) for name in names]
    if len({task.kind for task in tasks}) != 1:
        raise ConfigError(f"task={names}: tasks of one kind can be joined, not {', '.join(t.kind for t in tasks)}")
    root = Path(str(given.get("data.root") or os.environ.get("JACANA_DATA") or ".")).expanduser()
    files = [Path(str(name)).expanduser() for name in _list(given.get("files"))]
    files = files or [root / name for task in tasks for name in task.files]
    lists: list[Any] = _list(given["drop_ids"]) if "drop_ids" in given else [leaks_beside(path) for path in files]
    if lists and len(lists) != len(files):
        raise ConfigError(f"drop_ids: {len(lists)} lists for {len(files)} data sets")
    for path in files:
        if not path.is_file():
            raise ConfigError(
                f"{path}: there is no such file: name the data set in files=[...], or set JACANA_DATA"
            )
    task = replace(tasks[0], about="; ".join(task.about for task in tasks))
    return (
        task,
        [read(path, drop) for path, drop in zip(files, lists or [None] * len(files), strict=True)],
        root,
    )


def _rows(
    label: str,
    name: str,
    task: Task,
    sets: Sequence[Judged],
    folds: int,
    seed: int,
    root: Path,
    given: Mapping[str, Any],
) -> list[Figures]:
    from ..tasks.experiment import measure

    kept = Path(str(given.get("kept") or "runs/tasks")).expanduser()
    where = _trained(name, str(given.get("train") or "msr"), root, kept)
    note(label)
    model: list[Model] = []
    found = [_alignments(where, model, some, kept) for some in sets]
    return measure(label, task, sets, found, folds, seed)


def _trained(name: str, data: str, root: Path, kept: Path) -> str:
    """The name or directory of a model; an aligner that has to be trained is trained first."""
    from ..model import persist, untrained

    if name in persist.names() or name in untrained.names() or Path(name).expanduser().is_dir():
        return name
    if untrained.path_of(name) is None:
        raise ModelError(f"aligners: there is no system {name!r}: see `jacana-torch models`, or name a directory")
    folder = kept / f"{name}-{data}"
    if not folder.is_dir():
        from . import hydra

        note(f"training {name} on {data}")
        with contextlib.redirect_stdout(sys.stderr):
            hydra.train(
                [f"data={data}", f"data.root={root}", "annotate=spacy", f"aligner={name}", "logger=none",
                 f"output={folder}"]
            )  # fmt: skip
    return str(folder)


def _alignments(name: str, model: list[Model], some: Judged, kept: Path) -> list[Alignment]:
    """Align a set, or take the alignments that an earlier run kept; `model` holds it once it was loaded."""
    from .. import corpora
    from ..model import persist
    from ..types import Example
    from ..version import __version__

    place = persist.locate(name)
    stamps = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in sorted(place.glob("*"))]
    texts = [[list(pair.source.tokens), list(pair.target.tokens)] for pair in some.pairs]
    key = json.dumps([__version__, name, stamps, texts])
    path = kept / f"{place.name}-{some.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsonl"
    if path.is_file():
        examples = list(corpora.read(path, "jsonl"))
        return [example.gold.of(example.pair) for example in examples if example.gold is not None]
    if not model:
        model.append(persist.load(name))
    found: list[Alignment] = []
    ready = model[0].prepare(some.pairs)  # features read the tags, too
    for alignment in model[0].align_stream(ready):
        if not isinstance(alignment, JacanaError):
            found.append(alignment)
    kept.mkdir(parents=True, exist_ok=True)
    corpora.write((Example(a.pair or some.pairs[k], a) for k, a in enumerate(found)), path, "jsonl")
    return found
