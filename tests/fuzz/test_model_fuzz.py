"""Damaged model directories: each loads and aligns, or is an error that says so; nothing outside it is touched.

300 of them here; JACANA_FUZZ=10000 makes more, and prints a table. JACANA_FUZZ_SEED=123 makes one alone.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import fuzz_models
import pytest
from templates import corpus

from jacana_torch import resources
from jacana_torch.errors import JacanaError
from jacana_torch.model import persist
from jacana_torch.types import Alignment, Sentence, SentencePair
from jacana_torch.util import conf

N = int(os.environ.get("JACANA_FUZZ", "300"))
ONLY = os.environ.get("JACANA_FUZZ_SEED")
SLOWEST = 2.0  # seconds
MOST_MEMORY = 300 << 20  # bytes that the whole run may add
WATCHED = ("open", "os.", "shutil.", "subprocess.", "socket.", "tempfile.", "pathlib.", "glob.", "webbrowser.")
HARMLESS = ("os.putenv", "os.unsetenv", "os.getxattr")

_touched: list[str] | None = None  # while a model is watched
_allowed: tuple[str, ...] = ()


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """Note every file, process and connection that is not allowed. Python cannot remove this hook again."""
    if _touched is None or not event.startswith(WATCHED) or event in HARMLESS:
        return
    if event in ("open", "os.listdir", "os.scandir", "pathlib.Path.glob"):
        path, *how = arguments
        reads = event != "open" or how[0] is None or not set(str(how[0])) & set("wax+")
        reads = reads and not (event == "open" and int(str(how[1] or 0)) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if isinstance(path, int) or (reads and os.path.abspath(os.fsdecode(path)).startswith(_allowed)):
            return
    _touched.append(f"{event} {arguments}"[:300])
    raise PermissionError(f"{event}: a model may not do this")  # nor does it: a pipe would hold us up


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    made = fuzz_models.models(tmp_path_factory.mktemp("models"))
    fuzz_models.targets()  # imports everything, so that no import is seen as a read
    sys.addaudithook(_watch)
    return made


@pytest.fixture
def place(tmp_path) -> Iterator[Path]:
    """Where damaged models are put, with what no model may touch beside them."""
    global _allowed
    (tmp_path / "outside").write_text("a 1\nb 2\n")
    os.mkfifo(tmp_path / "fifo")
    places = [str(tmp_path / "model"), sys.prefix, sys.base_prefix, str(Path(persist.__file__).parents[1])]
    places += [str(conf.conf_directory()), str(resources.home()), *map(str, resources.nltk_roots()), "/proc/self"]
    _allowed = tuple(places)
    yield tmp_path
    _allowed = ()


WORD = {"pos": ("DT",), "lemma": ("a",), "head": (-1,), "deprel": ("ROOT",), "ner": ("O",)}
PAIRS = [e.pair for e in corpus(3, seed=4)]
PAIRS += [
    SentencePair(PAIRS[0].source, Sentence((), dict.fromkeys(WORD, ()))),
    SentencePair(*[Sentence(("A",), WORD)] * 2),
]


def outcome(directory: Path) -> str:
    """Load and align: "aligned" or "refused", or what else happened."""
    global _touched
    _touched = []
    begun, what = time.perf_counter(), "aligned"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            what = wrong(PAIRS, persist.load(directory).align(PAIRS)) or what
    except JacanaError as error:
        what = (
            "refused" if 10 < len(str(error)) < 2000 else f"a message of {len(str(error))} letters: {error}"[:300]
        )
    except Exception:
        what = traceback.format_exc()[-1500:]
    touched, _touched = _touched, None
    if touched:
        what = f"touched {touched[:3]}; {what[:300]}"
    if (took := time.perf_counter() - begun) > SLOWEST:
        what = f"took {took:.1f} s"
    return what


def wrong(pairs: list[SentencePair], found: list[Alignment]) -> str | None:
    """What is wrong with alignments, if anything is."""
    for pair, a in zip(pairs, found, strict=True):
        if (a.n_source, a.n_target) != (len(pair.source), len(pair.target)):
            return f"an alignment of {a.n_source} x {a.n_target}"
        if not all(0 <= value <= 1 for value in a.confidence.values()):
            return f"confidences {list(a.confidence.values())[:5]}"
        if a.score is not None and not math.isfinite(a.score):
            return f"the score {a.score}"
    return None


def write(directory: Path, model: dict[str, bytes], seed: int) -> str:
    """Write a damaged model; the name of the file that was changed."""
    random = Random(seed)
    name = random.choice((persist.CONFIG, persist.CONFIG, persist.CONFIG, persist.WEIGHTS, persist.WEIGHTS,
                          persist.WEIGHTS, persist.SIGNATURE))  # fmt: skip
    outside = str(directory.parent / random.choice(("outside", "fifo", "new")))
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for file, content in fuzz_models.damaged(model, name, random, outside):
        (directory / file).write_bytes(content)
    return name


def test_damaged_models_align_or_are_refused(files, place, capsys):
    names, counts, failures = list(files), Counter(), []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in names:
        for file, content in files[name].items():
            (place / "model").mkdir(exist_ok=True)
            (place / "model" / file).write_bytes(content)
        assert outcome(place / "model") == "aligned", name
    for seed in range(N) if ONLY is None else [int(ONLY)]:
        name = names[seed % len(names)]
        changed = write(place / "model", files[name], seed)
        found = outcome(place / "model")
        kind = found if found in ("aligned", "refused") else "failed"
        counts[name, changed, kind] += 1
        if kind == "failed":
            failures.append(f"JACANA_FUZZ_SEED={seed} ({name}, {changed}): {found}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if "JACANA_FUZZ" in os.environ:
        with capsys.disabled():
            sys.stdout.write("\n".join([*table(counts, names, grown), ""]))
    if failures:
        pytest.fail("\n\n".join(failures[:10]), pytrace=False)
    assert grown < MOST_MEMORY
    assert sorted(path.name for path in place.iterdir()) == ["fifo", "model", "outside"]


def table(counts: Counter[tuple[str, str, str]], names: list[str], grown: int) -> Iterator[str]:
    yield f"\n{'model':<10} {'changed':<20} {'inputs':>7} {'aligned':>8} {'refused':>8} {'failed':>7}"
    for name in names:
        for file in fuzz_models.WAYS:
            found = [counts[name, file, kind] for kind in ("aligned", "refused", "failed")]
            yield f"{name:<10} {file:<20} {sum(found):>7} {found[0]:>8} {found[1]:>8} {found[2]:>7}"
    total = [sum(n for key, n in counts.items() if key[2] == kind) for kind in ("aligned", "refused", "failed")]
    yield f"{'all':<10} {'':<20} {sum(total):>7} {total[0]:>8} {total[1]:>8} {total[2]:>7}"
    yield f"memory grew by {grown >> 20} MB"
