"""Feature names for people."""

from __future__ import annotations

FAMILIES = {
    "string": "spelling",
    "position": "place in the sentence",
    "context": "neighbours",
    "distortion": "jump",
    "pos": "tags",
    "wordnet": "WordNet",
    "distsim": "word vectors",
    "dependency": "parse",
    "attachment": "what it hangs on",
    "contextual": "meaning in the sentence",
    "ppdb": "paraphrases",
    "ner": "names",
    "kinds": "neighbours of such words",
    "sultan": "Sultan et al.",
}


def told(feature: str) -> str:
    """`wordnet.verb_group` as `WordNet: verb group`; what is not known keeps its name."""
    family, _, name = feature.partition(".")
    return f"{FAMILIES.get(family, family)}: {name.replace('_', ' ')}" if name else feature
