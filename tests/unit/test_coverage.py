"""jt.coverage: what a text expresses of a reference; the command, its figures and exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jacana_torch as jt
from jacana_torch import resources
from jacana_torch.cli import main
from jacana_torch.differences import covering
from jacana_torch.errors import JacanaError, PairTypeError

REFERENCE = "The committee approved the budget on Monday. It gives the harbour two million dollars."


@pytest.fixture(scope="module")
def core():
    return jt.load("core")


def test_a_text_covers_itself_and_nothing_covers_nothing(core):
    found = jt.coverage(REFERENCE, REFERENCE, core)
    assert found.value == found.support == 1 and not found.uncovered and not found.unsupported
    assert jt.coverage(REFERENCE, "", core).value == 0 and jt.coverage("", REFERENCE, core).value == 1
    assert jt.coverage(REFERENCE, "", core).support == 1


def test_it_is_asymmetric_and_weighted(core):
    part = "The committee approved the budget on Monday."
    found, other = jt.coverage(REFERENCE, part, core), jt.coverage(part, REFERENCE, core)
    assert 0.3 < found.value < 0.8 and found.support == 1
    assert (other.value, other.support) == (1, pytest.approx(found.value))
    assert {"harbour", "dollars"} <= {word.text for word in found.uncovered}
    for word in found.uncovered:
        assert REFERENCE[slice(*word.place)] == word.text and 0 < word.weight <= 1
    # exactly the weights of the words
    total = sum(word.weight for word in found.uncovered)
    assert found.value == pytest.approx(1 - total / found.weight)


def test_the_order_of_sentences_does_not_matter(core):
    first, second = REFERENCE.split(". ")
    assert jt.coverage(REFERENCE, f"{second} {first}.", core).value == 1


def test_other_numbers_and_negations_cover_nothing(core):
    found = jt.coverage("The harbour gets 20 million dollars.", "The harbour gets 30 million dollars.", core)
    assert [(word.text, word.instead) for word in found.uncovered] in ([("20", "30")], [("20", "")])
    found = jt.coverage("The committee approved it.", "The committee has not approved it.", core)
    assert [(word.text, word.instead) for word in found.uncovered] == [("approved", "approved")]


def test_antonyms_cover_nothing():
    if not all(map(resources.available, ("wordnet", "tagger", "glove-840b"))):
        pytest.skip("the model standard needs wordnet, tagger and glove-840b")
    found = jt.coverage("The water was hot.", "The water was cold.", "standard")
    assert "hot" in {word.text for word in found.uncovered}


def test_long_texts_compare_the_most_similar_sentences(core):
    many = " ".join(f"Number {k} is the word {word}." for k, word in enumerate("oak elm ash fir yew box".split()))
    assert jt.coverage(many, many, core).value == 1
    assert [w.text for w in jt.coverage(f"{many} A whale swam.", many, core).uncovered] == ["whale", "swam"]


def test_a_corpus_has_a_mean_and_an_interval(core):
    pairs = [(REFERENCE, REFERENCE), (REFERENCE, ""), (REFERENCE, "The budget.")]
    found = jt.corpus_coverage(pairs, core, rounds=200)
    values = [one.value for one in found.each]
    assert found.value == pytest.approx(np.mean(values)) and found.interval[0] < found.value < found.interval[1]
    assert found == jt.corpus_coverage(pairs, core, rounds=200)
    assert found.weighted == pytest.approx(found.value)  # the references weigh the same
    assert "|n:3|rounds:200|seed:1|" in found.signature
    with pytest.raises(JacanaError, match="at least one pair"):
        jt.corpus_coverage([], core)
    with pytest.raises(PairTypeError):
        jt.coverage(["a"], "a", core)


def test_every_word_is_in_a_pair_of_similar_sentences():
    from jacana_torch.differences.splitting import sentences

    texts = [sentences(" ".join(f"Word{k % 5} came {k} times." for k in range(n))) for n in (9, 12)]
    found = covering._similar(*texts)
    assert {i for i, _ in found} == set(range(9)) and {j for _, j in found} == set(range(12))


def test_the_command(tmp_path, capsys):
    (tmp_path / "a").write_text(f"{REFERENCE}\nA whale swam.\n")
    (tmp_path / "b").write_text(f"{REFERENCE}\n...\n")
    files = [str(tmp_path / "a"), str(tmp_path / "b"), "--model", "core", "--rounds", "50"]
    assert main(["coverage", *files, "--fail-under", "40", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["coverage"] == 0.5 and figures["pairs"] == 2
    assert main(["coverage", *files, "--fail-under", "60"]) == 1
    out, err = capsys.readouterr()
    assert "coverage   50.00  (0.00-100.00)" in out and "coverage 50.00 is below 60" in err
    assert main(["coverage", *files, "--each"]) == 0
    each = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [word["word"] for word in each[1]["uncovered"]] == ["whale", "swam"]
    assert main(["coverage", *files, "--whole"]) == 0
    assert "uncovered: whale, swam" in capsys.readouterr().out
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"source": REFERENCE, "target": REFERENCE}) + "\n")
    assert main(["coverage", str(tmp_path / "pairs.jsonl"), "--model", "core", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"] == 1
    (tmp_path / "b").write_bytes("One.\u2028\x0bTwo.\r\n\r\n".encode())  # two lines, in every format
    assert main(["coverage", *files, "--json"]) == 0
    assert main(["coverage", *files, "--seed", "-1"]) == 2
    assert "seed=-1: a whole number from 0" in capsys.readouterr().err
    assert main(["coverage", "-", "-"]) == 2
    (tmp_path / "b").write_bytes(b"One.\n\xff\n")
    assert main(["coverage", *files]) == 2
    assert "b:2: byte 0xff is not UTF-8" in capsys.readouterr().err
    (tmp_path / "b").write_text("one line\n")
    assert main(["coverage", *files]) == 2
    assert "2 lines, but" in capsys.readouterr().err
    assert main(["coverage", files[0], "--whole"]) == 2 and main(["coverage", *files, "--fail-under", "101"]) == 2
