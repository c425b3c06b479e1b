"""Measure a shipped model and write its card, which `jacana-torch models NAME` shows.

    python scripts/model_card.py core                # scores on other corpora, calibration, speed, size
    python scripts/model_card.py core standard       # several; run it after each training of a shipped model
    python scripts/model_card.py core --cv           # cross-validate its recipe too: minutes to hours

The words come from scripts/model_cards.yaml. Corpora are read from $JACANA_DATA. Scores on the training corpora
are those of a cross-validation with the recipe of the model: each pair is scored by a model that did not see it.
They are kept in scripts/model_cards.json with a checksum of the recipe. If the recipe has changed since, they are
left out until --cv measures them again. `--predictions CORPUS=FILE` reads predictions.jsonl of such a run instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from outcome import ROOT, outcome

WORDS, KEPT = ROOT / "scripts" / "model_cards.yaml", ROOT / "scripts" / "model_cards.json"
OTHERS = {  # out of domain: file, ids that are left out, links
    "MTRef dev": ("multimwa/mtref-dev.jsonl", "leaks/drop_from_mtref_dev_for_edinburgh_test.txt", "all"),
    "Wiki dev": ("multimwa/wiki-dev.jsonl", None, "sure"),
}
OWN = {"MSR dev": ("msr", "msr/dev.jsonl"), "Edinburgh train": ("edinburgh", "edinburgh/train.jsonl")}
METRICS = ("precision", "recall", "f1", "exact")
SPEED_PAIRS = 200  # of MSR dev


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME")
    parser.add_argument("--cv", action="store_true", help="cross-validate the recipe on the training corpora")
    parser.add_argument("--predictions", action="append", default=[], metavar="CORPUS=FILE",
                        help=f"predictions of a cross-validation: {', '.join(OWN)}")  # fmt: skip
    options = parser.parse_args(arguments)

    def script() -> None:
        import yaml

        words = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
        given = dict(item.partition("=")[::2] for item in options.predictions)
        for name in options.models:
            write_card(name, words, options.cv, given)

    return outcome(script)


def write_card(name: str, words: Mapping[str, Any], cv: bool, given: Mapping[str, str]) -> None:
    from jacana_torch.errors import ConfigError, did_you_mean
    from jacana_torch.model import card, persist
    from jacana_torch.model.saving import CARD, write_json
    from jacana_torch.version import __version__

    if name not in persist.names() or name not in words:
        raise ConfigError(f"there is no shipped model {name!r}{did_you_mean(name, persist.names())}")
    root = Path(os.environ.get("JACANA_DATA") or ".").expanduser()
    directory, own = persist.locate(name), words[name]
    made = {
        "weights_sha256": card.checksum(directory),
        "measured": {
            "date": datetime.now(timezone.utc).date().isoformat(),
            "command": f"python scripts/model_card.py {name}",
            "version": __version__,
            "processor": processor(),
        },
        "data": filled(own["data"], words["shared"]),
        "conventions": own["conventions"],
        "in_domain": in_domain(name, own, root, cv, given),
        **on_other_corpora(name, root),
        "size": size(directory),
        "limits": [*own["limits"], *words["shared"]["limits"]],
        "licence": filled([own["licence"]], words["shared"])[0],
    }
    write_json(directory / CARD, made)
    (info,) = (one for one in persist.shipped() if one.name == name)
    print(card.text(info, card.read(directory)), end="\n\n", flush=True)


def filled(texts: Sequence[str], shared: Mapping[str, Any]) -> list[str]:
    return [text.format(**shared) for text in texts]


# Scores


def on_other_corpora(name: str, root: Path) -> dict[str, Any]:
    """Score the model on corpora that it was not trained on; measure its speed on MSR's sentences."""
    from jacana_torch import corpora
    from jacana_torch.model import persist

    model, seen = persist.load(name), persist.trained_on(name)
    rows = []
    for corpus, (file, leaks, links) in OTHERS.items():
        dropped = set((root / leaks).read_text(encoding="utf-8").split()) if leaks else set()
        examples = [one for one in corpora.read(root / file) if one.pair.id not in dropped and one.gold]
        new = [one for one in examples if one.pair.checksum not in seen]
        how = "the shipped weights"
        if len(new) < len(examples):
            how += f"; without {len(examples) - len(new)} pairs that are also training pairs"
        found = list(model.align_stream(bare(one.pair) for one in new))
        rows.append({"corpus": corpus, "how": how, **scores(new, found, links)})
    pairs = [bare(one.pair) for one in corpora.read(root / OWN["MSR dev"][1])][: 2 * SPEED_PAIRS]
    model.align(pairs[:SPEED_PAIRS], confidence=False)  # opens resources
    begun = time.process_time()
    model.align(pairs[SPEED_PAIRS:], confidence=False)
    rate = SPEED_PAIRS / (time.process_time() - begun)
    said = f"tokens to links, {SPEED_PAIRS} pairs of MSR dev, one process, resources opened"
    return {"out_of_domain": rows, "speed": {"pairs_per_second": round(rate, 1), "input": said}}


