"""Names and acronyms against plain Python, every column of every cell."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jacana_torch.errors import MissingLayer
from jacana_torch.features.families.ner import Ner
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.features.name_spans import acronym_letters, entity_spans, name_spans
from jacana_torch.types import Sentence, SentencePair

WORDS = "Ann Lee Bank of Norland N.B. BN the met in Bay , gross domestic product GDP BoN Lee".split()
TYPES = ["PERSON", "ORG", "PER-DESC"]


def random_sentence(rng: random.Random) -> Sentence:
    labels, tokens = [], [rng.choice(WORDS) for _ in range(rng.randint(1, 8))]
    for _ in tokens:
        inside = labels and labels[-1] != "O" and rng.random() < 0.4
        labels.append("I" + labels[-1][1:] if inside else rng.choice(["O", "O", f"B-{rng.choice(TYPES)}"]))
    return Sentence(tuple(tokens), {"ner": labels})


def random_pairs(seed: int, count: int = 10) -> list[SentencePair]:
    rng = random.Random(seed)
    return [SentencePair(random_sentence(rng), random_sentence(rng)) for _ in range(count)]


def written_out(blocks) -> list[dict[str, float]]:
    names = [name for block in blocks for name in block.names]
    assert len(names) == len(set(names))
    table = np.hstack([block.dense() for block in blocks])
    assert np.isfinite(table).all() and set(np.unique(table)) <= {0.0, 1.0}
    return [{names[i]: 1.0 for i in np.flatnonzero(row)} for row in table]


class Twin:
    """One pair; `spans[prefix][side]` lists the positions of each span."""

    def __init__(self, pair: SentencePair) -> None:
        self.pair = pair
        self.words = [[t.lower() for t in s.tokens] for s in (pair.source, pair.target)]
        self.labels = [s.layer("ner") for s in (pair.source, pair.target)]
        self.spans = {"entity": [self.entities(x) for x in self.labels],
                      "name": [self.names(s.tokens) for s in (pair.source, pair.target)]}  # fmt: skip

    @staticmethod
    def entities(labels) -> list[list[int]]:
        out: list[list[int]] = []
        for i, label in enumerate(labels):
            if label[0] == "B":
                out.append([i])
            elif label[0] == "I":
                out[-1].append(i)
        return out

    @staticmethod
    def names(tokens) -> list[list[int]]:
        """Grown from each capitalised word as far as capitalised words and linking words before one reach."""
        capital = [t[0].isupper() and t.lower() not in ("the", "in", "of") for t in tokens]
        out: list[list[int]] = []
        i = 0
        while i < len(tokens):
            if not capital[i]:
                i += 1
                continue
            end, j = i, i + 1
            while j < len(tokens) and (capital[j] or tokens[j] in ("of", "the", "in")):
                end = j if capital[j] else end
                j += 1
            out.append(list(range(i, end + 1)))
            i = end + 1
        return out

    def span(self, prefix: str, side: int, i: int) -> list[int] | None:
        return next((span for span in self.spans[prefix][side] if i in span), None)

    def cell(self, m: int, n: int) -> set[str]:
        out = {f"acronym.{kind}" for kind in self.acronym(m, n)}
        a, b = (x[i].split("-", 1)[1] if x[i] != "O" else "" for x, i in zip(self.labels, (m, n), strict=True))
        if a and b:
            out.add("type.same" if a == b else "type.different")
        if a or b:
            out.add(f"type.{a or 'O'}2{b or 'O'}")
        same = self.words[0][m] == self.words[1][n]
        for prefix in self.spans:
            s, t = self.span(prefix, 0, m), self.span(prefix, 1, n)
            if (s is None) != (t is None):
                out.add(f"{prefix}.one")
            if s is None or t is None:
                continue
            left, right = {self.words[0][i] for i in s}, {self.words[1][j] for j in t}
            out.add(f"{prefix}.both")
            if m == s[-1] and n == t[-1]:
                out.add(f"{prefix}.both_last")
            if not left & right:
                out.add(f"{prefix}.shares_nothing")
                continue
            out.add(f"{prefix}.shares_word.identical" if same else f"{prefix}.shares_word")
            if left == right:
                out.add(f"{prefix}.same_words")
            elif left < right or right < left:
                out.add(f"{prefix}.partial")
        return out

    def acronym(self, m: int, n: int) -> set[str]:
        kinds = set()
        for side, (i, j) in ((0, (m, n)), (1, (n, m))):
            letters = {"N.B.": "NB", "BN": "BN", "GDP": "GDP"}.get(
                (self.pair.source, self.pair.target)[side].tokens[i]
            )
            if letters:
                kinds |= self.stands_for(letters, 1 - side, j)
        return kinds

    def stands_for(self, letters: str, side: int, j: int) -> set[str]:
        words = self.words[side]
        skipped = ("of", "the", "in")
        named = [
            [i for i in span if words[i] not in skipped] for spans in self.spans.values() for span in spans[side]
        ]
        whole, part = set(), set()
        for run in named:
            initials = "".join(words[i][0] for i in run if words[i] != ",").upper()
            places = [i for i in run if words[i] != ","]
            for at in range(len(initials)):
                if initials[at : at + len(letters)] == letters:
                    (whole if initials == letters else part).update(places[at : at + len(letters)])
        if j in whole:
            return {"whole"}
        if j in part:
            return {"part"}
        if letters == "GDP":
            run: list[int] = []
            for i in range(len(words) + 1):
                if i < len(words) and words[i] != ",":
                    run += [i] if words[i] not in skipped else []
                    continue
                initials = "".join(words[k][0] for k in run).upper()
                for at in range(len(initials)):
                    if initials[at : at + 3] == letters and j in run[at : at + 3]:
                        return {"ordinary"}
                run = []
        return set()

    def null(self, m: int) -> set[str]:
        columns = range(len(self.words[1]))
        out = {"acronym.found"} if any(self.acronym(m, n) for n in columns) else set()
        if self.labels[0][m] != "O":
            out.add("type." + self.labels[0][m][2:])
        found = self.words[0][m] in self.words[1]
        for prefix in self.spans:
            s = self.span(prefix, 0, m)
            mine = {self.words[0][i] for i in s or ()}
            shared = any(mine & {self.words[1][j] for j in t} for t in self.spans[prefix][1])
            facts = {"inside": s, "inside.missing": s and not found, "rest_of_shared": shared and not found,
                     "none_shared": s and not shared}  # fmt: skip
            out |= {f"{prefix}.{name}" for name, fact in facts.items() if fact}
        return out


@pytest.mark.parametrize("seed", range(12))
def test_every_column_of_every_cell_equals_the_twin(seed):
    pairs = random_pairs(seed)
    grid = Grid(pairs)
    blocks = Ner()(grid)
    link, null = written_out(blocks.link), written_out(blocks.null)
    twins = [Twin(pair) for pair in pairs]
    for c in range(grid.n_cells):
        assert set(link[c]) == twins[grid.pair[c]].cell(int(grid.m[c]), int(grid.n[c]))
    for t in range(len(grid.source_pair)):
        assert set(null[t]) == twins[grid.source_pair[t]].null(int(grid.source_position[t]))


def test_features_do_not_depend_on_the_batch():
    pairs = random_pairs(77)
    together, start = written_out(Ner()(Grid(pairs)).link), 0
    for pair in pairs:
        alone = written_out(Ner()(Grid([pair])).link)
        assert together[start : start + len(alone)] == alone
        start += len(alone)


def cells(source: str, target: str, column: str) -> set[tuple[int, int]]:
    grid = Grid([SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))])
    values = written_out(Ner(entities=False)(grid).link)
    return {(int(grid.m[c]), int(grid.n[c])) for c in range(grid.n_cells) if column in values[c]}


@pytest.mark.parametrize("short", ["U.N.", "UN", "U.N", "UNs"])
def test_acronyms_meet_each_word_they_stand_for_in_both_directions(short):
    text = "envoys of the United Nations left"
    assert cells(f"the {short} left", text, "acronym.whole") == {(1, 3), (1, 4)}
    assert cells(text, f"the {short} left", "acronym.whole") == {(3, 1), (4, 1)}


def test_acronyms_leave_linking_words_out_and_need_no_capitals_when_long():
    assert cells("the BoE NATO", "Bank of England", "acronym.whole") == set()
    assert cells("a FBI agent", "Federal Bureau of Investigation agent", "acronym.whole") == {
        (1, 0),
        (1, 1),
        (1, 3),
    }
    assert cells("GDP grew", "gross domestic product grew", "acronym.ordinary") == {(0, 0), (0, 1), (0, 2)}
    assert cells("IT grew", "inner tubes grew", "acronym.ordinary") == set()
    assert cells("the AP", "Big Apple Press Agency", "acronym.part") == {(1, 1), (1, 2)}


def test_a_word_of_a_whole_name_is_not_also_of_a_part():
    labels = ["O", "B-ORG", "I-ORG", "I-ORG"]  # the entity goes on where the capitals end
    long = Sentence(("of", "Grain", "Trust", "members"), {"ner": labels})
    short = Sentence(("GT",), {"ner": ["O"]})
    found = written_out(Ner()(Grid([SentencePair(short, long)])).link)
    assert [sorted(k for k in cell if k.startswith("acronym")) for cell in found] == [
        [], ["acronym.whole"], ["acronym.whole"], []
    ]  # fmt: skip


def test_names_that_share_a_word():
    shared = cells("Mr. Osei spoke", "Kofi Osei spoke", "name.shares_word")
    assert shared == {(0, 0), (0, 1), (1, 0)}
    assert cells("Osei spoke", "Kofi Osei spoke", "name.partial") == {(0, 0), (0, 1)}


def test_spans():
    assert entity_spans(["O", "B-A", "I-A", "I-B", "O", "I-A", "B-A", "B-A"]) == [
        (1, 3),
        (3, 4),
        (5, 6),
        (6, 7),
        (7, 8),
    ]
    assert entity_spans([]) == []
    assert name_spans("The Bank of the North , He said Ann of".split()) == [(1, 5), (8, 9)]
    letters = [acronym_letters(t) for t in ("U.S.", "NATO", "I", "Mr.", "U.S.A", "MPs", "a.m.", "A.", "")]
    assert letters == ["US", "NATO", "", "", "USA", "MP", "", "", ""]


def test_entities_are_read_only_if_asked_for():
    pair = SentencePair(Sentence(("Ann",)), Sentence(("Ann",)))
    assert Ner().requires == ("ner",) and Ner(entities=False).requires == ()
    assert "name.same_words" in written_out(Ner(entities=False)(Grid([pair])).link)[0]
    with pytest.raises(MissingLayer, match="ner"):
        Ner()(Grid([pair]))


def test_empty_sentences_and_an_empty_grid():
    empty, full = Sentence((), {"ner": ()}), random_pairs(1)[0]
    for pairs in ([], [SentencePair(empty, empty)], [SentencePair(full.source, empty), full]):
        batch = FeatureSet({"ner": Ner()})(pairs)
        assert all(len(b.dense()) == sum(len(p.source) * len(p.target) for p in pairs) for b in batch.link)
