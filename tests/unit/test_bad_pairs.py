"""Pairs that cannot be aligned: errors name the record, in Python and at the command line, and change no model."""

from __future__ import annotations

import json
import math
import pickle
import sys
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from jacana_torch import resources
from jacana_torch.annotate import perceptron, tokens
from jacana_torch.errors import ConfigError, PairError, PairTypeError
from jacana_torch.model import persist
from jacana_torch.model.model import Limits, Model
from jacana_torch.train.data import Dataset, annotated
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

GOOD, LINKS = ("the red dog sat", "the dog sat"), "0-0 2-1 3-2\n"
HALF = "\ud800"
LONG = "x" * 1001
MANY = ["owl"] * 2001
EXAMPLES = Path(__file__).parents[2] / "examples" / "gold.jsonl"
MODELS = [
    pytest.param(
        info.name,
        marks=pytest.mark.skipif(not all(map(resources.available, info.resources)), reason="not installed"),
    )
    for info in persist.shipped()
    if info.quick
]

BAD = {
    "the source is a float (nan), not a string or a list of tokens": (math.nan, "a"),
    "the target is None, not a string": ("a", None),
    "the pair is None, not two sentences": None,
    "the pair is a float (3.5), not two": 3.5,
    "the pair is a str ('ab'), not two": "ab",
    "the pair is a dict (": {"source": "a", "target": "b"},
    "the pair is a tuple (('a',)): 1 values instead": ("a",),
    "the pair is a list (['a', 'b', 'c']): 3 values": ["a", "b", "c"],
    "token 2 of the source is a float (nan), not a string": (["a", math.nan], ["b"]),
    "token 1 of the target is an int (5), not a string": (["a"], np.array([5], dtype=object)),
    "the source is a bytes (b'a')": (b"a", "a"),
    "the target is a set ({'a'})": ("a", {"a"}),
    "the source of the SentencePair is a str ('a')": SentencePair("a", "b"),  # type: ignore[arg-type]
    r"token 1 of the source is a str ('\ud800'), with half": (HALF, "a"),
    r"token 2 of the target is a str ('b\udc80')": (["a"], ["a", "b\udc80"]),
    "token 1 of the source's layer pos is a": SentencePair(Sentence(("a",), {"pos": (HALF,)}), Sentence(("a",))),
    "token 2 of the target has 1,001 letters": ("a", f"a {LONG}"),
    "a pair of 2001 x 2001 tokens is too large": (MANY, MANY),
    "a pair of 3001 x 1 tokens is too large": (["owl"] * 3001, ["owl"]),
}  # fmt: skip


class Nothing:
    """An aligner without links, which no pair that was given to it may break."""

    requires = ()

    def align(self, pairs):
        return [Alignment(len(pair.source), len(pair.target)) for pair in pairs]


@pytest.mark.parametrize("says", BAD)
@pytest.mark.parametrize("kind", [list, iter, tuple])
def test_an_error_names_the_record(says, kind):
    given = kind([*repeat(GOOD, 16), BAD[says], GOOD])
    with pytest.raises(PairError) as caught:
        Model(Nothing()).align(given)
    error = caught.value
    assert str(error).startswith(f"pair 17: {says}") and error.number == 17 and len(str(error)) < 200
    assert isinstance(error, ConfigError) and isinstance(error, ValueError)
    assert isinstance(error, TypeError) == isinstance(error, PairTypeError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.number) == (type(error), str(error), 17)


@pytest.mark.parametrize("given", [None, 5, math.nan, "ab", SentencePair(Sentence(("a",)), Sentence(("b",))), {}])
def test_what_is_no_list_of_pairs_is_an_error(given):
    with pytest.raises(TypeError, match="not a list of pairs"):
        Model(Nothing()).align(given)


def test_an_error_of_the_only_pair_has_no_number():
    with pytest.raises(PairError, match="^the source is None"):
        Model(Nothing()).explain((None, "a"))


