"""Features of phrases, against loops over phrases."""

from __future__ import annotations

import jellyfish
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.features.grid import Grid
from jacana_torch.features.wordlists import stem
from jacana_torch.systems.phrase.segment_features import segment_blocks
from jacana_torch.systems.phrase.segments import Segments
from jacana_torch.types import Sentence, SentencePair

quick = settings(max_examples=60, deadline=None)


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def features_of(source: str, target: str, tags: bool = False) -> dict:
    """The features of each phrase pair: {(source phrase, target phrase, places): names}."""
    p = pair(source, target)
    if tags:
        p = SentencePair(*(s.with_layers(pos=[w[:2].upper() for w in s.tokens]) for s in (p.source, p.target)))
    grid, m, n = Grid([p]), len(p.source), len(p.target)
    blocks = segment_blocks(grid, Segments(grid, 3), tags)
    names = [name.removeprefix("phrase.") for b in blocks for name in b.names]
    values = np.concatenate([b.dense() for b in blocks], 1).reshape(3, 3, m, n, -1)
    found = {}
    for a, b, i, j in np.ndindex(3, 3, m, n):
        on = {name for name, value in zip(names, values[a, b, i, j], strict=True) if value}
        if i + a >= m or j + b >= n or a == b == 0:
            assert not on, "single words have no phrase features"
        else:
            phrases = " ".join(p.source.tokens[i : i + a + 1]), " ".join(p.target.tokens[j : j + b + 1])
            found[(*phrases, i, j)] = on
    return found


WORDS = st.lists(
    st.sampled_from("the red cat of sat Sat . mats color colour".split()), min_size=1, max_size=5
).map(" ".join)


@quick
@given(WORDS, WORDS)
def test_features_of_words_and_surroundings_agree_with_loops(source, target):
    s, t = source.split(), target.split()
    stems = [[stem(w.lower()) for w in side] for side in (s, t)]
    for (left, right, i, j), on in features_of(source, target).items():
        size, span = len(left.split()), len(right.split())
        kind = "one_many" if size == 1 else "many_one" if span == 1 else "many_many"
        assert f"size={size}x{span}" in on and sum(name.startswith("size") for name in on) == 1
        assert {name.split(".")[0] for name in on if "." in name} <= {kind}
        rows, columns = stems[0][i : i + size], stems[1][j : j + span]
        before = (i, j) == (0, 0) or (i > 0 and j > 0 and s[i - 1].lower() == t[j - 1].lower())
        a, b = i + size, j + span
        after = (a, b) == (len(s), len(t)) or (a < len(s) and b < len(t) and s[a].lower() == t[b].lower())
        near = [[_alike(v, w) for w in right.split()] for v in left.split()]
        truths = {
            "all_source_similar": all(any(row) for row in near),
            "all_target_similar": all(any(column) for column in zip(*near, strict=True)),
            "none_similar": not any(any(row) for row in near),
            "first_similar": near[0][0],
            "last_similar": near[-1][-1],
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


def _alike(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    return stem(one) == stem(other) or jellyfish.jaro_winkler_similarity(one, other) >= 0.85


def _letters(text: str) -> str:
    return text.replace(" ", "").replace(".", "").lower()


def test_features_of_compounds_and_acronyms():
    on = features_of("the book store of the United Nations", "a book-store of the U.N.")
    assert "many_one.together" in on["book store", "book-store", 1, 1]
    assert "many_one.acronym" in on["United Nations", "U.N.", 5, 4]
    assert sum(any("acronym" in name for name in names) for names in on.values()) == 1
    small = features_of("we saw old maps", "om was there")
    assert not any("acronym" in name for names in small.values() for name in names)
    turned = features_of("a book-store of the U.N.", "the book store of the United Nations")
    assert "one_many.acronym" in turned["U.N.", "United Nations", 4, 5]


@pytest.mark.skipif(not resources.available("wordnet"), reason="needs the resource wordnet")
def test_synset_features_of_phrases():
    one, two = "prices went up in the United States .".split(), "US costs rise :".split()
    lemmas = "price go up in the united states .".split(), ["us", "cost", "rise", ":"]
    p = SentencePair(*(Sentence(tuple(s)).with_layers(lemma=x) for s, x in zip((one, two), lemmas, strict=True)))

    def found(p: SentencePair, lemmas: bool) -> set:
        grid = Grid([p])
        segments = Segments(grid, 3)
        block = segment_blocks(grid, segments, senses=True, lemmas=lemmas)[1]
        columns = [k for k, name in enumerate(block.names) if name.endswith(".senses")]
        on = block.dense()[:, columns].any(1).reshape(3, 3, len(p.source), len(p.target))
        s, t = p.source.tokens, p.target.tokens
        return {(" ".join(s[i : i + a + 1]), " ".join(t[j : j + b + 1])) for a, b, i, j in np.argwhere(on)}

    assert found(p, lemmas=True) == {("went up", "rise"), ("United States", "US")}
    assert found(p.flip(), lemmas=True) == {("rise", "went up"), ("US", "United States")}
    assert found(p, lemmas=False) == {("United States", "US")}


def test_tag_features_include_the_length_of_the_other_phrase():
    on = features_of("a b c", "d e", tags=True)["b c", "d e", 1, 0]
    assert {"source_tags.b_c.2", "target_tags.d_e.2"} == {name for name in on if "tags" in name}
    assert "source_tags.a_b_c.1" in features_of("a b c", "d e", tags=True)["a b c", "e", 0, 1]
