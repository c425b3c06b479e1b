"""Why one word or phrase could take the place of another: its case, spelling, form, number, a synonym, ..."""

from __future__ import annotations

from collections.abc import Sequence

from ..annotate.tokens import matching_form
from ..features.wordlists import FUNCTION_KINDS, FUNCTION_WORDS, NEGATIONS, NICKNAMES, number_value, stem, variant

# What `Edit.reason` may be, and what it says.
REASONS = {
    "case": "only upper and lower case differ",
    "space": "only the space between words differs",
    "notation": "another way to write the same word or number",
    "form": "another form of the same word",
    "spelling": "almost the same letters",
    "number": "another number",
    "negation": "one is negated, the other is not",
    "synonym": "synonyms in WordNet",
    "antonym": "antonyms in WordNet",
    "general": "a more general word, by WordNet",
    "specific": "a more specific word, by WordNet",
    "related": "related in WordNet in another way",
    "abbreviation": "initials or a short form",
    "pronoun": "a pronoun for a name or a noun, or the reverse",
    "function": "another function word",
    "punctuation": "another punctuation mark",
    "phrase": "a paraphrase of more than one word",
    "other": "the aligner alone says so",
}
_PRONOUNS = FUNCTION_KINDS["pronoun"]


def same_but_case(one: Sequence[str], other: Sequence[str]) -> bool:
    return [matching_form(w).lower() for w in one] == [matching_form(w).lower() for w in other]


def reason(one: Sequence[str], other: Sequence[str]) -> str:
    """Return why tokens `other` could replace tokens `one`: a key of REASONS."""
    a, b = ([matching_form(word).lower() for word in side] for side in (one, other))
    if a == b:
        return "case"
    if "".join(a) == "".join(b) or [variant(w) for w in a] == [variant(w) for w in b]:
        return "notation"
    if len(a) == len(b) == 1:
        return _of_words(one[0], other[0])
    values = [[v for w in side if (v := number_value(w)) is not None] for side in (a, b)]
    if values[0] and values[1]:
        return "notation" if values[0] == values[1] else "number"
    if any(w in NEGATIONS for w in a) != any(w in NEGATIONS for w in b):
        return "negation"
    if _initials(one, other) or _initials(other, one):
        return "abbreviation"
    if {stem(w) for w in a if w not in FUNCTION_WORDS} == {stem(w) for w in b if w not in FUNCTION_WORDS}:
        return "form" if any(w not in FUNCTION_WORDS for w in a) else "function"
    return "phrase"


def _of_words(one: str, other: str) -> str:
    a, b = matching_form(one).lower(), matching_form(other).lower()
    values = number_value(a), number_value(b)
    if None not in values:
        return "notation" if values[0] == values[1] else "number"
    if not any(map(str.isalnum, a + b)):
        return "punctuation"
    if (a in NEGATIONS) != (b in NEGATIONS):
        return "negation"
    if frozenset((a, b)) in NICKNAMES or (a.rstrip(".") and b.startswith(a.rstrip(".")) and a.endswith(".")):
        return "abbreviation"
    if a in FUNCTION_WORDS and b in FUNCTION_WORDS:
        return "function"
    if a in _PRONOUNS or b in _PRONOUNS:
        return "pronoun"
    if stem(a) == stem(b) or _lemma(a) & _lemma(b):
        return "form"
    from rapidfuzz.distance import JaroWinkler, Levenshtein

    close = min(len(a), len(b)) > 3 and Levenshtein.distance(a, b) <= max(1, min(len(a), len(b)) // 4)
    known = _in_wordnet(a, b)
    if known and not (close and known == "synonym"):  # harbour and harbor
        return known
    if close:
        return "spelling"
    return "form" if JaroWinkler.similarity(a, b) > 0.95 and min(len(a), len(b)) > 4 else "other"


def _lemma(word: str) -> set[str]:
    """The lemmas of a word in any part of speech, if WordNet is there."""
    from .. import resources

    if not resources.available("wordnet"):
        return {word}
    found = resources.wordnet().morphy_all([word] * 4, ["n", "v", "a", "r"])
    return {lemma for lemma in found if lemma} or {word}


def _in_wordnet(a: str, b: str) -> str | None:
    from .. import resources

    if not resources.available("wordnet"):
        return None
    both = [(x, y) for x in sorted({a} | _lemma(a)) for y in sorted({b} | _lemma(b))]
    related = resources.wordnet().related([(x, None) for x, _ in both], [(y, None) for _, y in both], depth=2)
    has = {name for name, found in related.items() if bool(found.any())}
    for name, says in (
        ("synonym", "synonym"), ("antonym", "antonym"), ("derived", "form"), ("hypernym", "general"),
        ("hyponym", "specific"), ("hypernym_deep", "general"), ("hyponym_deep", "specific"),
    ):  # fmt: skip
        if name in has:
            return says
    return "related" if has else None


def _initials(short: Sequence[str], full: Sequence[str]) -> bool:
    if len(short) != 1 or len(full) < 2:
        return False
    letters = short[0].replace(".", "").lower()
    return len(letters) > 1 and letters == "".join(w[0] for w in full if w[:1].isupper()).lower()
