"""What an aligner gets wrong, as a table: which kinds of links are missed, which invented. Markdown on stdout.

    python scripts/errors.py gold.jsonl predicted.jsonl
    python scripts/errors.py --train experiment=msr cv=5      # as `jacana-torch train` takes it

A link is of every kind whose condition it meets. `missed` are gold links that were not found, `invented` are links
that gold does not have; `would be exact` counts the pairs all of whose mistakes are of that one kind. WordNet and
PPDB are asked where they are installed, tags come with the corpus or from NLTK's tagger.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from jacana_torch import corpora, resources  # noqa: E402
from jacana_torch.annotate.lemmas import wordnet_pos  # noqa: E402
from jacana_torch.annotate.normalise import matching_form  # noqa: E402
from jacana_torch.errors import CorpusError, JacanaError  # noqa: E402
from jacana_torch.features.wordlists import stem, word_class  # noqa: E402
from jacana_torch.types import Alignment, Example, Link, SentencePair  # noqa: E402

TAGS = {"NN": "noun", "VB": "verb", "JJ": "adjective", "RB": "adverb", "IN": "preposition", "TO": "preposition",
        "DT": "determiner", "PR": "pronoun", "CD": "number", "MD": "auxiliary", "CC": "conjunction"}  # fmt: skip


@dataclass
class Case:
    """One pair with the gold links, those that were found, and what the words of any two tokens are."""

    pair: SentencePair
    gold: frozenset[Link]
    found: frozenset[Link]
    related: frozenset[Link] = frozenset()
    paraphrases: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        self.words = tuple(
            [matching_form(t) for t in side.tokens] for side in (self.pair.source, self.pair.target)
        )
        self.lower = tuple([w.lower() for w in side] for side in self.words)
        self.classes = tuple([word_class(w) for w in side] for side in self.words)

    def same(self, link: Link) -> bool:
        return self.lower[0][link[0]] == self.lower[1][link[1]]

    def alike(self, link: Link) -> bool:
        """The same word in another form: by stem, or by lemma where there are lemmas."""
        i, j = link
        if self.same(link):
            return False
        lemmas = [side.layers.get("lemma") for side in (self.pair.source, self.pair.target)]
        by_lemma = None not in lemmas and lemmas[0][i].lower() == lemmas[1][j].lower()  # type: ignore[index]
        return by_lemma or stem(self.lower[0][i]) == stem(self.lower[1][j])

    def is_class(self, link: Link, name: str) -> bool:
        return all(self.classes[side][k] == name for side, k in enumerate(link))

    @cached_property
    def repeated(self) -> tuple[Counter, Counter]:
        return Counter(self.lower[0]), Counter(self.lower[1])

    def beside(self, link: Link) -> bool:
        """Whether one of the two words has another link of the same origin."""
        own = self.gold if link in self.gold else self.found
        return any((i == link[0]) != (j == link[1]) for i, j in own)

    def in_phrase(self, link: Link) -> bool:
        """Whether both words have other links of the same origin: a phrase that was aligned as a whole."""
        own = self.gold if link in self.gold else self.found
        return any(i == link[0] and j != link[1] for i, j in own) and any(
            j == link[1] and i != link[0] for i, j in own
        )

    def in_sequence(self, link: Link) -> bool:
        i, j = link
        return any((i + d, j + d) in self.gold and self.same((i + d, j + d)) for d in (-1, 1))

    def tags(self, link: Link) -> tuple[str, str] | None:
        layers = [side.layers.get("pos") for side in (self.pair.source, self.pair.target)]
        if None in layers:
            return None
        return tuple(TAGS.get(layers[side][k][:2], "other") for side, k in enumerate(link))  # type: ignore


def _class(name: str) -> Callable[[Case, Link], bool]:
    return lambda case, link: case.is_class(link, name)


def _mixed(case: Case, link: Link) -> bool:
    return case.classes[0][link[0]] != case.classes[1][link[1]] and (
        "function" in (case.classes[0][link[0]], case.classes[1][link[1]])
    )


def _evident(case: Case, link: Link) -> bool:
    return case.same(link) or case.alike(link) or link in case.related or link in case.paraphrases


def _repeated(case: Case, link: Link) -> bool:
    sides = case.repeated
    return case.same(link) and max(side[case.lower[0][link[0]]] for side in sides) > 1


def _elsewhere(case: Case, link: Link) -> tuple[bool, bool]:
    """Whether either word has links on the other side of the comparison."""
    other = case.found if link in case.gold else case.gold
    return any(i == link[0] for i, _ in other), any(j == link[1] for _, j in other)


Kinds = dict[str, Callable[[Case, Link], bool]]
GROUPS: dict[str, Kinds] = {
    "The words": {
        "punctuation": _class("punct"),
        "function words": _class("function"),
        "a function word and another": _mixed,
        "names": _class("name"),
        "numbers": _class("number"),
        "content words": _class("content"),
        "other classes together": lambda c, x: c.classes[0][x[0]] != c.classes[1][x[1]] and not _mixed(c, x),
    },
    "What shows that they belong together": {
        "the same word, once a side": lambda c, x: c.same(x) and not _repeated(c, x),
        "the same word, which is repeated": _repeated,
        "another form of the word": lambda c, x: c.alike(x),
        "WordNet relates them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.related,
        "PPDB pairs them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.paraphrases,
        "only PPDB pairs them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.paraphrases - c.related,
        "no lexical evidence": lambda c, x: not _evident(c, x),
        "no lexical evidence, content words or names": lambda c, x: (
            not _evident(c, x) and {c.classes[0][x[0]], c.classes[1][x[1]]} <= {"content", "name"}
        ),
    },
    "The company": {
        "beside the same words": lambda c, x: c.in_sequence(x),
        "one of several links of a word": lambda c, x: c.beside(x),
        "inside a phrase": lambda c, x: c.in_phrase(x),
    },
    "What happened instead": {
        "both words without a link": lambda c, x: _elsewhere(c, x) == (False, False),
        "the source word linked elsewhere": lambda c, x: _elsewhere(c, x) == (True, False),
        "the target word linked elsewhere": lambda c, x: _elsewhere(c, x) == (False, True),
        "both linked elsewhere": lambda c, x: _elsewhere(c, x) == (True, True),
    },
}


def _by_tag() -> Kinds:
    def of(name: str) -> Callable[[Case, Link], bool]:
        return lambda case, link: (tags := case.tags(link)) is not None and set(tags) == {name}

    kinds = {f"both {name}": of(name) for name in dict.fromkeys([*TAGS.values(), "other"])}
    kinds["different parts of speech"] = lambda case, link: (t := case.tags(link)) is not None and t[0] != t[1]
    return kinds


GROUPS["Parts of speech"] = _by_tag()


@dataclass
class Count:
    """Of one kind: gold links, those missed, those invented, and pairs that have no other mistakes."""

    gold: int = 0
    missed: int = 0
    invented: int = 0
    exact: int = 0


def count(cases: Sequence[Case], kind: Callable[[Case, Link], bool]) -> Count:
    total = Count()
    for case in cases:
        missed, invented = case.gold - case.found, case.found - case.gold
        bad_missed, bad_invented, gold = (sum(kind(case, x) for x in y) for y in (missed, invented, case.gold))
        total.gold += gold
        total.missed += bad_missed
        total.invented += bad_invented
        total.exact += 0 < len(missed) + len(invented) == bad_missed + bad_invented
    return total


def report(title: str, cases: Sequence[Case]) -> str:
    """The tables of one corpus."""
    every = count(cases, lambda case, link: True)
    exact = sum(case.gold == case.found for case in cases)
    out = [
        f"### {title}\n",
        f"{len(cases)} pairs, {exact} of them exact; {every.gold} gold links, {every.missed} missed, "
        f"{every.invented} invented.\n",
    ]
    head = "| {} | gold links | missed | % of kind | % of all missed | invented | % of all invented | would be exact |"
    for group, kinds in GROUPS.items():
        rows = [(name, count(cases, kind)) for name, kind in kinds.items()]
        rows = [(name, c) for name, c in rows if c.gold or c.missed or c.invented]
        if not rows:
            continue
        out += [head.format(group), "|---|---:|---:|---:|---:|---:|---:|---:|"]
        for name, c in rows:
            shares = _share(c.missed, c.gold), _share(c.missed, every.missed), _share(c.invented, every.invented)
            out.append(
                f"| {name} | {c.gold} | {c.missed} | {shares[0]} | {shares[1]} | {c.invented} | {shares[2]} "
                f"| {c.exact} |"
            )
        out.append("")
    return "\n".join([*out, _mistakes(cases)])


def _mistakes(cases: Sequence[Case]) -> str:
    """How many mistakes the pairs have."""
    sizes = Counter(min(len(case.gold ^ case.found), 6) for case in cases)
    names = [str(k) if k < 6 else "6 or more" for k in range(7)]
    return "\n".join(
        [
            f"| mistakes in a pair | {' | '.join(names)} |",
            f"|---|{'---:|' * 7}",
            f"| pairs | {' | '.join(str(sizes[k]) for k in range(7))} |",
            "",
        ]
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


# Cases


def cases_of(examples: Sequence[Example], found: Sequence[Alignment]) -> list[Case]:
    """Pairs with what WordNet and PPDB say of the words of their links."""
    cases = []
    for example, alignment in zip(examples, found, strict=True):
        assert example.gold is not None
        cases.append(Case(example.pair, frozenset(example.gold.sure), frozenset(alignment.sure)))
    links = [(case, link) for case in cases for link in case.gold | case.found]
    for name, ask in (("related", _wordnet), ("paraphrases", _ppdb)):
        yes = ask(links) if links else []
        own: dict[int, set[Link]] = {}
        for (case, link), found_it in zip(links, yes, strict=False):
            if found_it:
                own.setdefault(id(case), set()).add(link)
        for case in cases:
            setattr(case, name, frozenset(own.get(id(case), ())))
    return cases


def _wordnet(links: Sequence[tuple[Case, Link]]) -> Iterable[bool]:
    if not resources.available("wordnet") or any(case.tags(link) is None for case, link in links):
        logging.warning("WordNet or the tags are not there: the table says nothing of WordNet's relations")
        return []
    queries: dict[tuple[str, str | None], int] = {}
    numbers = []
    for case, link in links:
        for side, k in zip((case.pair.source, case.pair.target), link, strict=True):
            query = (str(side.layer("lemma")[k]).lower(), wordnet_pos(side.layer("pos")[k]))
            numbers.append(queries.setdefault(query, len(queries)))
    left, right = np.array(numbers[::2]), np.array(numbers[1::2])
    columns = resources.wordnet().related_both_ways(list(queries), left, right, 3)[0]
    return np.logical_or.reduce([v for k, v in columns.items() if k not in ("antonym", "sister")])


def _ppdb(links: Sequence[tuple[Case, Link]]) -> Iterable[bool]:
    if not resources.available("mwa-ppdb"):
        logging.warning("PPDB is not there: the table says nothing of it")
        return []
    words = [(case.lower[0][i], case.lower[1][j]) for case, (i, j) in links]
    return resources.ppdb().contains([a for a, _ in words], [b for _, b in words])


def from_files(gold: str, predicted: str) -> tuple[list[Example], list[Alignment]]:
    examples, answers = (list(corpora.read(name)) for name in (gold, predicted))
    if len(examples) != len(answers):
        raise CorpusError(f"{len(answers)} answers for the {len(examples)} pairs of {gold}", predicted)
    for one, other in zip(examples, answers, strict=True):
        if one.gold is None or other.gold is None or (one.gold.n_source, one.gold.n_target) != (
            other.gold.n_source, other.gold.n_target,
        ):  # fmt: skip
            raise CorpusError(f"not the links of {str(one.pair.source)[:60]!r}", predicted)
    return examples, [other.gold for other in answers if other.gold is not None]


def from_cv(overrides: Sequence[str]) -> tuple[list[Example], dict[str, list[Alignment]]]:
    """A cross-validation of what `jacana-torch train OVERRIDES` would train."""
    from hydra import compose, initialize_config_dir

    from jacana_torch import experiment, persist, training
    from jacana_torch.run import conf_directory, plain

    with initialize_config_dir(version_base="1.3", config_dir=str(conf_directory())):
        cfg = training.checked(plain(compose("train", list(overrides))), ())
    run = training.Run(cfg, Path("."), list(overrides))
    model = persist.build(run.model_config)
    data = training.annotated(model, training.examples_of(run), run.sidecar)
    make = lambda: persist.build(run.model_config["aligner"])  # noqa: E731
    scores, found = experiment.cross_validate(make, data.train, cfg["cv"] or 5, cfg["seed"], cfg["links"])
    logging.info("%s", experiment.table(scores))
    return data.train, found


def tagged(examples: Sequence[Example]) -> list[Example]:
    """With tags and lemmas, where they are not there and can be had."""
    from jacana_torch.annotate.nltk import NltkAnnotator

    if not (resources.available("tagger") and resources.available("wordnet")):
        return list(examples)
    pairs = NltkAnnotator()([example.pair for example in examples])
    return [replace(example, pair=pair) for example, pair in zip(examples, pairs, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="+", metavar="GOLD PREDICTED | OVERRIDE")
    parser.add_argument("--train", action="store_true", help="cross-validate what the overrides describe")
    parser.add_argument("--which", help="the direction or symmetrizer, of a cross-validation (default: the best)")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if options.train:
            examples, by_name = from_cv(options.arguments)
            title = f"`{' '.join(options.arguments)}`"
            name = options.which or next(iter(by_name))
            sys.stdout.write(report(f"{title}, {name}", cases_of(tagged(examples), by_name[name])) + "\n")
        elif len(options.arguments) == 2:
            examples, found = from_files(*options.arguments)
            sys.stdout.write(report(Path(options.arguments[1]).name, cases_of(tagged(examples), found)) + "\n")
        else:
            parser.error("two files, gold and predicted; or --train and what `jacana-torch train` takes")
    except JacanaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
