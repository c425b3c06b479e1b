"""Invented pairs for the view page, some with words that look like HTML, and readers of what the page shows."""

from __future__ import annotations

from jacana_torch import Alignment, Example, Sentence, SentencePair

ATTACK = "<img src=x onerror=alert(1)>"
BREAKOUT = "</script><script>document.title='broken'</script>"


def example(
    source: str, target: str, sure: set, possible: set = frozenset(), id: str | None = None, confidence=None
) -> Example:
    one, other = Sentence(tuple(source.split())), Sentence(tuple(target.split()))
    gold = Alignment(len(one), len(other), frozenset(sure), frozenset(possible), confidence or {})
    return Example(SentencePair(one, other, id), gold)


# (source, target, gold sure, gold possible, predicted sure)
STORIES = (
    ("Our cat sleeps", "A cat is asleep", {(1, 1), (2, 3)}, {(2, 2)}, {(1, 1), (2, 3)}),
    ("Nina sold her boat", "The boat was sold by Nina", {(0, 5), (1, 3), (3, 1)}, set(), {(0, 5), (1, 3), (2, 0)}),
    ("It rains", "Rain falls on the quiet harbour town", {(1, 0)}, {(1, 1)}, {(0, 5)}),
    ("Nothing here", "Something else", set(), set(), set()),
)


def stories() -> tuple[list[Example], list[Alignment]]:
    """Four pairs: exact; two correct, a missed and a spurious link; a missed and a spurious link; no links."""
    gold, predicted = [], []
    for number, (source, target, sure, possible, found) in enumerate(STORIES, start=1):
        gold.append(example(source, target, sure, possible, f"story-{number}"))
        confidence = {link: 0.3 if number > 1 and link[0] != link[1] else 0.95 for link in found}
        predicted.append(example(source, target, found, confidence=confidence).gold)
    return gold, predicted


def attacked() -> Example:
    """Tokens that look like HTML or a placeholder, one with a space, and an empty one."""
    source, target = Sentence((ATTACK, BREAKOUT, "a b")), Sentence((BREAKOUT, "&lt;", "{{data}}", ""))
    pair = SentencePair(source, target, ATTACK)
    return Example(pair, Alignment(3, 4, frozenset({(0, 0), (1, 1), (2, 2)})))


def many(number: int) -> list[Example]:
    words = "the old bridge over that river was closed to all traffic for repairs in the spring".split()
    out = []
    for k in range(number):
        tokens = words[: 4 + k % 12]
        links = {(i, (i + k) % len(tokens)) for i in range(len(tokens))}
        out.append(example(" ".join(tokens), " ".join(tokens), links, id=f"pair-{k}"))
    return out


def ids(view) -> list[str]:
    return view.locator("article .id").all_inner_texts()


def kinds(article) -> dict[str, int]:
    return {kind: article.locator(f".part.{kind}").count() for kind in ("hit", "miss", "invention", "aside")}
