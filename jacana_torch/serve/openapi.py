"""The description of the API that /openapi.json gives and /docs shows: models and limits in, OpenAPI 3.1 out."""

from __future__ import annotations

from typing import Any

from ..symmetrize import SYMMETRIZERS
from ..version import __version__
from .limits import Limits
from .work import Models, spelt

Schema = dict[str, Any]

REFUSALS = {
    "400": "The body is no JSON.",
    "408": "The body took too long to come.",
    "413": "The body, the number of pairs or a sentence is larger than the limits.",
    "415": "The content type is not application/json.",
    "422": "The JSON does not say what can be answered; the message says where and why.",
    "503": "Too much waits already. `Retry-After` says in how many seconds to try again.",
}
EXAMPLE = {"source": "She bought a used car.", "target": "A second-hand car was purchased by her."}


def described(models: Models, limits: Limits) -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jacana-torch",
            "version": __version__,
            "summary": "Which words of two English sentences correspond",
            "description": _about(limits),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/align": {"post": _align()},
            "/explain": {"post": _explain()},
            "/models": {"get": _get("The models of this server, and its limits", "listModels", "Models")},
            "/healthz": {"get": _get("Whether the server is well", "health", "Health")},
        },
        "components": {
            "schemas": _schemas(models, limits),
            "responses": {status: _refusal(status, text) for status, text in REFUSALS.items()},
        },
    }


def _about(limits: Limits) -> str:
    return (
        "Bodies are JSON in UTF-8 with `Content-Type: application/json`. Requests that come at the same time are "
        f"answered together. A request may have {limits.pairs} pairs in {limits.body} bytes, a sentence "
        f"{limits.tokens} tokens and {limits.characters} characters; {limits.queue} pairs may wait, and an answer "
        f"takes {limits.seconds:g} s at the most."
    )


def _align() -> Schema:
    return _post(
        "align",
        "Align one pair of sentences, or many",
        "Strings are tokenised, lists of tokens taken as they are; links count tokens from 0. Each alignment is "
        "what `jacana-torch align --to jsonl` prints for the pair.",
        {
            "one pair": EXAMPLE,
            "many, of text or tokens": {
                "pairs": [
                    {"id": "1", **EXAMPLE},
                    {"id": "2", "source": ["already", "split"], "target": ["split", "already"]},
                ],
                "symmetrize": "grow-diag-final",
                "confidence": False,
            },
        },
        "AlignRequest",
        "Alignments",
    )


def _explain() -> Schema:
    return _post(
        "explain",
        "Say why two words are linked, or are not",
        "Of every link, or of the one that `link` names, there or not: what each direction's features say for and "
        "against it, what came second, and by how much.",
        {"one link": {**EXAMPLE, "link": [1, 5], "top": 5}, "all links": {**EXAMPLE, "top": 3}},
        "ExplainRequest",
        "Explanation",
    )


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
    return {"operationId": name, "summary": summary, "responses": {"200": _answer(summary + ".", gives)}}


def _answer(text: str, schema: str) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": _ref(schema)}}}


def _refusal(status: str, text: str) -> Schema:
    waits = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    return {**_answer(text, "Error"), **({"headers": waits} if status == "503" else {})}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), /, closed: bool = False, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _schemas(models: Models, limits: Limits) -> dict[str, Schema]:
    text, whole = {"type": "string"}, {"type": "integer"}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    link = _list({**whole, "minimum": 0}, minItems=2, maxItems=2, description="source token, target token, from 0")
    pair = {"id": {"type": ["string", "null"]}, "source": _ref("Sentence"), "target": _ref("Sentence")}
    how = {
        "model": {"enum": [*models.names, None], "default": models.names[0]},
        "symmetrize": {
            "enum": [*map(spelt, SYMMETRIZERS), None],
            "description": "how the two directions are joined; without it, the model's own way",
        },
    }
    sentence = {
        "description": "a text, or its tokens",
        "oneOf": [
            {"type": "string", "maxLength": limits.characters},
            _list({"type": "string", "minLength": 1}, maxItems=limits.tokens),
        ],
    }
    many = _list(_ref("Pair"), maxItems=limits.pairs)
    confidence = {
        "type": "boolean",
        "default": True,
        "description": "the probability of each link; false is faster",
    }
    top = {"type": ["integer", "null"], "minimum": 1, "description": "reasons of each list; without it, all"}
    sides = ("source", "target")
    return {
        "Sentence": sentence,
        "Pair": _object(sides, True, **pair),
        "AlignRequest": {"oneOf": [_ref("OnePair"), _ref("ManyPairs")]},
        "OnePair": _object(sides, True, **pair, **how, confidence=confidence),
        "ManyPairs": _object(("pairs",), True, pairs=many, **how, confidence=confidence),
        "Alignments": _object(("model", "alignments"), model=text, alignments=_list(_ref("Alignment"))),
        "Alignment": _alignment(link, share),
        "ExplainRequest": _object(sides, True, **pair, **how, link={**link, "type": ["array", "null"]}, top=top),
        "Explanation": _explanation(),
        "LinkExplanation": _link_explanation(share),
        "Models": _object(("models", "limits"), models=_list(_ref("Model")), limits=_object()),
        "Model": _model(),
        "Health": _object(("status", "version", "waiting"), status={"const": "ok"}, version=text, waiting=whole),
        "Error": _object(
            ("error",), error=_object(("status", "message"), status=whole, message={"type": "string"})
        ),
    }


def _alignment(link: Schema, share: Schema) -> Schema:
    tokens = _list({"type": "string"})
    return _object(
        ("source", "target", "sure", "possible"),
        id={"type": "string"},
        source=tokens,
        target=tokens,
        sure=_list(link),
        possible=_list(link),
        confidence={"type": "object", "additionalProperties": share, "description": "of each link, as `i-j`"},
        score={"type": "number", "description": "log-probability of the whole, a token"},
    )


def _explanation() -> Schema:
    tokens, maybe = _list({"type": "string"}), {"type": ["string", "null"]}
    return _object(
        ("model", "source", "target", "links"),
        model={"type": "string"},
        source=tokens,
        target=tokens,
        score={"type": ["number", "null"]},
        symmetrize=maybe,
        note={"type": "string", "description": "why there are no reasons, if there are none"},
        links=_list(_ref("LinkExplanation")),
    )


def _link_explanation(share: Schema) -> Schema:
    side = {"type": ["object", "null"], "description": "what the tokens of one side chose, and why"}
    return _object(
        ("source", "target", "linked"),
        source={"type": "integer"},
        target={"type": "integer"},
        linked={"type": "boolean"},
        confidence={**share, "type": ["number", "null"]},
        verdict={"type": "string", "description": "what was made of the two directions"},
        forward=side,
        backward=side,
    )


def _model() -> Schema:
    return _object(
        ("name", "description", "symmetrize", "symmetrizers", "explains"),
        name={"type": "string"},
        description={"type": "string"},
        symmetrize={"type": ["string", "null"], "description": "its own way"},
        symmetrizers=_list({"type": "string"}),
        explains={"type": "boolean"},
    )
