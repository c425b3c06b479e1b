"""Helpers for the tests of node families: random pairs, similarity of words in plain Python, and the comparison.

Nothing here is vectorised or comes from the families; matching forms and word lists have tests of their own.
"""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import snowballstemmer

from jacana_torch.annotate.tokens import matching_form
from jacana_torch.features.api import Block
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.features.wordlists import _NUMBER_WORDS, _VARIANTS, FUNCTION_WORDS
from jacana_torch.features.words import Lexicon, WordPairs, numbered
from jacana_torch.types import Sentence, SentencePair

WORDS = """The the the a A cat cats Cat Cat's running run runs ran well-known known Well unknown-well ex-wife wife
- — -- 1,000 1000 thousand two 2 2nd 3.5 -7 50% U.S. US us United States of of for and & Bill William Will ca can
n't not no % percent colour color Smith Smyth Schmidt naïve NAÏVE Nai\u0308ve İ i̇ ß SS 😀 👩\u200d🔬 中 -LRB- (
don’t don't . , ! nation national nationality
half-baked half-done baked-half ab abc abd x X sold bought to in""".split()
TAGS = ("NN", "NNS", "NNP", "VBZ", "VBD", "JJ", "DT", "IN", ".", ",", "CD")
RELATIONS = ("det", "nsubj", "dobj", "prep", "pobj", "amod", "conj", "nsubjpass")
_STEMMER = snowballstemmer.stemmer("english")


def random_sentence(rng: random.Random, longest: int = 8, shortest: int = 1, words=WORDS) -> Sentence:
    tokens = tuple(rng.choice(words) for _ in range(rng.randint(shortest, longest)))
    lemmas = tuple(_STEMMER.stemWord(matching_form(t).lower()) for t in tokens)
    return Sentence(tokens, {"pos": tuple(rng.choice(TAGS) for _ in tokens), "lemma": lemmas})


def random_pairs(seed: int, count: int = 6, words=WORDS, longest: int = 8) -> list[SentencePair]:
    """Targets repeat parts of their sources, so that runs, neighbours and competitors occur; one is 1 x 1."""
    rng = random.Random(seed)
    pairs = [SentencePair(random_sentence(rng, 1, words=words), random_sentence(rng, 1, words=words))]
    for _ in range(count - 1):
        source, other = (random_sentence(rng, longest, words=words) for _ in range(2))
        lo = rng.randrange(len(source))
        hi = rng.randint(lo, len(source))
        cut = rng.randint(0, len(other))

        def mixed(a: tuple, b: tuple, lo: int = lo, hi: int = hi, cut: int = cut) -> tuple:
            return b[:cut] + a[lo:hi] + b[cut:]

        layers = {name: mixed(source.layers[name], other.layers[name]) for name in source.layers}
        pairs.append(SentencePair(source, Sentence(mixed(source.tokens, other.tokens), layers)))
    return pairs


def parsed_pairs(seed: int, count: int = 6, longest: int = 8) -> list[SentencePair]:
    """With every layer that a family reads: heads, their relations and names beside tags and lemmas."""
    rng = random.Random(seed)

    def parsed(sentence: Sentence) -> Sentence:
        size = len(sentence)
        order = rng.sample(range(size), size)
        heads, labels, names = [-1] * size, ["root"] * size, ["O"] * size
        for rank in range(1, size):
            heads[order[rank]], labels[order[rank]] = rng.choice(order[:rank]), rng.choice(RELATIONS)
        for k in range(size):
            inside = k and names[k - 1] != "O" and rng.random() < 0.4
            names[k] = f"I{names[k - 1][1:]}" if inside else rng.choice(["O", "B-ORG", "B-PERSON"])
        return Sentence(sentence.tokens, {**sentence.layers, "head": heads, "deprel": labels, "ner": names})

    return [SentencePair(parsed(x.source), parsed(x.target)) for x in random_pairs(seed, count, longest=longest)]


def word_pairs(*both: tuple[str, str]) -> WordPairs:
    """Some pairs of words, in a lexicon of their own."""
    words, number = numbered([word for two in both for word in two])
    left, right = number.reshape(-1, 2).T
    return WordPairs(Lexicon(words), left, right)


# Two words


