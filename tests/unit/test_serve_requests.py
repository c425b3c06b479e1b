"""Parsing of requests, and the messages of refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.errors import ConfigError
from jacana_torch.model import persist
from jacana_torch.serve import Limits
from jacana_torch.serve.requests import Refused, align_request, explain_request
from jacana_torch.serve.work import Alignments, Explanations, Models

LIMITS = Limits(tokens=6, pairs=3, cost=700)
ONE = {"source": "The dog sleeps.", "target": ["a", "dog"]}


@pytest.fixture(scope="module")
def models(model) -> Models:
    tiny = persist.load(model)
    tiny.limits = replace(tiny.limits, letters=65)
    return Models({"tiny": tiny, "bag": persist.load("bag_of_words")})


def refusal(models, body, read=align_request) -> tuple[int, str]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(Refused) as refused:
        read(content, models, LIMITS)
    return refused.value.status, refused.value.message


def asked(models, body, read=align_request):
    return read(json.dumps(body).encode(), models, LIMITS)


def test_text_is_tokenised_and_tokens_are_not(models):
    (pair,) = asked(models, ONE).pairs
    assert pair.source.tokens == ("The", "dog", "sleeps", ".") and pair.source.text == "The dog sleeps."
    assert pair.target.tokens == ("a", "dog") and pair.target.text is None
    assert pair.id is None


def test_the_default_is_the_first_model_with_its_own_symmetrizer(models):
    assert asked(models, ONE).question == Alignments("tiny", None, True)
    said = {**ONE, "model": "tiny", "symmetrize": " Grow_Diag ", "confidence": False}
    assert asked(models, said).question == Alignments("tiny", "grow-diag", False)
    assert asked(models, {"pairs": []}).pairs == []
    nothing = dict.fromkeys(("id", "model", "symmetrize", "confidence"))
    assert asked(models, {**ONE, **nothing}) == asked(models, ONE)


def test_many_pairs_keep_their_order_and_names(models):
    pairs = asked(models, {"pairs": [{**ONE, "id": "b"}, {"source": "", "target": []}, ONE]}).pairs
    assert [pair.id for pair in pairs] == ["b", None, None]
    assert [len(pair.source) for pair in pairs] == [4, 0, 4]


def test_an_explanation_may_be_restricted_to_one_link(models):
    body = {**ONE, "link": [3, 1], "top": 4, "symmetrize": "union"}
    assert asked(models, body, explain_request).question == Explanations("tiny", "union", (3, 1), 4)
    assert asked(models, ONE, explain_request).question == Explanations("tiny")


BAD = [
    (b"\xff{}", 400, "the body is not UTF-8: byte 0xff at 0"),
    (b"", 400, "the body is not JSON: Expecting value at line 1, column 1"),
    (b'{"source": "a",\n}', 400, "line 2, column 1"),
    (b'{"source": NaN}', 400, "source is NaN, which is not a JSON number"),
    (b'-Infinity', 400, "the body is -Infinity"),
    (b'{"pairs": [{"source": "a", "target": "b"}, {"source": ["c", NaN], "target": "d"}]}', 400,
     "pairs[1].source[1] is NaN"),
    (b"[" * 100_000, 400, "nested too deeply"),
    (b"1" * 5000, 400, "the body is not JSON"),
    ([ONE], 422, "should be a JSON object and is [{"),
    ({}, 422, "source is missing: give a string or a list of tokens"),
    ({"source": "a"}, 422, "target is missing"),
    ({"source": 3, "target": "b"}, 422, "source should be a string or a list of tokens and is 3"),
    ({"source": ["a", None], "target": "b"}, 422, 'a list of tokens and is ["a", null]'),
    ({"source": ["a", ""], "target": "b"}, 422, "source[1] is an empty token"),
    ({"source": "a", "target": "\ud83d"}, 400, "target has half a surrogate pair at character 0"),
    ({"source": "a", "target": ["b", "c\udc00"]}, 400, "target[1] has half a surrogate pair at character 1"),
    ({"pairs": [ONE, ONE, {**ONE, "id": "\udfff"}]}, 400, "pairs[2].id has half a surrogate pair"),
    ({**ONE, "model": "\ud800"}, 400, "model has half a surrogate pair"),
    ({**ONE, "\ud800": 1}, 400, "the name of a field of the body has half a surrogate pair"),
    ({**ONE, "id": 4}, 422, "id should be a string and is 4"),
    ({**ONE, "symetrize": "union"}, 422, "did you mean symmetrize?"),
    ({**ONE, "colour": 1}, 422, "there are confidence, id, model, pairs, source, symmetrize, target"),
    ({**ONE, "symmetrize": "sideways"}, 422, "there is no symmetrizer 'sideways'; there are intersection,"),
    ({**ONE, "symmetrize": ["union"]}, 422, "symmetrize should be a string"),
    ({**ONE, "symmetrize": "union", "model": "bag"}, 422, "bag has one direction"),
    ({**ONE, "model": "../../etc/passwd"}, 422, 'one of tiny, bag and is "../../etc/passwd"'),
    ({**ONE, "model": ["tiny"]}, 422, "model should be one of tiny, bag"),
    ({**ONE, "confidence": 1}, 422, "confidence should be true or false and is 1"),
    ({**ONE, "pairs": []}, 422, "not both pairs and source and target"),
    ({"pairs": ONE}, 422, "pairs should be a list"),
    ({"pairs": [ONE, 5]}, 422, "pairs[1] should be an object with source and target and is 5"),
    ({"pairs": [ONE, {"source": "a"}]}, 422, "pairs[1].target is missing"),
    ({"pairs": [{**ONE, "link": [0, 0]}]}, 422, 'pairs[0] has the unknown field "link"'),
    ({"pairs": [ONE] * 4}, 413, "has 4 pairs, more than the limit of 3"),
    ({"pairs": [ONE, {"source": "a b c d e f g", "target": ""}]}, 413, "pairs[1].source has 7 tokens, more than"),
    ({"source": ["x"] * 300, "target": "b"}, 413, "source has 300 tokens, more than the limit of 6"),
    ({"source": ["x"] * 10_000, "target": "b"}, 413, "source has 10000 tokens"),
    ({"source": "x " * 10_000, "target": "b"}, 413, "source has 20000 characters"),
    ({"source": "a", "target": ["x" * 1000]}, 413, "target has 1000 characters"),
    ({"pairs": [ONE, {"source": ["x" * 70], "target": "b"}]}, 422, "pairs[1]: token 1 of the source has 70"),
    ({"source": "b", "target": ["b", "x" * 70]}, 422, "token 2 of the target has 70 letters"),
    ({"pairs": [{"source": ["x" * 60] * 6, "target": ["x" * 60] * 6}] * 2}, 413, "send fewer of its 2 pairs"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "message"), BAD, ids=lambda value: str(value)[:30])
def test_refusals_say_what_is_wrong(models, body, status, message):
    found, text = refusal(models, body)
    assert found == status and message in text
    assert len(text) < 300  # quotes are shortened


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"link": [4, 0]}, "link 4-0 is out of range for 4 x 2 tokens"),
        ({"link": [0, -1]}, "out of range"),
        ({"link": [0]}, "link should be [i, j], counted from 0, and is [0]"),
        ({"link": [0, True]}, "link should be [i, j]"),
        ({"link": "0-0"}, "link should be [i, j]"),
        ({"top": 0}, "top should be a whole number above 0 and is 0"),
        ({"top": 2.5}, "top should be a whole number"),
        ({"pairs": []}, 'the unknown field "pairs"'),
        ({"source": " "}, "source has no words"),
        ({"model": "bag"}, "the model bag cannot explain its links; models that can: tiny"),
    ],
)
def test_refusals_of_explanations_say_what_is_wrong(models, more, message):
    status, text = refusal(models, {**ONE, **more}, explain_request)
    assert status == 422 and message in text


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
fields = ("source", "target", "pairs", "id", "model", "symmetrize", "confidence", "link", "top")


@given(
    st.dictionaries(st.sampled_from(fields), anything) | anything,
    st.sampled_from((align_request, explain_request)),
)
def test_any_json_is_parsed_or_refused(models, body, read):
    try:
        found = read(json.dumps(body).encode(), models, LIMITS)
    except Refused as refused:
        assert 400 <= refused.status < 500 and refused.message
    else:
        assert len(found.pairs) <= LIMITS.pairs
        assert all(len(side) <= LIMITS.tokens for pair in found.pairs for side in (pair.source, pair.target))


@given(st.binary(max_size=60))
def test_whatever_bytes_are_sent(models, body):
    with pytest.raises(Refused):
        align_request(b"\x00" + body, models, LIMITS)


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"seconds": -1.0}, {"cost": 50, "queue": 49}])
def test_limits_that_cannot_be(wrong):
    with pytest.raises(ConfigError):
        Limits(**wrong)
