"""scripts/errors.py and scripts/ablation.py: counts by hand on our own pairs, every kind and every column."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import ablation
import errors
import link_kinds
from link_kinds import GROUPS, Case

from jacana_torch.errors import JacanaError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

SCRIPTS = Path(errors.__file__).parent


def case(source: str, target: str, gold: set, found: set, **more) -> Case:
    pair = SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))
    return Case(pair, frozenset(gold), frozenset(found), **more)


# the cat saw the old Dog , 3 runs  /  a cat watched the Dog in 3 run , the
ONE = case(
    "the cat saw the old Dog , 3 runs",
    "a cat watched the Dog in 3 run , the",
    gold={(0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (7, 6), (8, 7), (6, 8)},
    found={(1, 1), (3, 9), (4, 5), (5, 4), (7, 6), (6, 8), (8, 7)},
    related=frozenset({(2, 2)}),
    paraphrases=frozenset({(2, 2), (0, 0)}),
)
KINDS = {name: kind for kinds in GROUPS.values() for name, kind in kinds.items()}
# gold, missed, spurious
BY_HAND = {
    "punctuation": (1, 0, 0),
    "function words": (2, 2, 1),
    "a function word and another": (0, 0, 1),
    "names": (1, 0, 0),
    "numbers": (1, 0, 0),
    "content words": (3, 1, 0),
    "other classes together": (0, 0, 0),
    "the same word, once per side": (4, 0, 0),  # cat, Dog, 3 and the comma
    "the same word, repeated": (1, 1, 1),
    "another form of the word": (1, 0, 0),
    "WordNet relates them": (1, 1, 0),
    "PPDB pairs them": (2, 2, 0),
    "only PPDB pairs them": (1, 1, 0),
    "no lexical evidence": (0, 0, 1),
    "no lexical evidence, content words or names": (0, 0, 0),
    "one of several links of a word": (0, 0, 0),
    "inside a phrase": (0, 0, 0),
    "beside the same words": (3, 2, 0),  # both words beside the cat, and what follows the 3
    "both words without a link": (2, 2, 1),
    "the source word linked elsewhere": (1, 1, 1),
    "the target word linked elsewhere": (0, 0, 0),
    "both linked elsewhere": (5, 0, 0),
}


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("both ") or name in BY_HAND])
def test_every_kind_by_hand(name: str) -> None:
    if name == "different parts of speech":
        assert errors.count([ONE], KINDS[name]) == errors.Count(), "there are no tags"
        return
    found = errors.count([ONE], KINDS[name])
    assert (found.gold, found.missed, found.spurious) == BY_HAND[name]


def test_context() -> None:
    x = case("red red car , big tent", "red car in big tents", {(1, 0), (2, 1), (4, 3), (5, 4), (5, 3)}, {(2, 1)})
    beside = KINDS["beside the same words"]
    assert {link for link in x.gold if beside(x, link)} == {(1, 0), (2, 1), (5, 4)}
    several = KINDS["one of several links of a word"]
    assert {link for link in x.gold if several(x, link)} == {(4, 3), (5, 3), (5, 4)}
    phrase = case("a b c", "d e f", {(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)}, {(2, 1), (2, 2)})
    inside = KINDS["inside a phrase"]
    assert {link for link in phrase.gold | phrase.found if inside(phrase, link)} == {
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    }


def test_pairs_that_would_be_exact() -> None:
    """Only those whose errors are all of the kind, and not those without errors."""
    right = case("a tent", "a tent", {(0, 0), (1, 1)}, {(0, 0), (1, 1)})
    function = case("a tent", "a tent", {(0, 0), (1, 1)}, {(1, 1)})
    both = case("a tent", "a tent", {(0, 0), (1, 1)}, {(1, 0)})
    cases = [right, function, both]
    assert errors.count(cases, KINDS["function words"]).exact == 1
    assert errors.count(cases, lambda case, link: True).exact == 2


def test_parts_of_speech() -> None:
    tags = {"pos": ("DT", "NN", "VBZ")}, {"pos": ("NN", "NNS", "MD")}
    pair = SentencePair(Sentence(("a", "tent", "stands"), tags[0]), Sentence(("rain", "tents", "may"), tags[1]))
    x = Case(pair, frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(1, 0)}))
    counts = {name: errors.count([x], kind) for name, kind in GROUPS["Parts of speech"].items()}
    assert {name: (c.gold, c.missed, c.spurious) for name, c in counts.items() if c != errors.Count()} == {
        "both noun": (1, 1, 1),
        "different parts of speech": (2, 2, 0),
    }


def test_the_page() -> None:
    page = errors.report("tents", [ONE])
    assert "1 pairs, 0 of them exact; 8 gold links, 3 missed, 2 spurious." in page
    rows = [line for line in page.splitlines() if line.startswith("| function words ")]
    assert rows == ["| function words | 2 | 2 | 100.0 | 66.7 | 1 | 50.0 | 0 |"]
    assert "| pairs | 0 | 0 | 0 | 0 | 0 | 1 | 0 |" in page
    for block in page.split("\n\n"):
        assert len({line.count("|") for line in block.splitlines() if line.startswith("|")}) <= 1, "ragged"


def test_lemmas_and_wordnet_where_they_are_there(monkeypatch) -> None:
    layers = {"pos": ("NN",), "lemma": ("mouse",)}
    pair = SentencePair(Sentence(("mice",), layers), Sentence(("mouse",), layers))
    gold = Alignment(1, 1, frozenset({(0, 0)}))
    monkeypatch.setattr(link_kinds.resources, "available", lambda name: False)
    (made,) = link_kinds.cases_of([Example(pair, gold)], [gold])
    assert made.alike((0, 0)) and not made.same((0, 0)) and made.related == frozenset()


def write(path: Path, links: list[list[tuple[int, int]]]) -> str:
    sentences = [("one tent", "a tent"), ("so be it", "be it so")]
    rows = [
        {"id": str(k), "source": s.split(), "target": t.split(), "sure": sure, "possible": []}
        for k, ((s, t), sure) in enumerate(zip(sentences, links, strict=False))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_two_files(tmp_path) -> None:
    gold = write(tmp_path / "gold.jsonl", [[(0, 0), (1, 1)], [(0, 2), (1, 0), (2, 1)]])
    mine = write(tmp_path / "mine.jsonl", [[(1, 1)], [(0, 2), (1, 0), (2, 1)]])
    command = [sys.executable, str(SCRIPTS / "errors.py")]
    done = subprocess.run([*command, gold, mine], capture_output=True, text=True, check=True)
    assert "2 pairs, 1 of them exact; 5 gold links, 1 missed, 0 spurious." in done.stdout
    short = write(tmp_path / "short.jsonl", [[(1, 1)]])
    done = subprocess.run([*command, gold, short], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "has 1 pairs, and" in done.stderr and not done.stdout


def test_another_pair_s_answer_is_an_error(tmp_path) -> None:
    gold = write(tmp_path / "gold.jsonl", [[(0, 0)], [(0, 0)]])
    (tmp_path / "other.jsonl").write_text(
        "".join(json.dumps({"source": ["a"], "target": ["b"], "sure": []}) + "\n" for _ in range(2))
    )
    with pytest.raises(JacanaError, match="not those of"):
        errors.from_files(gold, str(tmp_path / "other.jsonl"))


def test_rows_of_an_ablation() -> None:
    """Differences are to the first row: all pairs are lost, one is, none is."""
    pair = SentencePair(Sentence(("a", "b")), Sentence(("a", "b")))
    gold, wrong = (Alignment(2, 2, frozenset(links)) for links in ({(0, 0), (1, 1)}, {(0, 1)}))
    examples = [Example(pair, gold)] * 10
    found = {"nothing": [gold] * 10, "all": [wrong] * 10, "one": [*[gold] * 9, wrong], "none": [gold] * 10}
    lines = ablation.table("backward", examples, found, rounds=200).splitlines()
    assert lines[0] == "10 pairs, backward:"
    rows = {cells[1]: cells[2:-1] for line in lines[4:] if (cells := [x.strip() for x in line.split("|")])}
    assert rows["nothing"] == ["100.00"] * 4 + [""] * 4
    assert rows["all"][:4] == ["0.00"] * 4 and rows["all"][4] == "-100.00 [-100.00, -100.00]"
    assert float(rows["all"][5]) < 0.05 and rows["none"][4:] == ["+0.00 [+0.00, +0.00]", "1.000"] * 2
    assert (
        rows["one"][:4] == ["90.00"] * 4 and rows["one"][6].startswith("-10.00 [") and float(rows["one"][7]) == 1
    )
    assert np.unique([line.count("|") for line in lines[2:]]).size == 1


class FakeValidation:
    """Records what it is asked, and returns alignments of known quality."""

    links = "sure"

    def __init__(self) -> None:
        pair = SentencePair(Sentence(("a",)), Sentence(("a",)))
        self.right, self.empty = (Alignment(1, 1, frozenset(links)) for links in ({(0, 0)}, set()))
        self.examples, self.asked = [Example(pair, self.right)] * 3, []

    def __call__(self, drop=()) -> dict:
        self.asked.append(list(drop))
        worse = [self.empty, self.right, self.right] if drop else [self.right] * 3
        return {"backward": worse, "forward": [self.empty] * 3}


def test_each_family_is_left_out_once() -> None:
    validation = FakeValidation()
    text = ablation.ablation(validation, ["pos", "string"], rounds=50)
    assert validation.asked == [[], ["pos"], ["string"]]
    assert "3 pairs, backward:" in text and "| pos | 66.67 |" in text and "| string | 66.67 |" in text
    assert "3 pairs, forward:" in ablation.ablation(FakeValidation(), [], which="forward", rounds=50)
    with pytest.raises(JacanaError, match="unknown direction"):
        ablation.ablation(FakeValidation(), [], which="sideways")