def stem(word: str) -> str:
    return _STEMMER.stemWord(word)


def jaro_winkler(a: str, b: str) -> float:
    """As Winkler has it: the prefix (at most 4) counts a tenth a letter where Jaro is above 0.7."""
    if not a and not b:
        return 1.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken: set[int] = set()
    from_a = []
    for i, letter in enumerate(a):
        for j in range(max(0, i - reach), min(len(b), i + reach + 1)):
            if j not in taken and b[j] == letter:
                taken.add(j)
                from_a.append(letter)
                break
    if not from_a:
        return 0.0
    from_b = [b[j] for j in sorted(taken)]
    half_turned = sum(x != y for x, y in zip(from_a, from_b, strict=True)) // 2
    k = len(from_a)
    jaro = (k / len(a) + k / len(b) + (k - half_turned) / k) / 3
    prefix = common_start(a[:4], b[:4])
    return jaro + 0.1 * prefix * (1 - jaro) if jaro > 0.7 else jaro


def common_start(a: str, b: str) -> int:
    k = 0
    while k < min(len(a), len(b)) and a[k] == b[k]:
        k += 1
    return k


def edit_distance(a: str, b: str) -> int:
    above = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(above[j] + (x != y), above[j + 1] + 1, row[j] + 1))
        above = row
    return above[-1]


def grams(word: str, n: int) -> set[str]:
    """A word of fewer than n letters is one n-gram."""
    return {word[i : i + n] for i in range(len(word) - n + 1)} or {word}


def single(x: float) -> float:
    """Similarities are computed in single precision, which decides at a threshold."""
    return float(np.float32(x))


def measures(a: str, b: str) -> dict[str, float]:
    longest = max(len(a), len(b)) or 1
    two, three, four = ((grams(a, n), grams(b, n)) for n in (2, 3, 4))
    same_place = sum(x == y for x, y in zip(a, b, strict=False))
    both_empty = not a and not b
    return {
        "jaro_winkler": single(jaro_winkler(a, b)),
        "dice": 2 * len(two[0] & two[1]) / (len(two[0]) + len(two[1])),
        "hamming": 1.0 if both_empty else single(same_place / longest),
        "jaccard": len(two[0] & two[1]) / len(two[0] | two[1]),
        "levenshtein": single(1 - edit_distance(a, b) / longest),
        "ngram3": len(three[0] & three[1]) / min(map(len, three)),
        "ngram4": len(four[0] & four[1]) / min(map(len, four)),
        "prefix": 1.0 if both_empty else single(common_start(a, b) / longest),
        "suffix": 1.0 if both_empty else single(common_start(a[::-1], b[::-1]) / longest),
    }


def same_word(a: str, b: str) -> bool:
    """Algorithm 1, read off the paper: stems equal; one stem begins the other, both longer than 2; hyphens."""
    x, y = stem(a), stem(b)
    if x == y:
        return True
    if len(x) > 2 and len(y) > 2 and (x.startswith(y) or y.startswith(x)):
        return True
    a_parts, b_parts = a.split("-"), b.split("-")
    if "-" in a[1:-1] or "-" in b[1:-1]:
        if len(a_parts) > 1 and len(b_parts) > 1:
            return all(p and q and stem(p) == stem(q) for p, q in zip(a_parts, b_parts, strict=False))
        if len(a_parts) > 1:
            return y in [stem(p) for p in a_parts if p]
        return x in [stem(p) for p in b_parts if p]
    return False


def variant(word: str) -> str:
    if any(c.isdigit() for c in word):
        return word
    dotless = word.replace(".", "") or word
    return _VARIANTS.get(dotless, dotless)


def base(a: str, b: str) -> float:
    """The similarity of two forms that scores of neighbours and competitors use."""
    a, b = a.lower(), b.lower()
    if a == b:
        return 1.0
    if variant(a) == variant(b):
        return 0.95
    if same_word(a, b):
        return 0.9
    alike = single(jaro_winkler(a, b))
    return 0.7 * alike if alike > 0.85 else 0.0


