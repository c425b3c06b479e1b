"""The description of the API (OpenAPI 3.1) that /openapi.json returns and /docs shows."""

from __future__ import annotations

from typing import Any

from ..symmetrize import functions
from ..version import __version__
from . import Limits
from .work import Models, spelt

Schema = dict[str, Any]

REFUSALS = {
    "400": "The body is not JSON, or holds NaN or half a surrogate pair.",
    "401": "The server has a token, and the request does not.",
    "403": "The server does not answer for this host.",
    "408": "The body did not arrive in time.",
    "413": "The body, the number of pairs, a sentence or the cost of the request exceeds the limits.",
    "415": "The content type is not application/json.",
    "422": "The JSON is not a valid request; the message says where and why.",
    "429": "The client asks too often, or many large requests of it wait. `Retry-After`: when to try again.",
    "503": "The server is busy. `Retry-After` says in how many seconds to try again.",
}
EXAMPLE = {"source": "She bought a used car.", "target": "A second-hand car was purchased by her."}
ALIGN_EXAMPLES = {
    "one pair": EXAMPLE,
    "many, of text or tokens": {
        "pairs": [
            {"id": "1", **EXAMPLE},
            {"id": "2", "source": ["already", "split"], "target": ["split", "already"]},
        ],
        "symmetrize": "grow-diag-final",
        "confidence": False,
    },
}
EXPLAIN_EXAMPLES = {"one link": {**EXAMPLE, "link": [1, 5], "top": 5}, "all links": {**EXAMPLE, "top": 3}}


def description(models: Models, limits: Limits) -> Schema:
    """Describe the API of a server with these models and limits."""
    about = (
        "Bodies are JSON in UTF-8 with `Content-Type: application/json`. Concurrent requests are batched. "
        f"A request may have {limits.pairs} pairs in {limits.body} bytes, a sentence {limits.tokens} tokens and "
        f"{limits.characters} characters. A request costs the cells of its pairs (tokens x tokens; long words and "
        f"explanations count more), {limits.cost} at most. Cheap requests do not wait for expensive ones. "
        f"{limits.queue} cells may wait, and an answer takes at most {limits.seconds:g} s."
    )
    align = _post(
        "align",
        "Align one pair of sentences, or many",
        "Strings are tokenised, lists of tokens are used as they are; links count tokens from 0. Each alignment "
        "is what `jacana-torch align --to jsonl` prints for the pair.",
        ALIGN_EXAMPLES,
        takes="AlignRequest",
        gives="Alignments",
    )
    explain = _post(
        "explain",
        "Explain why two words are linked, or are not",
        "For every link, or for the two words of `link`: one sentence, at most five groups of evidence, and for "
        "each direction the features that support it and oppose it, the best competing position, and the margin "
        "between the two.",
        EXPLAIN_EXAMPLES,
        takes="ExplainRequest",
        gives="Explanation",
    )
    responses = {status: _answer(text, "Error") for status, text in REFUSALS.items()}
    for status in ("429", "503"):
        responses[status]["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jacana-torch",
            "version": __version__,
            "summary": "Which words of two English sentences correspond",
            "description": about,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/align": {"post": align},
            "/explain": {"post": explain},
            "/models": {"get": _get("The models of this server, and its limits", "listModels", "Models")},
            "/healthz": {"get": _get("The state of this server", "health", "Health")},
        },
        "components": {"schemas": _requests(models, limits) | _responses(), "responses": responses},
    }


def _post(name: str, summary: str, about: str, examples: dict[str, Any], takes: str, gives: str) -> Schema:
    named = {title: {"value": value} for title, value in examples.items()}
    return {
        "operationId": name,
        "summary": summary,
        "description": about,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _ref(takes), "examples": named}},
        },
        "responses": {
            "200": _answer("The answer.", gives),
            **{status: {"$ref": f"#/components/responses/{status}"} for status in REFUSALS},
        },
    }


def _get(summary: str, name: str, gives: str) -> Schema:
    return {"operationId": name, "summary": summary, "responses": {"200": _answer(f"{summary}.", gives)}}


def _answer(text: str, schema: str) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": _ref(schema)}}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), /, closed: bool = False, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


TEXT, WHOLE, SHARE = {"type": "string"}, {"type": "integer"}, {"type": "number", "minimum": 0, "maximum": 1}
LINK = _list({**WHOLE, "minimum": 0}, minItems=2, maxItems=2, description="source token, target token, from 0")
OFFSETS = _list(
    _list({**WHOLE, "minimum": 0}, minItems=2, maxItems=2),
    description="start and end of each token in the string that was sent, in characters; absent for lists",
)
SIDES = ("source", "target")


