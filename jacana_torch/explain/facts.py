"""What is true of two words: the clauses that a sentence may give as reasons.

A clause holds for the words of this pair, whatever the weights are. Those of single columns are in the
`.titles` files of the families, where `@name` stands for one of the MAKERS here. ALWAYS are clauses that need no
column: they name neighbours, candidates and links. Each clause belongs to a group of contributions; its text
begins with + if it supports a link, and with - if it opposes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..annotate.tokens import matching_form
from ..errors import JacanaError
from ..features.titles import Titles
from ..features.wordlists import FUNCTION_KINDS, stem, word_class
from ..types import Link, SentencePair

ALIKE, UNLIKE = 0.4, 0.2  # cosines of word vectors; between them, they say little
NOTABLE = 0.1  # probability from which an alternative is named
RUN, SHOWN = 3, 5  # words of a run: the least that make one, and the most that are quoted
_TAGS = {
    "NNP": "name", "NN": "noun", "VB": "verb", "MD": "modal verb", "JJ": "adjective", "RB": "adverb",
    "IN": "preposition", "DT": "determiner", "PRP": "pronoun", "CD": "number",
}  # fmt: skip
_CONTENT = ("number", "name", "content")
Heads = Callable[[], tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True)
class Facts:
    """Two words of a pair, and what is known of them.

    `values`       the columns of their cell that are not 0.
    `links`        those of the alignment.
    `competitors`  of either word: the word, its most probable other candidate, and the probabilities of that one
                   and of the link.
    `unlinked`     of either word: the word, and the probability that it has no link.
    `heads`        finds the heads of all words in the approximate parse (-1: none).
    `surer`        whether another link of either word is more probable than this one.
    """

    pair: SentencePair
    link: Link
    values: Mapping[str, float]
    links: frozenset[Link] = frozenset()
    competitors: Sequence[tuple[str, str, float, float]] = ()
    unlinked: Sequence[tuple[str, float]] = ()
    heads: Heads | None = field(default=None, repr=False)
    surer: bool = False

    @property
    def tokens(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.pair.source.tokens, self.pair.target.tokens

    @property
    def words(self) -> tuple[str, str]:
        return self.at(0)

    def at(self, step: int) -> tuple[str, str]:
        """Return the words so many places to the right of both."""
        (s, t), (i, j) = self.tokens, self.link
        return s[i + step], t[j + step]

    def inside(self, step: int) -> bool:
        (s, t), (i, j) = self.tokens, self.link
        return 0 <= i + step < len(s) and 0 <= j + step < len(t)

    def identical(self, step: int) -> bool:
        """Whether the words so many places to the right of both are the same, capitals aside."""
        return self.inside(step) and _same(*self.at(step))


Maker = Callable[[Facts, float], str]


def clauses(facts: Facts, titles: Titles) -> dict[str, list[list[str]]]:
    """Return the clauses of each group, by what they are about; of each such list, the first says most."""
    found: list[tuple[str, int, str]] = []
    for column, value in facts.values.items():
        title = titles[column]
        if title.clause and (text := _filled(title.clause, facts, value)):
            found.append((title.group, title.rank, text))
    of_columns: dict[str, list[str]] = {}
    for group, _, text in sorted(found):
        of_columns.setdefault(group, []).append(text)
    groups = {group: [list(make(facts)) for make in makers] for group, makers in ALWAYS.items()}
    for group, texts in of_columns.items():
        groups.setdefault(group, [[]])[0].extend(texts)
    return groups


def _filled(clause: str, facts: Facts, value: float) -> str:
    if clause.startswith("@"):
        if clause[1:] not in MAKERS:
            raise JacanaError(f"a .titles file has the clause {clause}; there are @{', @'.join(MAKERS)}")
        return MAKERS[clause[1:]](facts, value)
    one, other = facts.words
    return clause.format(a=one, b=other)


def percent(share: float) -> str:
    """Write a probability as a person reads it: only 0 and 1 are 0 % and 100 %."""
    if 0 < share < 0.0001:
        return "under 0.01 %"
    if 0.9999 < share < 1:
        return "over 99.99 %"
    return f"{100 * share:.{1 if 0.0005 <= share <= 0.9995 else 2}f} %"


def quoted(word: str | None) -> str:
    return "no link" if word is None else f"“{word}”"


def _same(one: str, other: str) -> bool:
    return matching_form(one).lower() == matching_form(other).lower()


# Clauses of columns


def _same_word(facts: Facts, value: float) -> str:
    kind = word_class(facts.words[0])
    return {"punct": "+ the same punctuation", "number": "+ the same number"}.get(kind, "+ the same word")


def _stem(facts: Facts, value: float) -> str:
    """Two words that the column `same_word` takes for one: the stem, its beginning, or parts with hyphens."""
    one, other = (matching_form(word).lower() for word in facts.words)
    stems = stem(one), stem(other)
    if _same(one, other):
        return ""
    if stems[0] == stems[1]:
        return "+ the same stem"
    if stems[0].startswith(stems[1]) or stems[1].startswith(stems[0]):
        return "+ one stem begins the other"
    return "+ they share a part of a hyphenated word"


def _cosine(facts: Facts, value: float) -> str:
    if value >= ALIKE:
        return f"+ similar word vectors (cosine {value:.2f})"
    return f"- their word vectors differ (cosine {value:.2f})" if value < UNLIKE else ""


def _heads(facts: Facts, value: float) -> str:
    """The heads of both words, which the columns `head_same`, `head_similar` and `head_differs` compare."""
    if facts.heads is None:
        return ""
    heads = [side[place] for side, place in zip(facts.heads(), facts.link, strict=True)]
    if min(heads) < 0:
        return ""
    one, other = (side[head] for side, head in zip(facts.tokens, heads, strict=True))
    if _same(one, other):
        return f"+ the same head, {quoted(one)} (approximate parse)"
    if "attachment.head_similar" in facts.values:
        return f"+ similar heads, {quoted(one)} and {quoted(other)} (approximate parse)"
    return f"- their heads differ, {quoted(one)} and {quoted(other)} (approximate parse)"


def _nearest(facts: Facts, value: float) -> str:
    return "" if facts.identical(0) else "+ each other's nearest word by word vectors"


MAKERS: dict[str, Maker] = {
    "same_word": _same_word, "stem": _stem, "cosine": _cosine, "nearest": _nearest, "heads": _heads,
}  # fmt: skip


# Clauses of the words around


def _neighbours(facts: Facts) -> Iterator[str]:
    before, after = facts.identical(-1), facts.identical(1)
    run = _run(facts)
    if facts.identical(0) and run[1] - run[0] >= RUN:
        i = facts.link[0]
        first, end = max(run[0], -SHOWN // 2 + 1), min(run[1], SHOWN // 2 + 1)
        yield f"+ both in {quoted(' '.join(facts.tokens[0][i + first : i + end]))}"
    elif before and after:
        yield f"+ both between {quoted(facts.at(-1)[0])} and {quoted(facts.at(1)[0])}"
    elif before or after:
        yield f"+ both {'after' if before else 'followed by'} {quoted(facts.at(-1 if before else 1)[0])}"
    alike = [step for step in (-1, 1) if facts.inside(step) and _alike(facts, step)]
    for step in alike:
        one, other = facts.at(step)
        if not _same(one, other):
            how = "similar" if f"context.{_side(step)}1_similar" in facts.values else "related"
            yield f"+ {'after' if step < 0 else 'before'} the {how} words {quoted(one)} and {quoted(other)}"
    yield from _content_words(facts)
    if not alike and any(map(facts.inside, (-1, 1))):
        yield "- the words next to them differ"


def _run(facts: Facts) -> tuple[int, int]:
    """Return where the run of identical words around the two begins, and where it ends, counted from them."""
    first, end = 0, 1
    while facts.identical(first - 1):
        first -= 1
    while facts.identical(end):
        end += 1
    return first, end


def _side(step: int) -> str:
    return "left" if step < 0 else "right"


def _alike(facts: Facts, step: int) -> bool:
    columns = (f"context.{_side(step)}1_similar", f"wordnet.near_{step:+d}")
    return facts.identical(step) or any(column in facts.values for column in columns)


def _content_words(facts: Facts) -> Iterator[str]:
    """The next content words on either side of both."""
    for step, side in ((-1, "before"), (1, "after")):
        found = []
        for tokens, place in zip(facts.tokens, facts.link, strict=True):
            some = tokens[place + 1 :] if step > 0 else tokens[:place][::-1]
            found.append(next((word for word in some if word_class(matching_form(word)) in _CONTENT), None))
        one, other = found
        if one is None or other is None:
            continue
        if _same(one, other):
            yield f"+ {quoted(one)} is the nearest content word {side} both"
        for family, how in (("context", "similar"), ("wordnet", "related")):
            if not _same(one, other) and f"{family}.{_side(step)}_anchor_similar" in facts.values:
                yield f"+ the nearest content words {side} them are {how}, {quoted(one)} and {quoted(other)}"


def _candidates(facts: Facts) -> Iterator[str]:
    if (
        facts.competitors
        and not facts.surer
        and all(own > probability for *_, probability, own in facts.competitors)
    ):
        yield "+ no better candidate"
    for word, other, probability, own in sorted(facts.competitors, key=lambda competitor: -competitor[2]):
        if probability > own:
            yield f"- {quoted(word)} goes better with {quoted(other)} ({percent(probability)})"
        elif probability >= NOTABLE:
            yield f"- {quoted(other)} is another candidate for {quoted(word)} ({percent(probability)})"


def _order(facts: Facts) -> Iterator[str]:
    """Links beside this one, unless their words are named as neighbours, and links that it crosses."""
    i, j = facts.link
    for step, side in ((-1, "after"), (1, "before")):
        if (i + step, j + step) in facts.links and not _alike(facts, step):
            one, other = facts.at(step)
            yield f"+ right {side} the link {quoted(one)} ↔ {quoted(other)}"
    crossed = [(a, b) for a, b in facts.links if (a - i) * (b - j) < 0]
    if crossed:
        a, b = min(crossed, key=lambda link: (abs(link[0] - i) + abs(link[1] - j), link))
        crosses = "it crosses the link" if facts.link in facts.links else "it would cross the link"
        yield f"- {crosses} {quoted(facts.tokens[0][a])} ↔ {quoted(facts.tokens[1][b])}"


def _unlinked(facts: Facts) -> Iterator[str]:
    for word, probability in sorted(facts.unlinked, key=lambda one: -one[1]):
        if probability >= NOTABLE:
            how = "probably has" if probability > 0.5 else "may have"
            yield f"- {quoted(word)} {how} no link ({percent(probability)})"


def _classes(facts: Facts) -> Iterator[str]:
    one, other = (_class(facts, side) for side in (0, 1))
    tagged = "tagged as " * ("pos" in facts.pair.source.layers)
    if one and one == other and not facts.identical(0):
        yield f"+ both {tagged}{one[:-1]}ies" if one.endswith("y") else f"+ both {tagged}{one}s"
    elif one and other and one != other:
        yield f"- {tagged}{one} and {other}"


def _class(facts: Facts, side: int) -> str:
    """Return the part of speech of a word by its tag; without tags, the kind of a function word."""
    sentence, place = (facts.pair.source, facts.pair.target)[side], facts.link[side]
    if "pos" in sentence.layers:
        tag = str(sentence.layers["pos"][place])
        return next((name for start, name in _TAGS.items() if tag.startswith(start)), "")
    lower = matching_form(sentence.tokens[place]).lower()
    return next((name for name, words in FUNCTION_KINDS.items() if lower in words), "")


ALWAYS: dict[str, tuple[Callable[[Facts], Iterator[str]], ...]] = {
    "context": (_neighbours, _candidates),
    "word order": (_order,),
    "no link instead": (_unlinked,),
    "word classes": (_classes,),
}