def number_of(word: str) -> float | None:
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    rest = word
    for ending in ("st", "nd", "rd", "th", "s", "%"):
        if rest.endswith(ending):
            rest = rest[: -len(ending)]
            break
    sign, rest = (rest[:1], rest[1:]) if rest[:1] in ("+", "-") else ("", rest)
    whole, _, fraction = rest.partition(".")
    if "." in rest and not re.fullmatch("[0-9]+", fraction):
        return None
    groups = whole.split(",")
    if not whole and "." not in rest:
        return None
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(g) == 3 for g in groups[1:])):
        return None
    if any(not re.fullmatch("[0-9]*", g) for g in groups):
        return None
    return float(f"{sign}{''.join(groups) or '0'}.{fraction or '0'}")


def class_of(word: str) -> str:
    if not any(c.isalnum() for c in word):
        return "punct"
    if number_of(word.lower()) is not None:
        return "number"
    if word.lower() in FUNCTION_WORDS:
        return "function"
    return "name" if word[0].isupper() else "content"


class Bases:
    """One pair: its forms, and `base` of every two of them."""

    def __init__(self, pair: SentencePair) -> None:
        self.pair = pair
        self.source = [matching_form(t) for t in pair.source.tokens]
        self.target = [matching_form(t) for t in pair.target.tokens]
        self.M, self.N = len(self.source), len(self.target)
        self.base = [[base(a, b) for b in self.target] for a in self.source]

    def at(self, m: int, n: int) -> float:
        """0 outside the sentences."""
        return self.base[m][n] if 0 <= m < self.M and 0 <= n < self.N else 0.0


# Comparison


def table(blocks: tuple[Block, ...], rows: int) -> tuple[list[str], np.ndarray]:
    names = [name for block in blocks for name in block.names]
    assert len(names) == len(set(names)), "a column name stands twice"
    values = np.hstack([np.zeros((rows, 0)), *(block.dense() for block in blocks)])
    assert values.shape == (rows, len(names))
    assert np.isfinite(values).all() and np.abs(values).max(initial=0) <= 1
    return names, values


def compare(blocks: tuple[Block, ...], expected: list[dict[str, float]], tolerance: float = 1e-6) -> None:
    """Every column of every row: as expected where the twin names it, zero where it does not."""
    names, values = table(blocks, len(expected))
    for row, (got, want) in enumerate(zip(values, expected, strict=True)):
        assert not set(want) - set(names), f"row {row} lacks columns"
        full = {name: float(want.get(name, 0.0)) for name in names}
        assert dict(zip(names, got.tolist(), strict=True)) == pytest.approx(full, abs=tolerance, rel=0), row


def assert_same_alone(family, pairs: list[SentencePair]) -> None:
    """A pair has the same features, column by column, alone and in a batch."""
    together = FeatureSet({family.name: family})(pairs)
    grid = Grid(pairs)
    for where, start, owner in (
        ("link", grid.cell_start, grid.pair),
        ("null", grid.source_start, grid.source_pair),
    ):
        names, values = table(getattr(together, where), len(owner))
        for p, pair in enumerate(pairs):
            alone = getattr(FeatureSet({family.name: family})([pair]), where)
            rows = int((owner == p).sum())
            own_names, own = table(alone, rows)
            part = values[start[p] : start[p] + rows]
            column = {name: k for k, name in enumerate(names)}
            assert np.array_equal(part[:, [column[n] for n in own_names]], own), (where, p)
            others = [k for n, k in column.items() if n not in set(own_names)]
            assert not part[:, others].any(), (where, p)


def assert_empty_sides(family) -> None:
    """No words on one side or both, no pairs at all: as many rows as cells, nothing raised, nothing NaN."""
    rng = random.Random(0)
    some, none = random_sentence(rng, 3), Sentence((), {"pos": (), "lemma": ()})
    for pairs in (
        [],
        [SentencePair(none, none)],
        [SentencePair(some, none)],
        [SentencePair(none, some)],
        [SentencePair(some, none), SentencePair(some, some), SentencePair(none, some), SentencePair(none, none)],
    ):
        batch = FeatureSet({family.name: family})(pairs)
        table(batch.link, sum(len(p.source) * len(p.target) for p in pairs))
        table(batch.null, sum(len(p.source) for p in pairs))
    assert_same_alone(family, [SentencePair(some, none), SentencePair(some, some), SentencePair(none, some)])
