"""Pairs that mean different things: WordNet's glosses, scripts/unrelated.py and scripts/similarity.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import similarity
import unrelated

from jacana_torch.resources.wordnet_glosses import Gloss, glosses
from jacana_torch.tasks.content import content
from jacana_torch.tasks.scores import similarity as proportion
from jacana_torch.types import Alignment, Sentence, SentencePair

SYNSETS = """  1 a licence of more | lines
00000016 04 n 02 raising 0 lift_off(p) 0 000 | the act of raising a boat; "he did the raising"; "so did she"
00000100 04 n 01 lowering 0 000 | the act of lowering a boat from a ship
00000200 04 n 01 ship 0 000 | a large boat that goes to sea
00000300 04 n 01 odd 0 000 | the act of
"""


@pytest.fixture
def wordnet(own_home, tmp_path, monkeypatch):
    """A WordNet of four nouns."""
    folder = tmp_path / "nltk_data" / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    licence, *rows = SYNSETS.splitlines(keepends=True)
    texts, index = dict.fromkeys(("noun", "verb", "adj", "adv"), licence), []
    for row in rows:
        offset = len(texts["noun"])
        index.append(f"{row.split()[4]} n 1 0 1 0 {offset:08d}\n")
        texts["noun"] += f"{offset:08d}{row[8:]}"
    for suffix, text in texts.items():
        (folder / f"data.{suffix}").write_text(text)
        (folder / f"index.{suffix}").write_text("".join(index) if suffix == "noun" else "")
        (folder / f"{suffix}.exc").write_text("")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk_data"))
    if "nltk.data" in sys.modules:  # another test imported it, and then its own list counts
        monkeypatch.setattr(sys.modules["nltk.data"], "path", [str(tmp_path / "nltk_data")])
    return folder


def test_glosses_are_definitions_words_and_examples(wordnet):
    first, *_, last = glosses()
    examples = ("he did the raising", "so did she")
    assert first == Gloss(("raising", "lift off"), "n", "the act of raising a boat", examples)
    assert last == Gloss(("odd",), "n", "the act of")


def test_pairs_share_a_beginning_and_have_a_medium_length(wordnet):
    texts = unrelated.definitions()
    assert len(texts) == 3  # "the act of" is too short
    kinds = unrelated.drawn(texts, 20, seed=1)
    for pair in kinds["a common beginning"]:
        assert pair.source.tokens[:3] == pair.target.tokens[:3] == ("the", "act", "of")
        assert {pair.source.tokens[3], pair.target.tokens[3]} == {"raising", "lowering"}
    assert any(
        "ship" in pair.source.tokens[:6] or "sea" in pair.source.tokens for pair in kinds["any two glosses"]
    )
    assert str(kinds) == str(unrelated.drawn(texts, 20, seed=1)) != str(unrelated.drawn(texts, 20, seed=2))


class Given:
    """Answers with alignments that are written down."""

    def __init__(self, *links: dict[tuple[int, int], float]) -> None:
        self.links = links

    def align(self, pairs, confidence=True):
        sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
        both = zip(sizes, self.links, strict=True)
        return [Alignment(m, n, frozenset(own), confidence=own) for (m, n), own in both]


def test_links_between_unlike_content_words_are_counted():
    pairs = [
        SentencePair(Sentence("the act of lifting boats .".split()), Sentence("the act of towing Boat .".split())),
        SentencePair(Sentence("a dog".split()), Sentence("some act".split())),
    ]
    # Links of the same words, of a stop word, of forms of a word, of punctuation; and two that count.
    model = Given({(0, 0): 1.0, (2, 3): 0.9, (4, 4): 0.9, (5, 5): 0.9, (3, 3): 0.85, (1, 0): 0.9}, {(1, 1): 0.4})
    assert unrelated.unlike_links(model, pairs, 0.8) == (100.0, 50.0)


def test_similarity_is_the_harmonic_mean_of_two_shares():
    pair = SentencePair(Sentence("the red barn , built in 1901 .".split()), Sentence("a barn burnt".split()))
    assert content(pair.source) == [None, "red", "barn", None, "built", None, "1901", None]
    both = Alignment(8, 3, frozenset({(2, 1), (4, 2), (0, 0)}))
    assert proportion(pair, both) == pytest.approx(2 / (1 / (2 / 4) + 1 / (2 / 2)))
    assert proportion(pair, Alignment(8, 3, frozenset({(0, 0)}))) == 0


def test_the_scripts_print_a_row_for_each_model(wordnet, tmp_path, monkeypatch, capsys):
    rows = [{"id": f"p{k}", "source": ["a", "boat", "sank"], "target": ["ships", "sank"][k % 2 :], "score": k}
            for k in range(5)]  # fmt: skip
    for name in similarity.SETS:
        for folder, text in (
            (f"extrinsic/sts2012.{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
            (f"leaks/drop_from_sts2012.{name}.txt", "p2\nelse\n"),
        ):
            path = tmp_path / folder
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    monkeypatch.setenv("JACANA_DATA", str(tmp_path))
    assert similarity.main(["core"]) == 0
    out = capsys.readouterr().out
    assert "MSRpar: 4 pairs, 1 left out" in out and "\n| core | " in out
    assert unrelated.main(["core", "--pairs", "4", "--corpus", "extrinsic/sts2012.OnWN.jsonl"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and all(line.count("|") == 8 for line in rows)
    monkeypatch.setenv("JACANA_DATA", str(tmp_path / "nowhere"))
    assert similarity.main(["core"]) == 2
    assert "set JACANA_DATA" in capsys.readouterr().err
