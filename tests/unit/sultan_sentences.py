"""Made-up sentences for Sultan et al.'s pipeline, and which of their words mean the same."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import strategies as st

from jacana_torch.types import Sentence

# Few words, so that many links compete. Their tags and classes are given, so that the twin need not derive them.
LEXICON = {
    "ship": ("NN", "c"), "vessel": ("NN", "c"), "crew": ("NN", "c"), "sail": ("NN", "c"), "left": ("VBD", "c"),
    "sailed": ("VBD", "c"), "old": ("JJ", "c"), "ancient": ("JJ", "c"), "slowly": ("RB", "c"), "the": ("DT", "s"),
    "is": ("VBZ", "s"), "was": ("VBD", "s"), "of": ("IN", "s"), "by": ("IN", "s"), "in": ("IN", "s"),
    "and": ("CC", "s"), "it": ("PRP", "s"), ".": (".", "p"), ",": (",", "p"),
}  # fmt: skip
RELATIONS = (
    "nsubj dobj nsubjpass auxpass det amod rcmod acl xcomp purpcl nn poss prep pobj cc conj advmod iobj tmod "
    "acomp cop csubj punct"
).split()
FITTING = {
    ("VB", "NN"): ["nsubj", "dobj", "nsubjpass", "tmod", "iobj"], ("NN", "NN"): ["nn", "poss", "conj"],
    ("NN", "VB"): ["acl", "rcmod"], ("NN", "JJ"): ["amod", "rcmod"], ("VB", "VB"): ["xcomp", "purpcl", "conj"],
    ("NN", "DT"): ["det"], ("VB", "JJ"): ["acomp"], ("JJ", "NN"): ["nsubj"], ("JJ", "JJ"): ["conj"],
}  # fmt: skip
TURNED = ["acl", "rcmod", "dobj", "nsubj", "conj", "amod", "cop"]
FREQUENT = ["ship", "vessel", "left", "sailed", "sail", "old", "the", "of", "in", "by"]
PAIRED = [{"ship", "vessel"}, {"crew", "left"}, {"left", "sailed"}, {"old", "ancient"}, {"of", "in"}]


def paired(keys, left, right):
    pairs = [{keys[a].form, keys[b].form} for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    return np.array([pair in PAIRED for pair in pairs], dtype=bool)


@st.composite
def sentences(draw, most=9):
    forms = draw(st.lists(st.sampled_from(sorted(LEXICON)), min_size=1, max_size=most))
    heads = [draw(st.integers(-1, len(forms) - 1)) for _ in forms]
    heads = [-1 if head == k else head for k, head in enumerate(heads)]
    return made(forms, heads, [draw(st.sampled_from(RELATIONS)) for _ in forms])


def pair_of(random: Random) -> tuple[Sentence, Sentence]:
    """A sentence and a variant of it: words moved, replaced and left out, relations changed."""
    size = random.randint(2, 10)
    forms = [random.choice(FREQUENT if random.random() < 0.7 else sorted(LEXICON)) for _ in range(size)]
    heads = [random.choice([k for k in range(-1, size) if k != own]) for own in range(size)]
    relations = [_fitting(random, forms, heads, k) for k in range(size)]
    order = list(range(size))
    if random.random() < 0.6:
        random.shuffle(order)
    order = [k for k in order if random.random() < 0.9]
    place = {k: at for at, k in enumerate(order)}
    others = [random.choice(sorted(_swaps(forms[k]))) if random.random() < 0.4 else forms[k] for k in order]
    uppers = [place.get(heads[k], -1) for k in order]
    changed = [random.choice(RELATIONS) if random.random() < 0.2 else relations[k] for k in order]
    turned = [k for k, up in enumerate(uppers) if up >= 0 and random.random() < 0.15]
    for k in turned:  # the child becomes the parent, as in a relative clause
        up = uppers[k]
        uppers[k], uppers[up], changed[up] = uppers[up] if uppers[up] != k else -1, k, random.choice(TURNED)
    return made(forms, heads, relations), made(others or ["."], uppers or [-1], changed or ["root"])


def _fitting(random: Random, forms: list[str], heads: list[int], k: int) -> str:
    tag, above = LEXICON[forms[k]][0], LEXICON[forms[heads[k]]][0] if heads[k] >= 0 else ""
    if tag == "IN":
        return "prep"
    if above == "IN":
        return "pobj"
    if tag == "CC":
        return "cc"
    return random.choice(FITTING.get((above[:2], tag[:2]), RELATIONS))


def _swaps(form: str) -> set[str]:
    return set().union(*(pair for pair in PAIRED if form in pair), {form})


def made(forms, heads, relations):
    tags = [LEXICON[form][0] for form in forms]
    lemmas = ["be" if form in ("is", "was") else form for form in forms]
    return Sentence(tuple(forms), {"pos": tags, "lemma": lemmas, "head": heads, "deprel": relations})