def bare(pair: Any) -> Any:
    """Return a pair with its tokens and nothing else: the model annotates it as any text."""
    from jacana_torch.types import Sentence, SentencePair

    return SentencePair(Sentence(pair.source.tokens), Sentence(pair.target.tokens), pair.id)


def scores(examples: Sequence[Any], found: Sequence[Any], links: str) -> dict[str, Any]:
    """Return the percentages with their intervals, and the calibration error of the links."""
    import numpy as np

    from jacana_torch.evaluate.calibration import reliability
    from jacana_torch.evaluate.scores import count, links_of, score
    from jacana_torch.evaluate.significance import intervals

    gold = [one.gold for one in examples]
    value, around = score(gold, found, links), intervals(count(gold, found, links))
    row: dict[str, Any] = {"pairs": len(gold), "links": links}
    for name in METRICS:
        numbers = (getattr(value, name), around[name].low, around[name].high)
        row[name] = [round(100 * number, 2) for number in numbers]
    probabilities, right = [], []
    for one, other in zip(gold, found, strict=True):
        for link in sorted(other.links):
            if link in other.confidence:
                probabilities.append(other.confidence[link])
                right.append(link in links_of(one, links))
    if probabilities:
        row["ece"] = round(100 * reliability(np.array(probabilities), np.array(right)).error, 2)
    return row


def in_domain(
    name: str, own: Mapping[str, Any], root: Path, cv: bool, given: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the scores of a cross-validation of the recipe: measured now, or kept."""
    from jacana_torch import corpora
    from jacana_torch.model.saving import write_json

    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    rows = []
    for corpus, (data, file) in OWN.items():
        command = ["train", *own["recipe"], f"data={data}", "cv=5"]
        key, recipe = f"{name}, {corpus}", recipe_of(command, root)
        predictions = Path(given[corpus]) if corpus in given else cross_validated(command, root) if cv else None
        if predictions is not None:
            # by their words: a corpus may hold a pair and its reverse, which have one checksum
            found = {words_of(one): one.gold for one in corpora.read(predictions)}
            examples = [one for one in corpora.read(root / file) if words_of(one) in found]
            aligned = [found[words_of(one)] for one in examples]
            row = {
                "corpus": corpus,
                "how": own.get("measured_by", {}).get(corpus, f"jacana-torch {' '.join(command)}"),
                **scores(examples, aligned, "sure"),
            }
            kept[key] = {"recipe": recipe, "row": row}
            write_json(KEPT, kept)
        if key in kept and kept[key]["recipe"] == recipe:
            rows.append(kept[key]["row"])
        else:
            sys.stderr.write(f"{key}: not measured with this recipe; --cv does ({' '.join(command)})\n")
    return rows


def words_of(example: Any) -> tuple[tuple[str, ...], ...]:
    return example.pair.source.tokens, example.pair.target.tokens


def recipe_of(command: Sequence[str], root: Path) -> str:
    """Return a checksum of all settings of a training."""
    run = [sys.executable, "-m", "jacana_torch", *command, f"data.root={root}", "--cfg", "job"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    settings = "\n".join(line for line in done.stdout.splitlines() if str(root) not in line)
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def cross_validated(command: Sequence[str], root: Path) -> Path:
    """Cross-validate; return the file of predictions."""
    folder = Path(tempfile.mkdtemp(prefix="model_card_"))
    run = [
        sys.executable,
        "-m",
        "jacana_torch",
        *command,
        f"data.root={root}",
        "logger=none",
        f"hydra.run.dir={folder}",
    ]
    subprocess.run(run, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return folder / "predictions.jsonl"


# What the machine and the files say


def size(directory: Path) -> dict[str, int]:
    from jacana_torch.model import persist
    from jacana_torch.model.saving import CONFIG, WEIGHTS

    state = persist.read_state(directory)
    numbers = sum(int(value.size) for value in state.values() if not isinstance(value, list))
    return {"bytes": sum((directory / name).stat().st_size for name in (CONFIG, WEIGHTS)), "weights": numbers}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    import platform

    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
