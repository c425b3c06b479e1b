"""`align --output FOLDER/`: many pairs to many files, in this or in many processes, that can stop and go on.

The inputs are cut into blocks. A worker takes a block, reads, aligns and writes it: `part-000007.parquet` appears
whole or not at all, and a part that is there is done. `manifest.json` says what the parts are of; a run with other
inputs, another model or other options is an error. So whatever is killed loses at most the blocks under way, and
doubles nothing: the same command goes on. Shards divide the blocks among machines that share the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpora import Source, format_named, guess
from ..errors import ConfigError, CorpusError
from ..resources.store import put_in_place, sweep, unfinished, write_whole
from ..util import parallel
from ..util.json_values import parse_object, shown
from ..version import __version__
from . import note, presentable
from .align import Settings, align_source
from .blocks import Block, cut
from .loading import Aligning, chosen_model

if TYPE_CHECKING:
    from ..corpora import SkipBad

MANIFEST = "manifest.json"
FORMAT = 1  # of the manifest
BLOCK_SIZE = 50_000  # pairs: half a minute to a minute of work, and some ten megabytes
REPORTED_AFTER = 10.0  # seconds between reports
_COPIED = 1 << 20  # bytes at a time


@dataclass(frozen=True)
class Done:
    """What became of a block."""

    block: Block
    pairs: int
    bad: SkipBad | None = None


@dataclass
class AlignsBlock:
    """What a worker does; it pickles without the model, as `Aligning` does."""

    settings: Settings
    work: Aligning
    folder: Path

    def part(self, block: Block) -> Path:
        """The file of a block."""
        return self.folder / f"part-{block.number:06}.{self.settings.to}"

    def __call__(self, block: Block) -> Done:
        settings = replace(self.settings, from_=block.format)
        try:
            with unfinished(self.folder) as fresh:
                with open(fresh, "wb") as stream:
                    count, bad = align_source(settings, self.work, block.open(settings.header), stream, 1)
                if format_named(block.format).cut == "rows" and count != block.size:
                    raise CorpusError(f"has {count} rows from {block.begin} on, and had {block.size}", block.file)
                put_in_place(fresh, self.part(block))
        except OSError as error:  # errors of reading are of the corpus
            raise CorpusError(f"cannot be written: {error.strerror or error}", str(self.part(block))) from None
        return Done(block, count, bad)


def run_bulk(
    arguments: argparse.Namespace, settings: Settings, names: Sequence[str], limits: Mapping[str, int]
) -> int:
    """Align the inputs into a folder; return the exit code."""
    if "-" in names:
        raise ConfigError("a folder of files is made of files: name them, as standard input cannot be read twice")
    shard = _shard(arguments.shard)
    ray = arguments.engine == "ray"
    if arguments.address is not None and not ray:
        raise ConfigError("--address is of a Ray cluster: add --engine ray")
    if ray and arguments.device != "cpu":
        raise ConfigError("--engine ray aligns on CPUs: leave --device out")
    model = chosen_model(arguments.model)
    if ray and os.path.isdir(model):
        model = os.path.abspath(model)  # other machines have other working directories
    work = Aligning(
        model, arguments.device, arguments.symmetrize, arguments.confidence,
        tokenise=not arguments.pretokenized, limits=limits, style=arguments.style,
    )  # fmt: skip
    _ = work.model  # report mistakes before anything is written, and share the model with forked workers
    folder = Path(os.path.abspath(arguments.output))
    job = AlignsBlock(settings, work, folder)
    size = arguments.block_size or BLOCK_SIZE
    options = {
        **asdict(settings), "symmetrize": arguments.symmetrize, "pretokenized": arguments.pretokenized,
        "limits": dict(limits), "block_size": size, "style": arguments.style,
    }  # fmt: skip
    del options["batch_size"]  # which changes no alignment
    begun = {"format": FORMAT, "version": __version__, "model": digest_of_model(model), "options": options}
    if arguments.resume is False:
        _begin_again(folder, shard)
    blocks = planned(folder, names, settings.from_, size, begun)
    mine = [block for block in blocks if block.number % shard[1] == shard[0]]
    todo = [block for block in mine if not job.part(block).is_file()]
    note(f"{folder}: {len(todo):,} of {len(mine):,} blocks to do, of {len(names)} file{'s' * (len(names) > 1)}")
    if ray:
        from .ray_engine import run_on_ray

        done = run_on_ray(job, todo, arguments.workers, arguments.address)
    else:
        done = run_here(job, todo, arguments.workers)
    _watch(done, len(todo))
    return 0


def run_here(job: AlignsBlock, blocks: Sequence[Block], workers: int | None) -> Iterator[Done]:
    """Do blocks in the processes of this machine, and yield what became of each."""
    workers = min(workers or parallel.available(), max(1, len(blocks)))
    try:
        if workers == 1 or job.work.device != "cpu":
            yield from map(job, blocks)
        else:
            for _, done in parallel.ordered(job, iter(blocks), workers, alone=0):
                yield done
    finally:
        sweep(job.folder)  # what other runs left, and workers, which are ended at once after an error or a signal


def _watch(done: Iterable[Done], total: int) -> None:
    """Report progress and what was bad."""
    from ..corpora import SkipBad

    bad = SkipBad()
    count = pairs = 0
    begun = reported = time.monotonic()
    for one in done:
        count, pairs = count + 1, pairs + one.pairs
        if one.bad is not None:
            bad.count += one.bad.count
            bad.first = (bad.first + one.bad.first)[: bad.keep]
        now = time.monotonic()
        if now - reported > REPORTED_AFTER or count == total:
            reported = now
            note(f"{count:,} of {total:,} blocks, {pairs:,} pairs, {pairs / (now - begun):,.0f} pairs/s")
    if bad.count:
        sys.stderr.write(f"jacana-torch: {presentable(bad.report())}\nEach got an empty alignment.\n")


def _shard(text: str | None) -> tuple[int, int]:
    """Return which shard of how many, counted from 0."""
    if text is None:
        return 0, 1
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(f"--shard {text}: give a shard and how many there are, as in 1/4, 2/4, 3/4 and 4/4")
    return int(found[1]) - 1, int(found[2])


# The manifest


def planned(
    folder: Path, names: Sequence[str], from_: str | None, size: int, begun: Mapping[str, Any]
) -> list[Block]:
    """Return the blocks of the inputs: those of the folder's manifest, which is written if there is none.

    All shards plan alike, so it does not matter which of them writes it.
    """
    path = folder / MANIFEST
    if path.exists():
        held = _read(path)
        _check_same(path, held, begun, names)
        return list(held["blocks"])
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file; name a new folder")
    if folder.is_dir() and (others := sorted(os.listdir(folder))):
        if any(not name.startswith((".jacana-", MANIFEST)) for name in others):
            raise ConfigError(f"{folder}: holds other files ({', '.join(others[:3])}): name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    inputs, blocks = [], list[Block]()
    for name in names:
        note(f"reading {name}")
        absolute = os.path.abspath(name)
        format = from_ if from_ is not None else _format(name, begun["options"]["columns"])
        facts = os.stat(name)
        inputs.append(
            {"path": absolute, "format": format, "bytes": facts.st_size, "modified": facts.st_mtime_ns,
             "sha256": digest(name)}
        )  # fmt: skip
        blocks += cut(absolute, format, size, len(blocks))
    held = {**begun, "inputs": inputs, "blocks": [asdict(block) for block in blocks]}
    write_whole(path, (json.dumps(held, indent=1) + "\n").encode())
    return blocks


def _format(name: str, columns: tuple[str, str] | None) -> str:
    opened = Source(name)
    opened.close()
    found = guess(name, opened.head, columns=columns)
    if columns is not None and format_named(found).read_columns is None:
        raise ConfigError(f"{name}: files of {found} have no columns to name")
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        held = parse_object(path.read_text(encoding="utf-8"))
        if held["format"] == FORMAT:
            held["blocks"] = [Block(**block) for block in held["blocks"]]
            places = [(one["path"], one["bytes"], one["modified"], one["sha256"]) for one in held["inputs"]]
            known = {name for name, *_ in places}
            if any(block.file not in known for block in held["blocks"]) or not dict(held["options"]):
                raise ValueError("its parts do not fit together")
            return {name: held[name] for name in ("version", "model", "options", "inputs", "blocks")}
        wrong = f"format {shown(held['format'])}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        wrong = f"{type(error).__name__}: {error}"
    raise ConfigError(f"{path}: is no manifest of this version ({wrong}): name a new folder")


def _check_same(path: Path, held: Mapping[str, Any], begun: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise an error if a run is not the one that began in the folder."""
    advice = "name a new folder, or begin again with --no-resume"
    begun = json.loads(json.dumps(begun))
    for kind in ("version", "model"):
        if held[kind] != begun[kind]:
            raise ConfigError(f"{path}: its {kind} is {held[kind]}, and now {begun[kind]}: {advice}")
    for key in sorted({*held["options"], *begun["options"]}):
        before, now = held["options"].get(key), begun["options"].get(key)
        if before != now:
            raise ConfigError(f"{path}: the run began with {key}={before!r}, and now it is {now!r}: {advice}")
    before = [one["path"] for one in held["inputs"]]
    if before != [os.path.abspath(name) for name in names]:
        raise ConfigError(f"{path}: the run began with {len(before)} inputs, and now there are others: {advice}")
    for one in held["inputs"]:
        facts = os.stat(one["path"])
        same = facts.st_size == one["bytes"]
        if same and facts.st_mtime_ns != one["modified"]:  # copied, perhaps
            same = digest(one["path"]) == one["sha256"]
        if not same:
            raise ConfigError(f"{path}: {one['path']} has changed since the run began: {advice}")


def _begin_again(folder: Path, shard: tuple[int, int]) -> None:
    """Remove what an earlier run wrote, but nothing else."""
    if shard[1] > 1:
        raise ConfigError("--no-resume with --shard would remove what other shards do: remove the folder first")
    if (folder / MANIFEST).exists():
        for part in folder.glob("part-[0-9]*.*"):
            part.unlink()
        (folder / MANIFEST).unlink()


def digest(file: str | Path) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with open(file, "rb") as stream:
        while more := stream.read(_COPIED):
            found.update(more)
    return found.hexdigest()


def digest_of_model(name: str) -> str:
    """The SHA-256 of a model's files, or of the config of one that needs no training."""
    from ..model import persist, untrained

    directory = persist.locate(name)
    found = hashlib.sha256()
    if directory.is_dir():
        for file in (persist.CONFIG, persist.WEIGHTS):
            found.update(digest(directory / file).encode())
    else:
        found.update(json.dumps(untrained.model_config(name), sort_keys=True, default=str).encode())
    return found.hexdigest()
