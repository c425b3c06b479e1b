"""Sentence pairs from templates: as many as a test wants, with gold links and every annotation layer.

The sentences are nobody's: a template is filled with words by a seeded generator.
"""

from __future__ import annotations

from random import Random

from jacana_torch.types import Alignment, Example, Sentence, SentencePair

# A token is word/tag/head/relation/key; equal keys are linked. A word in capitals is filled, the two sides of a
# filled one differ where its list gives two words.
TEMPLATES = (
    (
        "the/DT/2/det/a ADJ/JJ/2/amod/b NOUN/NN/3/nsubj/c VERB/VBD/-1/ROOT/d the/DT/5/det/e THING/NN/3/dobj/f "
        "in/IN/3/prep/g PLACE/NNP/6/pobj/h ././3/punct/i",
        "in/IN/5/prep/g PLACE/NNP/0/pobj/h ,/,/5/punct/- the/DT/4/det/e THING/NN/5/nsubjpass/f VERB/VBN/-1/ROOT/d "
        "by/IN/5/agent/- the/DT/9/det/a ADJ/JJ/9/amod/b NOUN/NN/6/pobj/c ././5/punct/i",
    ),
    (
        "FIRST/NNP/1/compound/a LAST/NNP/2/nsubj/b VERB/VBD/-1/ROOT/c NUMBER/CD/4/nummod/d THINGS/NNS/2/dobj/e "
        "yesterday/NN/2/npadvmod/f ././2/punct/g",
        "yesterday/NN/3/npadvmod/f ,/,/3/punct/- LAST/NNP/3/nsubj/b VERB/VBD/-1/ROOT/c NUMBER/CD/5/nummod/d "
        "THINGS/NNS/3/dobj/e ././3/punct/g",
    ),
    (
        "the/DT/1/det/a NOUN/NN/2/nsubj/b VERB/VBD/-1/ROOT/c the/DT/4/det/d THING/NN/2/dobj/e and/CC/2/cc/f "
        "the/DT/7/det/g ADJ/JJ/2/conj/h THINGS/NNS/4/conj/i",
        "the/DT/1/det/d THING/NN/2/nsubj/e was/VBD/-1/ROOT/- VERB/VBN/2/acl/c by/IN/3/agent/- a/DT/6/det/- "
        "NOUN/NN/4/pobj/b",
    ),
)
WORDS = {
    "ADJ": "big/large old/ancient small/little quick/fast red/red quiet/silent",
    "NOUN": "doctor/physician teacher/teacher farmer/farmer lawyer/attorney sailor/seaman",
    "VERB": "bought/purchased carried/carried repaired/fixed painted/painted sold/sold",
    "THING": "car/automobile bridge/bridge boat/ship chair/chair picture/image",
    "THINGS": "cars/cars books/books houses/homes lamps/lamps",
    "PLACE": "Bergen/Bergen Oslo/Oslo Turin/Turin",
    "FIRST": "Anna/Anna Peter/Peter Maria/Maria",
    "LAST": "Berg/Berg Nilsen/Nilsen Rossi/Rossi",
    "NUMBER": "2/two 3/three 40/40 1,000/1000",
}
ENTITIES = {"PLACE": "B-GPE", "FIRST": "B-PERSON", "LAST": "I-PERSON", "NUMBER": "B-CARDINAL"}


def corpus(n: int, seed: int = 1) -> list[Example]:
    """n examples; the same for the same seed."""
    random = Random(seed)
    return [_example(random, f"made-{seed}-{k}") for k in range(n)]


def layerless(examples: list[Example]) -> list[Example]:
    """The same words and links without annotation."""
    return [
        Example(SentencePair(Sentence(e.pair.source.tokens), Sentence(e.pair.target.tokens), e.pair.id), e.gold)
        for e in examples
    ]


def _example(random: Random, name: str) -> Example:
    chosen = {slot: random.choice(words.split()).split("/") for slot, words in WORDS.items()}
    template = random.choice(TEMPLATES)
    stop = random.random() < 0.5
    texts = [[token for token in side.split() if stop or not token.startswith("./")] for side in template]
    sides = [_sentence(tokens, chosen, k) for k, tokens in enumerate(texts)]
    (source, left), (target, right) = sides
    links = {(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b != "-"}
    return Example(SentencePair(source, target, name), Alignment(len(left), len(right), frozenset(links)))


def _sentence(texts: list[str], chosen: dict[str, list[str]], side: int) -> tuple[Sentence, list[str]]:
    rows = [text.split("/") for text in texts]
    words = [chosen[row[0]][side] if row[0] in chosen else row[0] for row in rows]
    heads = [int(row[2]) for row in rows]
    heads = [head if head < len(rows) else -1 for head in heads]
    ner = [ENTITIES.get(row[0], "O") for row in rows]
    ner = ["B-PERSON" if x == "I-PERSON" and (k == 0 or ner[k - 1] == "O") else x for k, x in enumerate(ner)]
    layers = {
        "pos": [row[1] for row in rows],
        "lemma": [word.lower() for word in words],
        "head": heads,
        "deprel": [row[3] for row in rows],
        "ner": ner,
    }
    return Sentence(tuple(words), layers), [row[4] for row in rows]