def test_all_kinds_of_pairs_are_welcome():
    pairs = (
        GOOD,
        ["the dog", ["a", "b"]],
        np.array([["a b", "c"]])[0],
        (Sentence(("a",)), iter(["b", ""])),
        ("", ""),
    )
    sizes = [(a.n_source, a.n_target) for a in Model(Nothing()).align(pair for pair in pairs)]
    assert sizes == [(4, 3), (2, 2), (2, 1), (1, 2), (0, 0)]


def test_limits_can_be_raised():
    model = Model(Nothing(), limits=Limits(letters=1001, tokens=3001, cells=2001**2))
    assert len(model.align([("a", LONG), (MANY, MANY), (["owl"] * 3001, ["owl"])])) == 3
    with pytest.raises(ConfigError, match="letters=0"):
        Limits(letters=0)


# Nothing changes


def exactly(alignments: list[Alignment]) -> list[tuple]:
    return [(sorted(a.confidence.items()), a.score) for a in alignments]


def fresh(name: str) -> Model:
    """A model that remembers nothing of what was aligned before."""
    perceptron.load.cache_clear()
    tokens._known_lemmas.clear()
    return persist.load(name)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[list[str], list[str]]]:
    lines = map(json.loads, EXAMPLES.read_text().splitlines())
    return [(line["source"], line["target"]) for line in lines]


@pytest.mark.parametrize("name", MODELS)
def test_a_call_that_fails_changes_nothing(name, pairs):
    untouched = fresh(name)
    expected = [exactly(untouched.align(pairs[k : k + 4])) for k in range(0, 12, 4)]
    model = fresh(name)
    found = []
    for k in range(0, 12, 4):
        for bad in BAD.values():
            with pytest.raises(PairError):
                model.align([*pairs[k : k + 4], ("a flombulating quax", "the quax"), bad])
        found.append(exactly(model.align(pairs[k : k + 4])))
    assert found == expected


class Interruption(Exception):
    pass


class Profiler:
    """Notes the calls in modules that keep something, and interrupts one of them."""

    KEEP = ("perceptron.py", "tokens.py", "words.py")

    def __init__(self, at: int = -1) -> None:
        self.at, self.calls = at, list[str]()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_filename.endswith(self.KEEP) and event in ("call", "c_call"):
            self.calls.append(frame.f_code.co_name)
            if len(self.calls) == self.at:
                raise Interruption

    def align(self, model: Model, pairs: Sequence) -> None:
        sys.setprofile(self)
        try:
            model.align(pairs, confidence=False)
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_call_changes_nothing(name, pairs):
    """Anywhere: in the middle of tagging, of looking words up, of entering what was computed into a cache."""
    pairs = pairs[3:6]
    expected = exactly(fresh(name).align(pairs))
    whole = Profiler()
    whole.align(fresh(name), pairs)
    places = set(np.linspace(1, len(whole.calls), 5, dtype=int).tolist())
    for function, step in (("_numbered", 3), ("lemmas", 50), ("look_up", 5), ("_keep", 5)):
        places.update([at for at, call in enumerate(whole.calls, start=1) if call == function][::step])
    for at in sorted(places):
        model = fresh(name)
        with pytest.raises(Interruption):
            Profiler(at).align(model, pairs)
        assert exactly(model.align(pairs)) == expected, whole.calls[at - 1]


# At the command line


def line_of(source: str, target: str) -> str:
    return json.dumps({"source": source, "target": target})


OVERLONG = {
    "letters": line_of(f"a {LONG}", "a b"),
    "tokens": line_of("x " * 3001, "a"),
    "cells": line_of("x " * 2001, "y " * 2000),
    "after tokenising": line_of("!?" * 1001, "!?" * 1001),
}


@pytest.fixture
def with_a_bad_line(tmp_path) -> Callable[[str], Path]:
    def write(bad: str) -> Path:
        path, good = tmp_path / "pairs.jsonl", [line_of(*GOOD)] * 25
        path.write_text("\n".join([*good, bad, *good]) + "\n")
        return path

    return write


