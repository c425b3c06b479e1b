"""Sentence pairs for the benchmarks: a user's corpus, repeated with words misspelt, or made-up ones.

Made-up pairs are of WordNet's words where it is installed, else of syllables. No pair comes twice from one call,
so that nothing an aligner keeps of whole pairs can help it.
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
LONGER, SHORTER = (12, 30, 60), (5, 12, 25)  # tokens of each side: least, most often, most


def read(data: Path) -> list[Pair]:
    """The pairs of a corpus file of any format, those without words left out."""
    from jacana_torch import corpora

    pairs = [(list(e.pair.source.tokens), list(e.pair.target.tokens)) for e in corpora.read(str(data))]
    return [pair for pair in pairs if all(pair)]


def pairs(data: Path | None, count: int, seed: int = 0) -> Iterator[Pair]:
    """`count` distinct pairs: the corpus over and over with words misspelt, or made-up ones without a corpus."""
    return perturbed(read(data), count, seed) if data else fresh(count, seed)


def lengths(data: Path | None, count: int) -> list[tuple[int, int]]:
    """Tokens of both sides of the first pairs."""
    found = read(data)[:count] if data else fresh(count)
    return [(len(source), len(target)) for source, target in found]


def perturbed(corpus: list[Pair], count: int, seed: int = 0) -> Iterator[Pair]:
    """The pairs of the corpus in order, again and again, each with other words misspelt than ever before."""
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
    """With a letter in place of one, or put in, after the first."""
    place = rng.randrange(1, len(word))
    letter = rng.choice([c for c in string.ascii_lowercase if c != word[place]])
    return word[:place] + letter + word[place + rng.randrange(2) :]


def fresh(count: int, seed: int = 0) -> Iterator[Pair]:
    """Made-up pairs of the lengths that premises and hypotheses have."""
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


def sentence(rng: random.Random, words: Words, length: int) -> Words:
    """Two words in five are function words; the others follow Zipf's law, and some are names."""
    return [*(_word(rng, words) for _ in range(length - 1)), "."]


def _word(rng: random.Random, words: Words) -> str:
    if rng.random() < 0.4:
        return rng.choice(FUNCTION)
    word = words[int(len(words) ** rng.random()) - 1]
    return word.capitalize() if rng.random() < 0.15 else word


def rewritten(rng: random.Random, words: Words, source: Words, length: int) -> tuple[Words, list[tuple[int, int]]]:
    """A part of the source, in order but for a swap, with words inflected, misspelt or replaced; and the links."""
    origin = sorted(rng.sample(range(len(source) - 1), length - 1))
    a, b = rng.randrange(length - 1), rng.randrange(length - 1)
    origin[a], origin[b] = origin[b], origin[a]
    target, links = [], []
    for j, i in enumerate(origin):
        word, chance = source[i], rng.random()
        if chance < 0.1:
            word += rng.choice(["s", "ed", "ing"])
        elif chance < 0.15 and len(word) > 3:
            word = misspelt(rng, word)
        elif chance < 0.4:
            word = _word(rng, words)
        if chance < 0.3:  # a few of the replaced words count as paraphrases
            links.append((i, j))
        elif chance >= 0.4:
            links.append((i, j))
        target.append(word)
    return [*target, "."], [*links, (len(source) - 1, len(target))]


def write_text(path: Path, sentences: Iterable[Pair]) -> None:
    with open(path, "w", encoding="utf-8") as out:
        for source, target in sentences:
            out.write(f"{' '.join(source)}\t{' '.join(target)}\n")


def write_gold(path: Path, count: int, seed: int = 0) -> None:
    """Made-up pairs with their links, to train on."""
    from jacana_torch import corpora
    from jacana_torch.types import Alignment, Example, Sentence, SentencePair

    def examples() -> Iterator[Example]:
        for number, (source, target, links) in enumerate(_made(count, seed), start=1):
            pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)), f"made-{number}")
            yield Example(pair, Alignment(len(source), len(target), frozenset(links)))

    corpora.write(examples(), str(path), "jsonl")
