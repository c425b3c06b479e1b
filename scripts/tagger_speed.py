"""Compare the speed of our tagger with that of NLTK's, with the same weights.

    python scripts/tagger_speed.py [GOLD.jsonl]

Sentences come from an aligned corpus, or are 400 sentences of random words. The taggers take turns.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.measure import shown, timings
from nltk.tag.perceptron import PerceptronTagger

from jacana_torch import corpora, resources
from jacana_torch.annotate.perceptron import LockstepTagger
from jacana_torch.resources.build import Writer
from jacana_torch.resources.tagger_files import compile_tagger


def sentences(weights: dict, corpus: str | None) -> list[list[str]]:
    if corpus:
        return [list(side.tokens) for e in corpora.read(corpus) for side in (e.pair.source, e.pair.target)]
    words = [word for feature in weights if feature.startswith("i word ") for word in feature.split(" ")[2:]]
    return [random.Random(k).choices(words, k=20) for k in range(400)]


def main() -> None:
    read = resources.tagger_weights()
    nltk = PerceptronTagger(load=False)
    nltk.model.weights, nltk.tagdict = read.weights, read.tagdict
    nltk.classes = nltk.model.classes = set(read.classes)
    writer = Writer(None)
    compile_tagger(read, writer)
    arrays, given = writer.finish(), sentences(read.weights, sys.argv[1] if sys.argv[1:] else None)
    runs: dict[str, Callable[[], object]] = {
        "nltk": lambda: [nltk.tag(sentence) for sentence in given],
        "ours, cold": lambda: LockstepTagger(arrays).tag(given),
        "ours, again": partial(LockstepTagger(arrays).tag, given),
    }
    found = timings(runs, 2.0)
    for name, times in found.items():
        rate = sum(map(len, given)) / times["median"]
        print(f"{name:12}{rate:12,.0f} tokens/s{shown(found['nltk']['median'] / times['median']):>8} x nltk")


if __name__ == "__main__":
    main()