@pytest.mark.parametrize("why", OVERLONG)
def test_one_pair_beyond_the_limits_costs_one_pair(cli, model, with_a_bad_line, why):
    path = with_a_bad_line(OVERLONG[why])
    code, found, err = cli("align", str(path), "--model", model)
    assert (code, found) == (2, LINKS * 25) and f"{path}:26:" in err and err.count("\n") == 1
    code, found, err = cli("align", str(path), "--model", model, "--skip-bad")
    assert (code, found) == (0, LINKS * 25 + "\n" + LINKS * 25)
    assert f"{path}:26:" in err and "skipped 1 bad item" in err


def test_a_bad_pair_costs_as_much_with_workers_and_in_other_formats(cli, model, with_a_bad_line, tmp_path):
    path, out = with_a_bad_line(OVERLONG["cells"]), tmp_path / "links"
    given = ["align", str(path), "--model", model]
    code, found, err = cli(*given, "--skip-bad", "--workers", "2", "--batch-size", "4")
    assert (code, found) == (0, LINKS * 25 + "\n" + LINKS * 25) and f"{path}:26:" in err
    assert cli(*given, "--output", str(out))[0] == 2 and not out.exists()
    code, found, err = cli(*given, "--skip-bad", "--to", "jsonl", "--confidence")
    assert code == 0 and [bool(json.loads(line)["sure"]) for line in found.splitlines()].count(False) == 1


@pytest.mark.slow
def test_limits_are_options(cli, model):
    raised = ["--max-letters", "1001", "--max-tokens", "3001"]
    stdin = f"a {LONG}\ta {LONG}\n{'x ' * 3001}\ta\n"
    code, out, err = cli("align", "--model", model, "--pretokenized", *raised, stdin=stdin)
    assert (code, out.splitlines()[0]) == (0, "0-0 1-1"), err
    code, out, err = cli("align", "--model", model, "--max-cells", "5", stdin="a b\ta b\na b\ta b c\n")
    assert (code, out) == (2, "0-0 1-1\n") and "<stdin>:2: a pair of 2 x 3 tokens is too large (5 cells" in err
    code, out, _ = cli("align", "--help")
    assert code == 0 and all(f"({value:,})" in out for value in vars(Limits()).values())


BLOCK = """# sentence pair {} (test corpus)
a b
NULL ({{ }}) a ({{ 1 }}) {} ({{ 2 }})
"""


def test_the_line_of_a_bad_pair_is_known_in_every_format(cli, model, tmp_path):
    blocks = tmp_path / "pairs.msr"
    blocks.write_text("".join(BLOCK.format(k, LONG if k == 2 else "b") for k in (1, 2, 3)))
    array = tmp_path / "pairs.json"
    array.write_text(json.dumps([{"source": "a", "target": t} for t in ("a", LONG, "a")], indent=1))
    for path, line in ((blocks, 4), (array, 6)):
        code, out, err = cli("align", str(path), "--model", model)
        assert (code, out.count("\n")) == (2, 1) and f"{path}:{line}: token" in err, err
        code, out, err = cli("align", str(path), "--model", model, "--skip-bad")
        assert (code, out.count("\n"), out.splitlines()[1]) == (0, 3, ""), err


def test_other_commands_name_the_pair(cli, model, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(f"a b\ta\na {LONG}\ta\n")
    code, _, err = cli(
        "view", str(path), "--from", "text", "--model", model, "--output", str(tmp_path / "page.html")
    )
    assert code == 2 and f"{path}: pair 2: token 2 of the source has 1,001 letters" in err
    code, _, err = cli("explain", "--model", model, "a b", LONG)
    assert code == 2 and "token 1 of the target has 1,001 letters" in err


def test_training_names_the_pair():
    good, bad = (SentencePair(Sentence(("a",)), Sentence((token,)), f"id-{token[:3]}") for token in ("a", LONG))
    train, dev = [Example(good)] * 3, [Example(good), Example(bad)]
    with pytest.raises(PairError, match=r"^dev pair 2 \(id-xxx\): token 1 of the target has 1,001 letters"):
        annotated(Model(Nothing()), Dataset(train, dev))
    with pytest.raises(PairError, match=r"^training pair 2 \(id-xxx\): token 1"):
        annotated(Model(Nothing()), Dataset(dev, train))
