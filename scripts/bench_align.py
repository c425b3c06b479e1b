"""How many pairs a second `jacana-torch align` does, from a file to a file: the `align` part of bench.py.

Every run aligns pairs that were never seen before, made of WordNet's words where it is installed and of made-up
ones where it is not, so that nothing kept from an earlier run helps. What starting takes is measured apart.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LENGTHS = (30, 12)  # tokens of the longer and of the shorter side
FUNCTION = "the a of in to and that is was for on with as by at from it has had not".split()


def vocabulary(rng: random.Random) -> list[str]:
    """Words in the order of how often they are drawn."""
    from jacana_torch import resources
    from jacana_torch.errors import MissingResource

    try:
        directory = resources.path("wordnet")
        lines = [line for name in ("noun", "verb", "adj") for line in open(directory / f"index.{name}")]
        words = sorted({w for line in lines if (w := line.split(" ", 1)[0]).isalpha() and len(w) > 2})
    except (MissingResource, OSError):
        words = sorted({_made_up(rng) for _ in range(30_000)})
    rng.shuffle(words)
    return words


def _made_up(rng: random.Random) -> str:
    return "".join(rng.choice("bcdfgklmnprstvz") + rng.choice(["a", "e", "i", "o", "u", "ea"]) for _ in range(3))


def sentence(rng: random.Random, words: list[str], length: int) -> list[str]:
    """Two words in five are function words; the others follow Zipf's law, and some are names."""
    out = []
    for _ in range(length - 1):
        if rng.random() < 0.4:
            out.append(rng.choice(FUNCTION))
        else:
            word = words[int(len(words) ** rng.random()) - 1]
            out.append(word.capitalize() if rng.random() < 0.15 else word)
    return [*out, "."]


def perturbed(rng: random.Random, words: list[str], source: list[str], length: int) -> list[str]:
    """A part of the source, in order but for a swap, with words inflected, misspelt or replaced."""
    kept = [source[k] for k in sorted(rng.sample(range(len(source) - 1), length - 1))]
    for k, word in enumerate(kept):
        chance = rng.random()
        if chance < 0.1:
            kept[k] = word + rng.choice(["s", "ed", "ing"])
        elif chance < 0.15 and len(word) > 3:
            place = rng.randrange(1, len(word) - 1)
            kept[k] = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        elif chance < 0.4:
            kept[k] = sentence(rng, words, 2)[0]
    a, b = rng.randrange(length - 1), rng.randrange(length - 1)
    kept[a], kept[b] = kept[b], kept[a]
    return [*kept, "."]


def write_pairs(path: Path, count: int, seed: int, words: list[str]) -> None:
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(count):
            source = sentence(rng, words, LENGTHS[0])
            target = perturbed(rng, words, source, LENGTHS[1])
            out.write(f"{' '.join(source)}\t{' '.join(target)}\n")


def seconds(model: str, pairs: Path) -> float:
    """Wall time of the command, as a user would see it."""
    command = [sys.executable, "-m", "jacana_torch", "align", str(pairs), "--from", "text", "--pretokenized"]
    begun = time.perf_counter()
    subprocess.run(
        [*command, "--model", model, "--output", str(pairs.with_suffix(".out"))], check=True, capture_output=True
    )
    return time.perf_counter() - begun


def align(models: list[str], count: int, runs: int) -> list[dict]:
    """For each model the median of `runs` runs, models taking turns, with the quartiles as the spread."""
    words = vocabulary(random.Random(0))
    taken: dict[str, list[tuple[float, float]]] = {model: [] for model in models}
    with tempfile.TemporaryDirectory() as directory:
        one, many = Path(directory) / "one.txt", Path(directory) / "many.txt"
        for run in range(runs + 1):
            write_pairs(one, 1, 10_000 + run, words)
            write_pairs(many, count + 1, run, words)
            for model in models:
                times = seconds(model, one), seconds(model, many)
                if run:  # the first compiles resources and fills the system's file cache
                    taken[model].append(times)
    return [_entry(model, count, times) for model, times in taken.items()]


def _entry(model: str, count: int, times: list[tuple[float, float]]) -> dict:
    rates = [count / (many - one) for one, many in times]
    low, middle, high = statistics.quantiles(rates, n=4)
    start = statistics.median(one for one, _ in times)
    print(
        f"{model:10} {middle:7.0f} pairs/s   ({low:.0f} .. {high:.0f}, {len(rates)} runs), {start:.2f} s to start"
    )
    return {
        "model": model, "pairs": count, "tokens": LENGTHS, "pairs_per_second": middle, "low": low, "high": high,
        "runs": len(rates), "seconds_to_start": start,
    }  # fmt: skip
