"""The phrase aligner: gold segments and costs against loops over links, features against loops over phrases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from templates import corpus

from jacana_torch import resources
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.phrase.aligner import PhraseCrf
from jacana_torch.aligners.phrase.features import phrase_blocks
from jacana_torch.aligners.phrase.gold import gold_segments, links_of
from jacana_torch.crf.semi_layout import SemiLayout
from jacana_torch.errors import ConfigError, MissingLayer, ModelError
from jacana_torch.evaluate import score
from jacana_torch.experiment import predictions
from jacana_torch.features.distortion import Distortion
from jacana_torch.features.grid import Grid
from jacana_torch.features.pos import Pos
from jacana_torch.features.position import Position
from jacana_torch.features.string import String
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

quick = settings(max_examples=60, deadline=None)


@st.composite
def alignments(draw):
    m, n = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    cells = list(itertools.product(range(m), range(n)))
    return Alignment(m, n, frozenset(draw(st.lists(st.sampled_from(cells), max_size=14))))


def pair(source: str, target: str, **layers) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def made(**settings_of) -> PhraseCrf:
    families = {"string": String(), "position": Position(), "distortion": Distortion()}
    return PhraseCrf(families, **{"tolerance": 1e-4, "max_iterations": 60, **settings_of})


# Gold


@quick
@given(alignments(), st.integers(1, 4), st.sampled_from(["monotone", "diagonal", "first", "last"]))
def test_gold_segments_cover_the_source_and_hold_only_gold_links(gold, longest, policy):
    segments, spans, dropped = gold_segments(gold, longest, policy)
    covered = [m for first, size, _, _ in segments.tolist() for m in range(first, first + size)]
    assert covered == list(range(gold.n_source))
    assert (segments[:, 1:] >= [1, 0, 1]).all() and (segments[:, [1, 3]] <= longest).all()
    held = {
        (i, state - 1 + k)
        for first, size, state, span in segments.tolist()
        for i in range(first, first + size)
        for k in range(span)
        if state
    }
    assert held <= gold.sure
    assert dropped == len(gold.sure) - len(held)
    assert held == {(i, j) for i, (first, past) in enumerate(spans.tolist()) for j in range(first, past)}
    for i in range(gold.n_source):  # a token keeps the most targets in a row that it can
        targets = {j for a, j in gold.sure if a == i}
        runs = [k for k in range(longest + 1) for j in range(gold.n_target) if set(range(j, j + k)) <= targets]
        assert sum(a == i for a, _ in held) == max(runs, default=0)
    for before, after in itertools.pairwise(segments.tolist()):  # what could be one segment is
        assert not (before[2] and before[2:] == after[2:] and before[1] < longest)


@quick
@given(alignments())
def test_links_of_segments_are_their_products(gold):
    segments = gold_segments(gold, 3).segments
    expected = [
        (number, i, j)
        for number, (first, size, state, span) in enumerate(segments.tolist())
        for i in range(first, first + size)
        for j in range(state - 1, state - 1 + span)
        if state
    ]
    assert list(zip(*(x.tolist() for x in links_of(segments)), strict=True)) == expected


def test_a_block_beyond_the_longest_is_cut():
    block = frozenset(itertools.product(range(4), range(4)))
    segments, _, dropped = gold_segments(Alignment(5, 4, block), 3)
    assert segments.tolist() == [[0, 3, 1, 3], [3, 1, 1, 3], [4, 1, 0, 1]]
    assert dropped == 4


@settings(max_examples=20, deadline=None)
@given(st.lists(alignments(), min_size=1, max_size=3), st.integers(1, 3))
def test_costs_are_the_share_of_links_that_differ(golds, longest):
    aligner = made(longest=longest, cost_null=0.5, cost_link=2.0)
    sizes = np.array([(g.n_source, g.n_target) for g in golds])
    layout = SemiLayout(sizes[:, 0], sizes[:, 1], longest, 10**6, "cpu")
    gold = [gold_segments(g, longest) for g in golds]
    costs = aligner._costs(layout, gold)
    right = [[set(range(*span)) for span in g.spans.tolist()] for g in gold]
    tokens = [own for of_pair in right for own in of_pair]
    assert costs[: len(tokens)].tolist() == [2.0 if own else 0.0 for own in tokens]
    sized = costs[len(tokens) :].reshape(longest, longest, -1)
    cells = [(p, i, j) for p, (m, n) in enumerate(sizes.tolist()) for i in range(m) for j in range(n)]
    for (a, b), (c, (p, i, j)) in itertools.product(np.ndindex(longest, longest), enumerate(cells)):
        if i + a < sizes[p][0] and j + b < sizes[p][1]:
            span = set(range(j, j + b + 1))
            paid = [(2.0 if own else 0.5) * len(span ^ own) / len(span | own) for own in right[p][i : i + a + 1]]
            assert sized[a, b, c] == pytest.approx(sum(paid))
    entries = layout.entries([g.segments for g in gold])[0]
    assert not costs[entries].any()  # gold pays nothing


# Features


def said(source: str, target: str, tags: bool = False) -> dict:
    """What features say of each phrase: {(source phrase, target phrase, places): names}."""
    p = pair(source, target)
    if tags:
        p = SentencePair(*(s.with_layers(pos=[w[:2].upper() for w in s.tokens]) for s in (p.source, p.target)))
    grid, m, n = Grid([p]), len(p.source), len(p.target)
    layout = SemiLayout(grid.n_source, grid.n_target, 3, 10**6, "cpu")
    blocks = phrase_blocks(grid, layout, tags)
    names = [name.removeprefix("phrase.") for b in blocks for name in b.names]
    values = np.concatenate([b.dense() for b in blocks], 1).reshape(3, 3, m, n, -1)
    found = {}
    for a, b, i, j in np.ndindex(3, 3, m, n):
        on = {name for name, value in zip(names, values[a, b, i, j], strict=True) if value}
        if i + a >= m or j + b >= n or a == b == 0:
            assert not on, "features speak of phrases alone"
        else:
            phrases = " ".join(p.source.tokens[i : i + a + 1]), " ".join(p.target.tokens[j : j + b + 1])
            found[(*phrases, i, j)] = on
    return found


WORDS = st.lists(st.sampled_from("the red cat of sat Sat . mats".split()), min_size=1, max_size=5).map(" ".join)


@quick
@given(WORDS, WORDS)
def test_what_is_said_of_likeness_and_place_is_so(source, target):
    from jacana_torch.features.wordlists import stem

    s, t = source.split(), target.split()
    stems = [[stem(w.lower()) for w in side] for side in (s, t)]
    for (left, right, i, j), on in said(source, target).items():
        size, span = len(left.split()), len(right.split())
        kind = "one_many" if size == 1 else "many_one" if span == 1 else "many_many"
        assert f"size={size}x{span}" in on and sum(name.startswith("size") for name in on) == 1
        assert {name.split(".")[0] for name in on if "." in name} <= {kind}
        rows, columns = stems[0][i : i + size], stems[1][j : j + span]
        before = (i, j) == (0, 0) or (i > 0 and j > 0 and s[i - 1].lower() == t[j - 1].lower())
        a, b = i + size, j + span
        after = (a, b) == (len(s), len(t)) or (a < len(s) and b < len(t) and s[a].lower() == t[b].lower())
        truths = {
            "all_source_same": all(w in columns for w in rows),
            "all_target_same": all(w in rows for w in columns),
            "none_same": not set(rows) & set(columns),
            "first_same": rows[0] == columns[0],
            "last_same": rows[-1] == columns[-1],
            "source_elsewhere": any(w in stems[1] and w not in columns for w in rows),
            "target_elsewhere": any(w in stems[0] and w not in rows for w in columns),
            "before": before,
            "after": after,
            "between": before and after,
            "source_begins": left.split()[0] in ("the", "of"),
            "target_ends": right.split()[-1] in ("the", "of"),
            "source_all": set(left.split()) <= {"the", "of"},
            "target_punctuation": "." in right.split(),
            "together": bool(left.strip(" .")) and _letters(left) == _letters(right),
        }
        for name, truth in truths.items():
            assert (f"{kind}.{name}" in on) == truth, (name, left, right)


def _letters(text: str) -> str:
    return text.replace(" ", "").replace(".", "").lower()


def test_words_written_together_and_acronyms_are_seen():
    on = said("the book store of the United Nations", "a book-store of the U.N.")
    assert "many_one.together" in on["book store", "book-store", 1, 1]
    assert "many_one.acronym" in on["United Nations", "U.N.", 5, 4]
    assert sum(any("acronym" in name for name in names) for names in on.values()) == 1
    turned = said("a book-store of the U.N.", "the book store of the United Nations")
    assert "one_many.acronym" in turned["U.N.", "United Nations", 4, 5]


@pytest.mark.skipif(not resources.available("wordnet"), reason="needs the resource wordnet")
def test_phrases_that_wordnet_knows_share_their_senses():
    one, two = "prices went up in the United States .".split(), "US costs rise :".split()
    lemmas = "price go up in the united states .".split(), ["us", "cost", "rise", ":"]
    p = SentencePair(*(Sentence(tuple(s)).with_layers(lemma=x) for s, x in zip((one, two), lemmas, strict=True)))

    def found(p: SentencePair, lemmas: bool) -> set:
        grid = Grid([p])
        layout = SemiLayout(grid.n_source, grid.n_target, 3, 10**6, "cpu")
        block = phrase_blocks(grid, layout, senses=True, lemmas=lemmas)[1]
        columns = [k for k, name in enumerate(block.names) if name.endswith(".senses")]
        on = block.dense()[:, columns].any(1).reshape(3, 3, len(p.source), len(p.target))
        s, t = p.source.tokens, p.target.tokens
        return {(" ".join(s[i : i + a + 1]), " ".join(t[j : j + b + 1])) for a, b, i, j in np.argwhere(on)}

    assert found(p, lemmas=True) == {("went up", "rise"), ("United States", "US")}
    assert found(p.flip(), lemmas=True) == {("rise", "went up"), ("US", "United States")}
    assert found(p, lemmas=False) == {("United States", "US")}


def test_tags_of_phrases_are_named_with_the_other_phrases_length():
    on = said("a b c", "d e", tags=True)["b c", "d e", 1, 0]
    assert {"source_tags.b_c.2", "target_tags.d_e.2"} == {name for name in on if "tags" in name}
    assert "source_tags.a_b_c.1" in said("a b c", "d e", tags=True)["a b c", "e", 0, 1]


# The aligner


def blocks_corpus(n: int, seed: int) -> list[Example]:
    """Words that are the same, and now and then two that are one or one that is two."""
    chance = np.random.default_rng(seed)
    plain = "dog house river stone lamp garden window bridge".split()
    ones = "bookstore sunlight footpath rainwater".split()
    twos = "book store,sun light,foot path,rain water".split(",")
    out = []
    for _ in range(n):
        source, target, links = [], [], set()
        for _ in range(int(chance.integers(2, 6))):
            kind, k = chance.integers(4), int(chance.integers(4))
            a, b = [[plain[k + 4]], [plain[k + 4]]] if kind < 2 else [[ones[k]], twos[k].split()]
            a, b = (b, a) if kind == 3 else (a, b)
            links |= set(itertools.product(range(len(source), len(source) + len(a)),
                                           range(len(target), len(target) + len(b))))  # fmt: skip
            source += a
            target += b
        gold = Alignment(len(source), len(target), frozenset(links))
        out.append(Example(SentencePair(Sentence(tuple(source)), Sentence(tuple(target))), gold))
    return out


def test_it_learns_phrases_in_both_directions():
    aligner = made()
    report = aligner.fit(blocks_corpus(60, 1))
    assert report.converged and not report.dropped_links
    held_out = blocks_corpus(30, 2)
    found = aligner.align([e.pair for e in held_out])
    assert score([e.gold for e in held_out], found).f1 > 0.97
    assert any(len({i for i, _ in a.sure}) < len(a.sure) for a in found), "one to many"
    assert any(len({j for _, j in a.sure}) < len(a.sure) for a in found), "many to one"


def test_training_goes_on_where_it_stopped_and_its_answers_are_those_of_prepared_pairs():
    examples = [Example(e.pair, e.gold) for e in corpus(20)]
    aligner = made(max_iterations=200, tolerance=1e-6)
    first = aligner.fit(examples)
    again = made(tolerance=1e-6)
    again.restore(aligner.state())
    assert again.fit(examples).iterations["forward"] <= 3 < first.iterations["forward"]
    pairs = [e.pair for e in examples] + [pair("", "a b"), pair("a", "")]
    prepared = aligner.prepared(pairs)
    for a, b, alone in zip(
        aligner.align(pairs), aligner.decode(prepared), aligner.align(pairs, confidence=False), strict=True
    ):
        assert a == b == alone and not alone.confidence
        assert a.confidence == pytest.approx(dict(b.confidence), abs=1e-9)
        assert set(a.confidence) == a.sure
        assert (a.score is None) == (b.score is None) == (not a.n_source or not a.n_target)
        if a.score is not None:
            assert a.score == pytest.approx(b.score, abs=1e-9) and a.score <= 1e-9


def test_with_phrases_of_one_word_it_is_the_token_aligner():
    from jacana_torch.aligners.crf import Crf

    examples = corpus(20)
    families = {"string": String(), "distortion": Distortion()}
    settings_of = {"l2": 1.0, "tolerance": 1e-9, "max_iterations": 400}
    one, token = PhraseCrf(families, longest=1, **settings_of), Crf(families, **settings_of)
    losses = [aligner.fit(examples).loss["forward"] for aligner in (one, token)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-7)
    pairs = [e.pair for e in corpus(20, seed=5)]
    for a, b in zip(one.align(pairs), token.align(pairs), strict=True):
        assert a == b
        assert dict(a.confidence) == pytest.approx(dict(b.confidence), abs=1e-3)


def test_two_directions_are_symmetrized():
    aligner = Bidirectional(made(), made(), "intersection")
    examples = blocks_corpus(30, 1)
    aligner.fit(examples)
    found = predictions(aligner, examples)
    for both, f, b in zip(found["intersection"], found["forward"], found["backward"], strict=True):
        assert both.sure == f.sure & b.sure


def test_tags_are_read_where_a_family_reads_them():
    aligner = PhraseCrf({"string": String(), "pos": Pos()}, max_iterations=5)
    assert aligner.requires == ("pos",)
    aligner.fit(corpus(5))
    assert any(name.startswith("phrase.source_tags.") for name in aligner.names)
    assert aligner.align([corpus(1)[0].pair])
    with pytest.raises(MissingLayer, match="pos"):
        aligner.align([pair("a b", "a b")])


def test_mistakes_are_said():
    with pytest.raises(ConfigError, match="longest=0"):
        made(longest=0)
    with pytest.raises(ModelError, match="not been trained"):
        made().align([pair("a", "b")])
    with pytest.raises(ConfigError, match="nothing to train on"):
        made().fit([])
    family = Position()
    object.__setattr__(family, "name", "phrase")
    with pytest.raises(ConfigError, match="phrase"):
        PhraseCrf({"phrase": family})
