"""The dependency family against a slow twin in plain Python, which walks every cell of small random trees."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jacana_torch.errors import JacanaError, MissingLayer
from jacana_torch.features.api import Block
from jacana_torch.features.dependency_relations import canonical
from jacana_torch.features.families.dependency import Dependency
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

WORDS = ["the", "The", "cat", "cats", "of", "on", "Rome", "saw", "seen", ",", "by", "teacher", "teachers"]
LEMMAS = {"cats": "cat", "saw": "see", "seen": "see", "teachers": "teacher"}
LABELS = "det nsubj dobj prep pobj amod rcmod conj nsubjpass partmod punct nn xcomp acomp cop".split()
SPELT_ALIKE = {frozenset(p) for p in [("cat", "cats"), ("teacher", "teachers")]}
SAME_MEANING = [
    {"purpcl", "xcomp"}, {"agent", "nsubj", "xsubj", "prep_by"}, {"dobj", "nsubjpass", "rel"},
    {"tmod", "prep_in", "prep_at", "prep_on"}, {"iobj", "prep_to"}, {"acl", "rcmod"},
    {"poss", "nn", "prep_of", "prep_in", "prep_at", "prep_for"}, {"amod", "rcmod"},
]  # fmt: skip
PARENT_CHILD = [
    ({"conj"}, {"conj"}), ({"dobj", "nsubjpass", "rel"}, {"acl", "rcmod"}),
    ({"acomp"}, {"cop", "csubj"}), ({"amod", "rcmod"}, {"nsubj"}),
]  # fmt: skip
NO_CONTENT = set("det predet aux auxpass cop mark cc punct case expl prt prep agent".split())


def random_sentence(rng: random.Random, length: int) -> Sentence:
    tokens = [rng.choice(WORDS) for _ in range(length)]
    order = rng.sample(range(length), length)
    heads, labels = [-1] * length, ["root"] * length
    for rank, token in enumerate(order):
        if rank and rng.random() > 0.1:  # a few sentences have several roots
            heads[token], labels[token] = rng.choice(order[:rank]), rng.choice(LABELS)
    lemmas = [LEMMAS.get(t.lower(), t.lower()) for t in tokens]
    return Sentence(tuple(tokens), {"head": heads, "deprel": labels, "lemma": lemmas})


def random_pairs(seed: int, count: int = 12, longest: int = 9) -> list[SentencePair]:
    rng = random.Random(seed)
    return [
        SentencePair(random_sentence(rng, rng.randint(1, longest)), random_sentence(rng, rng.randint(1, longest)))
        for _ in range(count)
    ]


class Twin:
    """One pair, looked at one cell at a time."""

    def __init__(self, pair: SentencePair) -> None:
        self.sides = [pair.source, pair.target]
        self.head = [s.layer("head") for s in self.sides]
        self.relation = [[{"partmod": "acl"}.get(r, r) for r in s.layer("deprel")] for s in self.sides]
        self.size = [len(s) for s in self.sides]

    def similarity(self, m: int, n: int) -> dict[str, bool]:
        a, b = self.sides[0].tokens[m].lower(), self.sides[1].tokens[n].lower()
        lemma = self.sides[0].layer("lemma")[m] == self.sides[1].layer("lemma")[n]
        alike = a == b or lemma or frozenset((a, b)) in SPELT_ALIKE
        return {"identical": a == b, "lemma": lemma, "similar": alike}

    def alike(self, m: int, n: int) -> bool:
        return m >= 0 and n >= 0 and self.similarity(m, n)["similar"]

    def up(self, side: int, token: int) -> int:
        return self.head[side][token] if token >= 0 else -1

    def children(self, side: int, token: int, content: bool = False) -> list[int]:
        found = [i for i in range(self.size[side]) if self.head[side][i] == token]
        return [i for i in found if not content or self.relation[side][i] not in NO_CONTENT]

    def neighbours(self, side: int, token: int) -> list[tuple[int, bool, str]]:
        """(other end, whether it is the parent, relation), prepositions also skipped."""
        tokens, edges = self.sides[side].tokens, []
        head, relation = self.head[side], self.relation[side]
        passive = {head[i] for i in range(self.size[side]) if relation[i] in ("nsubjpass", "auxpass")}
        for i in range(self.size[side]):
            if head[i] >= 0:
                edges.append((head[i], i, relation[i]))
            if relation[i] == "pobj" and relation[head[i]] == "prep" and head[head[i]] >= 0:
                top, word = head[head[i]], tokens[head[i]].lower()
                edges.append((top, i, "agent" if word == "by" and top in passive else f"prep_{word}"))
        return [(c, False, r) for p, c, r in edges if p == token] + [
            (p, True, r) for p, c, r in edges if c == token
        ]

    @staticmethod
    def matched(rows: list[tuple[int, int]]) -> int:
        return min(len({k for k, _ in rows}), len({n for _, n in rows}))

    def cell(self, m: int, n: int) -> dict[str, float]:
        out: dict[str, float] = {}
        hm, hn = self.up(0, m), self.up(1, n)
        places = {"head": (hm, hn), "grandparent": (self.up(0, hm), self.up(1, hn)),
                  "source_head_to_target": (hm, n), "source_to_target_head": (m, hn)}  # fmt: skip
        for prefix, (i, j) in places.items():
            for name, value in (self.similarity(i, j) if i >= 0 and j >= 0 else {}).items():
                out[f"{prefix}.{name}"] = value
        r, t = self.relation[0][m], self.relation[1][n]
        same = r == t or any(r in group and t in group for group in SAME_MEANING)
        head = self.alike(hm, hn)
        out |= {"root.both": hm < 0 and hn < 0, "root.one": (hm < 0) != (hn < 0), "relation.same": r == t}
        out |= {
            "relation.equivalent": same,
            "relation.same.head_alike": r == t and head,
            f"relation.{r}2{t}": True,
        }
        out |= {
            "relation.equivalent.head_alike": same and head,
            "relation.different.head_alike": head and not same,
        }
        if r == t:
            out[f"relation.{r}.head_{'alike' if head else 'unlike'}"] = True
        return out | self.agreement(m, n)

    def agreement(self, m: int, n: int) -> dict[str, float]:
        cm, cn = self.children(0, m), self.children(1, n)
        rows = [(k, x) for k in cm for x in cn if self.alike(k, x)]
        content_m, content_n = self.children(0, m, True), self.children(1, n, True)
        content = self.matched([(k, x) for k, x in rows if k in content_m and x in content_n])
        same = [(k, x) for k, x in rows if self.relation[0][k] == self.relation[1][x]]
        hm, hn = self.up(0, m), self.up(1, n)
        siblings = 0
        if hm >= 0 and hn >= 0:
            siblings = sum(self.alike(i, j) for i in self.children(0, hm) for j in self.children(1, hn)
                           if i != m and j != n)  # fmt: skip
        hits = self.matched(rows)
        out = {
            "children.share": hits / max(1, min(len(cm), len(cn))),
            "children.jaccard": hits / max(1, len(cm) + len(cn) - hits),
            "children.identical": min(3, self.matched([x for x in rows if self.similarity(*x)["identical"]])) / 3,
            "children.same_relation": min(3, self.matched(same)) / 3,
            "children.content": content / max(1, min(len(content_m), len(content_n))),
            "children.none_alike": not hits and bool(cm) and bool(cn),
            "children.both_none": not cm and not cn,
            "children.one_none": bool(cm) != bool(cn),
            "children.difference": min(3, abs(len(cm) - len(cn))) / 3,
            "siblings.alike": min(3, siblings) / 3,
        }
        return out | self.evidence(m, n)

    def evidence(self, m: int, n: int) -> dict[str, float]:
        found: dict[str, list] = {"typed": [], "typed.content": [], "loose": [], "crossed": []}
        for k, k_up, r in self.neighbours(0, m):
            for x, x_up, t in self.neighbours(1, n):
                if not self.alike(k, x):
                    continue
                if k_up == x_up:
                    found["loose"].append((k, x))
                    typed = r == t or any(r in group and t in group for group in SAME_MEANING)
                else:
                    typed = any((r in a and t in b) or (t in a and r in b) for a, b in PARENT_CHILD)
                    if typed:
                        found["crossed"].append((k, x))
                if typed:
                    found["typed"].append((k, x))
                    if self.relation[0][k] not in NO_CONTENT and self.relation[1][x] not in NO_CONTENT:
                        found["typed.content"].append((k, x))
        return {f"evidence.{name}": min(3, self.matched(rows)) / 3 for name, rows in found.items()}

    def competition(self, m: int, n: int) -> dict[str, float]:
        def score(i: int, j: int) -> float:
            a = self.agreement(i, j)
            head = self.alike(self.up(0, i), self.up(1, j))
            return 2 * head + a["children.share"] + a["evidence.typed"] + a["siblings.alike"] / 2

        if not self.alike(m, n):
            return {}
        own, a, hm, hn = score(m, n), self.agreement(m, n), self.up(0, m), self.up(1, n)
        row = [score(m, j) for j in range(self.size[1]) if self.alike(m, j)]
        column = [score(i, n) for i in range(self.size[0]) if self.alike(i, n)]
        head = self.alike(hm, hn)
        return {
            "alike.head_alike": head, "alike.head_unlike": hm >= 0 and hn >= 0 and not head,
            "alike.children.share": a["children.share"], "alike.children.none_alike": a["children.none_alike"],
            "alike.siblings": a["siblings.alike"], "alike.evidence": a["evidence.typed"],
            "alike.nothing": own == 0,
            "alike.best_of_row": len(row) > 1 and own == max(row),
            "alike.beaten_in_row": min(2, max(row) - own) / 2,
            "alike.best_of_column": len(column) > 1 and own == max(column),
            "alike.beaten_in_column": min(2, max(column) - own) / 2,
        }  # fmt: skip

    def null(self, m: int) -> dict[str, float]:
        def found(i: int) -> bool:
            return any(self.alike(i, j) for j in range(self.size[1]))

        head, relation = self.up(0, m), self.relation[0][m]
        children = self.children(0, m)
        share = sum(map(found, children)) / max(1, len(children))
        up, me = head >= 0 and found(head), found(m)
        state = "root" if head < 0 else "head_found" if up else "head_missing"
        return {
            "root": head < 0, "found": me, "head.found": up, "head.missing": head >= 0 and not up,
            "head.found.self_missing": up and not me, "head.missing.self_missing": head >= 0 and not up and not me,
            "children.found": share, "children.all_missing": bool(children) and share == 0,
            f"children.count.{min(3, len(children))}": True, f"relation.{relation}": True,
            f"relation.{relation}.{state}": True,
        }  # fmt: skip


def written_out(blocks: tuple[Block, ...]) -> list[dict[str, float]]:
    """One dict per cell of what is not zero; a name that two blocks share is a fault."""
    names = [name for block in blocks for name in block.names]
    assert len(names) == len(set(names))
    table = np.hstack([block.dense() for block in blocks])
    assert np.isfinite(table).all() and table.min(initial=0) >= 0 and table.max(initial=0) <= 1
    return [{names[i]: row[i] for i in np.flatnonzero(row)} for row in table]


def nonzero(values: dict[str, float]) -> dict[str, float]:
    return {name: pytest.approx(float(value)) for name, value in values.items() if value}


@pytest.mark.parametrize("seed", range(8))
def test_every_column_of_every_cell_equals_the_twin(seed):
    pairs = random_pairs(seed)
    grid = Grid(pairs)
    blocks = Dependency(relation_pairs=True)(grid)
    link, null = written_out(blocks.link), written_out(blocks.null)
    twins = [Twin(pair) for pair in pairs]
    for c in range(grid.n_cells):
        twin, m, n = twins[grid.pair[c]], int(grid.m[c]), int(grid.n[c])
        same_class = link[c].pop("relation.same_class", 0)
        if twin.relation[0][m] == twin.relation[1][n]:
            assert same_class == 1
        assert link[c] == nonzero(twin.cell(m, n) | twin.competition(m, n))
    for token in range(len(grid.source_pair)):
        assert null[token] == nonzero(twins[grid.source_pair[token]].null(int(grid.source_position[token])))


def test_features_do_not_depend_on_the_batch():
    pairs = random_pairs(99)
    together, start = written_out(Dependency()(Grid(pairs)).link), 0
    for pair in pairs:
        alone = written_out(Dependency()(Grid([pair])).link)
        assert together[start : start + len(alone)] == alone
        start += len(alone)


def parsed(text: str) -> Sentence:
    """token/head/relation, heads from 0."""
    parts = [item.rsplit("/", 2) for item in text.split()]
    return Sentence(
        tuple(p[0] for p in parts), {"head": [int(p[1]) for p in parts], "deprel": [p[2] for p in parts]}
    )  # fmt: skip


def features(source: str, target: str, m: int, n: int) -> dict[str, float]:
    grid = Grid([SentencePair(parsed(source), parsed(target))])
    return written_out(Dependency(lemma=False)(grid).link)[m * int(grid.n_target[0]) + n]


def test_an_active_subject_is_equivalent_to_the_agent_of_a_passive():
    active = "Bakers/1/nsubj burnt/-1/root bread/1/dobj"
    passive = "Bread/2/nsubjpass was/2/auxpass burnt/-1/root by/2/prep bakers/3/pobj"
    assert features(active, passive, 1, 2)["evidence.typed"] == pytest.approx(2 / 3)
    assert features(active, passive, 0, 4)["evidence.typed"] == pytest.approx(1 / 3)
    assert features(active, passive, 2, 0)["relation.equivalent"] == 1


def test_universal_dependencies_collapse_like_stanfords():
    stanford = "king/-1/root of/0/prep Spain/1/pobj"
    universal = "king/-1/root of/2/case Spain/0/nmod"
    assert features(stanford, universal, 0, 0)["evidence.typed"] == pytest.approx(1 / 3)
    agent = "seen/-1/root by/2/case Ann/0/obl:agent"
    assert features("Ann/1/nsubj saw/-1/root", agent, 0, 2)["relation.equivalent"] == 1


def test_an_object_is_equivalent_to_a_relative_clause_seen_from_the_noun():
    source, target = "wrote/-1/root books/0/dobj", "books/-1/root he/2/nsubj wrote/0/relcl"
    assert features(source, target, 0, 2)["evidence.crossed"] == pytest.approx(1 / 3)
    assert features(source, target, 1, 0)["evidence.crossed"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("label", "expected"),
    [("ROOT", "root"), ("obj", "dobj"), ("nsubj:pass", "nsubjpass"), ("p", "punct"), ("relcl", "rcmod"),
     ("acl:relcl", "rcmod"), ("infmod", "acl"), ("obl:lmod", "obl"), ("compound:prt", "prt"), ("xyz", "xyz")],
)  # fmt: skip
def test_relations_have_one_spelling(label, expected):
    assert canonical(label) == expected


def test_a_head_outside_the_sentence_is_an_error_that_names_it():
    bad = Sentence(("Birds", "sing"), {"head": [2, -1], "deprel": ["nsubj", "root"]})
    good = parsed("Birds/1/nsubj sing/-1/root")
    with pytest.raises(JacanaError, match=r"token 0 of 'Birds sing' has head 2"):
        Dependency(lemma=False)(Grid([SentencePair(good, bad)]))
    with pytest.raises(MissingLayer, match="'head'"):
        Dependency(lemma=False)(Grid([SentencePair(good, Sentence(("Birds",)))]))


def test_empty_sentences_and_an_empty_grid():
    empty = Sentence((), {"head": (), "deprel": (), "lemma": ()})
    full = random_pairs(1, count=1)[0]
    for pairs in ([], [SentencePair(empty, empty)], [SentencePair(full.source, empty), full]):
        batch = FeatureSet({"dependency": Dependency()})(pairs)
        cells = sum(len(p.source) * len(p.target) for p in pairs)
        assert all(len(block.dense()) == cells for block in batch.link)
        assert all(len(block.dense()) == sum(len(p.source) for p in pairs) for block in batch.null)


def test_a_root_that_is_its_own_head_is_a_root():
    own = Sentence(("Sing", "!"), {"head": [0, 0], "deprel": ["root", "punct"]})
    assert written_out(Dependency(lemma=False)(Grid([SentencePair(own, own)])).link)[0]["root.both"] == 1


def test_what_it_requires():
    assert Dependency().requires == ("head", "deprel", "lemma")
    assert Dependency(lemma=False).requires == ("head", "deprel")