def _requests(models: Models, limits: Limits) -> dict[str, Schema]:
    pair = {"id": {"type": ["string", "null"]}, "source": _ref("Sentence"), "target": _ref("Sentence")}
    how = {
        "model": {"enum": [*models.names, None], "default": models.names[0]},
        "symmetrize": {
            "enum": [*map(spelt, functions()), None],
            "description": "how the two directions are combined; by default, the model's own way",
        },
    }
    sentence = {
        "description": "a text, or its tokens",
        "oneOf": [
            {"type": "string", "maxLength": limits.characters},
            _list({"type": "string", "minLength": 1}, maxItems=limits.tokens),
        ],
    }
    confidence = {
        "type": "boolean",
        "default": True,
        "description": "the probability of each link; false is faster",
    }
    top = {"type": ["integer", "null"], "minimum": 1, "description": "reasons in each list; by default, all"}
    many = _list(_ref("Pair"), maxItems=limits.pairs)
    return {
        "Sentence": sentence,
        "Pair": _object(SIDES, True, **pair),
        "AlignRequest": {"oneOf": [_ref("OnePair"), _ref("ManyPairs")]},
        "OnePair": _object(SIDES, True, **pair, **how, confidence=confidence),
        "ManyPairs": _object(("pairs",), True, pairs=many, **how, confidence=confidence),
        "ExplainRequest": _object(SIDES, True, **pair, **how, link={**LINK, "type": ["array", "null"]}, top=top),
    }


def _responses() -> dict[str, Schema]:
    alignment = _object(
        ("source", "target", "sure", "possible"),
        id=TEXT,
        source=_list(TEXT),
        target=_list(TEXT),
        source_offsets=OFFSETS,
        target_offsets=OFFSETS,
        sure=_list(LINK),
        possible=_list(LINK),
        confidence={"type": "object", "additionalProperties": SHARE, "description": "of each link, as `i-j`"},
        score={"type": "number", "description": "log-probability of the whole, per token"},
    )
    model = _object(
        ("name", "description", "symmetrize", "symmetrizers", "explains"),
        name=TEXT,
        description=TEXT,
        symmetrize={"type": ["string", "null"], "description": "the default"},
        symmetrizers=_list(TEXT),
        explains={"type": "boolean"},
    )
    lane = _object(("requests", "pairs", "cost"), requests=WHOLE, pairs=WHOLE, cost=WHOLE)
    return {
        "Alignments": _object(("model", "alignments"), model=TEXT, alignments=_list(_ref("Alignment"))),
        "Alignment": alignment,
        **_explanations(),
        "Models": _object(("models", "limits"), models=_list(_ref("Model")), limits=_object()),
        "Model": model,
        "Health": _object(
            ("status", "version", "waiting", "lanes"),
            status={"enum": ["ok", "stopping"]},
            version=TEXT,
            waiting={**WHOLE, "description": "pairs that wait"},
            lanes=_object(("light",), light=lane, heavy=lane),
        ),
        "Error": _object(("error",), error=_object(("status", "message"), status=WHOLE, message=TEXT)),
    }


def _explanations() -> dict[str, Schema]:
    explanation = _object(
        ("model", "source", "target", "links"),
        model=TEXT,
        source=_list(TEXT),
        target=_list(TEXT),
        source_offsets=OFFSETS,
        target_offsets=OFFSETS,
        score={"type": ["number", "null"]},
        symmetrize={"type": ["string", "null"]},
        note={"type": "string", "description": "why there are no reasons, if there are none"},
        method={"type": "string", "description": "how contributions were computed, and what is approximate"},
        links=_list(_ref("LinkExplanation")),
    )
    side = {"type": ["object", "null"], "description": "what the tokens of one side chose, and why"}
    link = _object(
        ("source", "target", "linked"),
        source=WHOLE,
        target=WHOLE,
        linked={"type": "boolean"},
        confidence={**SHARE, "type": ["number", "null"]},
        reason={"type": "string", "description": "one sentence; each clause is true of the pair"},
        groups=_list(_ref("Group")),
        total={"type": "string", "description": "what the groups add up to"},
        cells=_list(_ref("Group")),
        verdict={"type": "string", "description": "how the two directions were combined"},
        forward=side,
        backward=side,
    )
    group = _object(
        ("title", "sum", "details"),
        title=TEXT,
        sum={
            "type": "number",
            "description": "of contributions; of a linear model, to the log-odds of the best path with the link "
            "against the best path without it, averaged over the directions; else to the log-odds of the link",
        },
        spread={
            "type": "number",
            "description": "how much of the sum may belong to other groups; 0 if it is exact",
        },
        details=_list(_object(("title", "contribution"), title=TEXT, contribution={"type": "number"})),
    )
    return {"Explanation": explanation, "LinkExplanation": link, "Group": group}
