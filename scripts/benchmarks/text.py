"""Sentence pairs for the benchmarks: a corpus repeated with misspellings, or generated pairs.

Generated pairs consist of WordNet's words if it is installed, else of syllables. All pairs of a call are distinct,
so that caching whole pairs cannot help an aligner.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator
from pathlib import Path

Words = list[str]
Pair = tuple[Words, Words]

FUNCTION = "the a of in to and that is was for on with as by at from it has had not".split()
MISSPELT = 0.1  # of the words of a perturbed sentence
LONGER, SHORTER = (12, 30, 60), (5, 12, 25)  # tokens per side: minimum, mode, maximum


def read(data: Path) -> list[Pair]:
    """Read the pairs of a corpus file in any format, without those that have an empty side."""
    from jacana_torch import corpora

    pairs = [(list(e.pair.source.tokens), list(e.pair.target.tokens)) for e in corpora.read(str(data))]
    return [pair for pair in pairs if all(pair)]


def pairs(data: Path | None, count: int, seed: int = 0) -> Iterator[Pair]:
    """`count` distinct pairs: the corpus repeated with misspellings, or generated ones without a corpus."""
    return perturbed(read(data), count, seed) if data else fresh(count, seed)


def lengths(data: Path | None, count: int) -> list[tuple[int, int]]:
    """The numbers of tokens of the first pairs."""
    found = read(data)[:count] if data else fresh(count)
    return [(len(source), len(target)) for source, target in found]


def perturbed(corpus: list[Pair], count: int, seed: int = 0) -> Iterator[Pair]:
    """Repeat the corpus in order, with different misspellings each time."""
    rng = random.Random(seed)
    seen: set[tuple[tuple[str, ...], ...]] = set()
    for number in range(count):
        source, target = corpus[number % len(corpus)]
        share = MISSPELT
        while True:
            pair = [_misspelt_sentence(rng, side, share) for side in (source, target)]
            key = tuple(map(tuple, pair))
            if key not in seen:
                break
            share = min(1.0, 2 * share)  # short sentences run out of other spellings
            if share == 1.0:
                source = [*source, _made_up(rng)]
        seen.add(key)
        yield pair[0], pair[1]


def _misspelt_sentence(rng: random.Random, words: Words, share: float) -> Words:
    return [misspelt(rng, w) if rng.random() < share and len(w) > 2 and w.isalpha() else w for w in words]


def misspelt(rng: random.Random, word: str) -> str:
    """Replace or insert a letter after the first."""
    place = rng.randrange(1, len(word))
    letter = rng.choice([c for c in string.ascii_lowercase if c != word[place]])
    return word[:place] + letter + word[place + rng.randrange(2) :]


def fresh(count: int, seed: int = 0) -> Iterator[Pair]:
    """Generate pairs with the lengths of premises and hypotheses."""
    for source, target, _ in _made(count, seed):
        yield source, target


def _made(count: int, seed: int) -> Iterator[tuple[Words, Words, list[tuple[int, int]]]]:
    rng = random.Random(seed)
    words = vocabulary(random.Random(0))
    seen = set()
    while len(seen) < count:
        source = sentence(rng, words, _length(rng, LONGER))
        target, links = rewritten(rng, words, source, min(_length(rng, SHORTER), len(source)))
        key = tuple(source), tuple(target)
        if key not in seen:
            seen.add(key)
            yield source, target, links


def _length(rng: random.Random, bounds: tuple[int, int, int]) -> int:
    least, mode, most = bounds
    return round(rng.triangular(least, most, mode))


def vocabulary(rng: random.Random) -> Words:
    """Words, the most frequent first."""
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


def sentence(rng: random.Random, words: Words, length: int) -> Words:
    """Generate a sentence: two words in five are function words, the others are Zipfian and some are names."""
    return [*(_word(rng, words) for _ in range(length - 1)), "."]


def _word(rng: random.Random, words: Words) -> str:
    if rng.random() < 0.4:
        return rng.choice(FUNCTION)
    word = words[int(len(words) ** rng.random()) - 1]
    return word.capitalize() if rng.random() < 0.15 else word


def rewritten(rng: random.Random, words: Words, source: Words, length: int) -> tuple[Words, list[tuple[int, int]]]:
    """Generate a target from part of the source, with a swap and some words changed, and its links."""
    origin = sorted(rng.sample(range(len(source) - 1), length - 1))
    a, b = rng.randrange(length - 1), rng.randrange(length - 1)
    origin[a], origin[b] = origin[b], origin[a]
    target, links = [], []
    for j, i in enumerate(origin):
        word, draw = source[i], rng.random()
        if draw < 0.1:
            word += rng.choice(["s", "ed", "ing"])
        elif draw < 0.15 and len(word) > 3:
            word = misspelt(rng, word)
        elif draw < 0.4:
            word = _word(rng, words)
        if draw < 0.3:  # a few of the replaced words count as paraphrases
            links.append((i, j))
        elif draw >= 0.4:
            links.append((i, j))
        target.append(word)
    return [*target, "."], [*links, (len(source) - 1, len(target))]


def write_text(path: Path, sentences: Iterable[Pair]) -> None:
    with open(path, "w", encoding="utf-8") as out:
        for source, target in sentences:
            out.write(f"{' '.join(source)}\t{' '.join(target)}\n")


def write_gold(path: Path, count: int, seed: int = 0) -> None:
    """Write generated pairs with links, to train on."""
    from jacana_torch import corpora
    from jacana_torch.types import Alignment, Example, Sentence, SentencePair

    def examples() -> Iterator[Example]:
        for number, (source, target, links) in enumerate(_made(count, seed), start=1):
            pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)), f"made-{number}")
            yield Example(pair, Alignment(len(source), len(target), frozenset(links)))

    corpora.write(examples(), str(path), "jsonl")
