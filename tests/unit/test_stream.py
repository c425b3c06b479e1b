"""`Model.align_stream`: order, numbers of errors, how far it reads, the end of its workers."""

from __future__ import annotations

import multiprocessing
import os
import pickle

import pytest
from variants import variants

import jacana_torch as jt
from jacana_torch.errors import ConfigError, PairError, PairTypeError
from jacana_torch.model import stream
from jacana_torch.types import Alignment, Sentence, SentencePair

PAIRS = [("the red dog", "a red dog"), (["old", "dog"], ["old", "dog"]), ("", "dog"), ("dog cat", "cat dog")] * 10
GIVEN = SentencePair(Sentence(("red",)), Sentence(("red", "dog")), "p1")


@pytest.fixture(scope="module")
def loaded(model) -> jt.Model:
    return jt.load(model)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_as_align_in_any_batches(loaded, workers, batch_size):
    pairs = [*PAIRS, GIVEN]
    expected = loaded.align(pairs)
    found = list(loaded.align_stream(iter(pairs), batch_size, workers))
    assert found == expected
    for one, other in zip(found, expected, strict=True):
        assert one.confidence == pytest.approx(dict(other.confidence)) and one.score == pytest.approx(other.score)
        assert one.pair.source.tokens == other.pair.source.tokens and one.pairs() == other.pairs()
    assert found[-1].pair.id == "p1" and found[0].explain(1, 1).source == 1


def test_spawned_workers_get_the_model(loaded, monkeypatch):
    monkeypatch.setattr(stream, "_method", lambda: "spawn")
    assert list(loaded.align_stream(PAIRS, 2, workers=2)) == loaded.align(PAIRS)
    assert pickle.loads(pickle.dumps(loaded)).align(PAIRS) == loaded.align(PAIRS)


def test_settings(loaded):
    assert not any(one.confidence for one in loaded.align_stream(PAIRS, confidence=False))
    assert list(loaded.align_stream(PAIRS, workers=None)) == loaded.align(PAIRS)
    forward = list(loaded.align_stream(PAIRS, symmetrize="forward"))
    assert forward == loaded.align(PAIRS, symmetrize="forward")
    for wrong in ({"batch_size": 0}, {"workers": 0}, {"workers": True}, {"on_error": "skip"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            loaded.align_stream(PAIRS, **wrong)
    for wrong in ("a b", {"a": "b"}, None, GIVEN, 7):
        with pytest.raises(PairTypeError, match="pairs is"):
            loaded.align_stream(wrong)


BAD = [("a dog", "dog"), ("a", float("nan")), ("x" * 2000, "a"), None, ("dog", "dog")]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_size", variants([2, 1, 100]))
def test_an_error_names_the_record(loaded, workers, batch_size):
    found = list(loaded.align_stream(PAIRS + BAD, batch_size, workers, on_error="yield"))
    assert [isinstance(one, PairError) for one in found] == [False] * 41 + [True] * 3 + [False]
    assert [(one.number, type(one)) for one in found[41:44]] == [
        (42, PairTypeError), (43, PairError), (44, PairTypeError)
    ]  # fmt: skip
    assert str(found[41]).startswith("pair 42: the target is a float (nan)")
    before = []
    with pytest.raises(PairError, match="^pair 42: the target is a float"):
        before.extend(one for one in loaded.align_stream(PAIRS + BAD, batch_size, workers))
    assert before == found[:41]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_input_comes_after_what_it_gave(loaded, workers):
    def pairs():
        yield from PAIRS[:5]
        raise RuntimeError("the line is dead")

    found = []
    with pytest.raises(RuntimeError, match="the line is dead"):
        for one in loaded.align_stream(pairs(), 3, workers):
            found.append(one)
    assert found == loaded.align(PAIRS[:5])


@pytest.mark.parametrize(("workers", "most"), [(1, 2), (2, 2 * (3 * 2 + 1))])
def test_the_input_is_not_read_far_ahead(loaded, workers, most):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield PAIRS[taken % len(PAIRS)]

    found = loaded.align_stream(endless(), 2, workers)
    assert taken == 0, "nothing is read before it is asked for"
    for number in range(1, 60):
        next(found)
        assert number <= taken <= number + most
    found.close()


def test_closing_ends_the_workers(loaded):
    found = loaded.align_stream(PAIRS * 10, 1, workers=2)
    for _ in range(12):
        next(found)
    children = multiprocessing.active_children()
    assert len(children) >= 2
    found.close()
    assert not [child for child in children if child.is_alive()]
    for child in children:
        with pytest.raises(OSError):
            os.kill(child.pid, 0)


def test_long_pairs_come_in_smaller_batches():
    long, short = " ".join(["word"] * 400), "a b"
    sizes = [len(batch) for batch in stream.batches([(long, long)] * 8 + [(short, short)] * 8, 100)]
    assert max(sizes[:-1]) <= 2 and sum(sizes) == 16


def test_words_and_plain_values():
    alignment = Alignment(2, 3, {(0, 0), (1, 2)}, {(1, 1)}, {(0, 0): 0.5}, -1.0)
    assert str(alignment) == "0-0 1p1 1-2" and str(Alignment(1, 1)) == ""
    assert alignment.pairs((["a", "b"], ["x", "y", "z"])) == [("a", "x"), ("b", "z")]
    assert alignment.to_dict() == {
        "n_source": 2, "n_target": 3, "sure": [[0, 0], [1, 2]], "possible": [[1, 1]], "confidence": {"0-0": 0.5},
        "score": -1.0,
    }  # fmt: skip
    known = alignment.of(SentencePair(Sentence(("a", "b")), Sentence(("x", "y", "z")), "7"))
    assert known.pairs() == [("a", "x"), ("b", "z")]
    assert known.to_dict()["id"] == "7" and known.to_dict()["source"] == ["a", "b"]
    assert "n_source" not in known.to_dict()
    with pytest.raises(jt.JacanaError, match="does not know its words"):
        alignment.pairs()
