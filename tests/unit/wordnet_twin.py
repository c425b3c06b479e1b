"""WordNet by walking NLTK's objects, and made-up databases for both to read."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np

from jacana_torch.resources.wordnet_graph import RELATIONS

SUFFIX = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
SYNSET_SYMBOLS = ["@", "@", "@i", "*", ">", "&", "#m", "#s", "#p", "$", "^"]
INVERSE = {"@": "~", "@i": "~i", "#m": "%m", "#s": "%s", "#p": "%p"}
STEMS = ["bod", "Cat", "dres", "fishes", "gladly", "hen", "ice_cream", "jog", "kin", "low", "men", "wolves", "Men"]


def write_database(folder: Path, seed: int) -> Path:
    """A small random database in WordNet's format: several senses, cased forms, markers, all pointers we read."""
    rng = random.Random(seed)
    synsets = []
    for pos in "nvar":
        for _ in range(rng.randint(6, 10)):
            words = rng.sample(STEMS, rng.randint(1, 3))
            if len({word.lower() for word in words}) < len(words):
                words = words[:1]
            synsets.append({"pos": pos, "words": words, "pointers": []})
    for _ in range(90):
        a, b = rng.randrange(len(synsets)), rng.randrange(len(synsets))
        symbol = rng.choice(SYNSET_SYMBOLS)
        if a == b or (symbol.startswith("@") and a < b):  # hypernyms make no circle
            continue
        symbols = [(a, symbol, b)] + [(b, INVERSE.get(symbol), a)] * (symbol in INVERSE)
        for source, sign, target in symbols:
            synsets[source]["pointers"].append((sign, target, 0, 0))
    for _ in range(30):
        a, b = rng.randrange(len(synsets)), rng.randrange(len(synsets))
        i, j = rng.randint(1, len(synsets[a]["words"])), rng.randint(1, len(synsets[b]["words"]))
        synsets[a]["pointers"].append((rng.choice(["!", "+", "\\"]), b, i, j))
    head, *others = [k for k, synset in enumerate(synsets) if synset["pos"] == "a"]
    for satellite in others[::2]:
        synsets[satellite]["pos"] = "s"
        synsets[satellite]["pointers"].append(("&", head, 0, 0))
    folder.mkdir(parents=True)
    _write_files(folder, synsets, rng)
    return folder


def _line(synset: dict, synsets: list[dict]) -> str:
    marker = "(p)" if synset["pos"] == "a" else ""
    words = " ".join(f"{word}{marker} 0" for word in synset["words"])
    pointers = "".join(
        f" {sign} {synsets[target].get('offset', 0):08d} {synsets[target]['pos']} {i:02x}{j:02x}"
        for sign, target, i, j in dict.fromkeys(synset["pointers"])
    )
    frames = " 01 + 02 00" if synset["pos"] == "v" else ""
    head = f"{synset.get('offset', 0):08d} 03 {synset['pos']} {len(synset['words']):02x} {words}"
    return f'{head} {len(dict.fromkeys(synset["pointers"])):03d}{pointers}{frames} | what it means; "so | so"  \n'


def _write_files(folder: Path, synsets: list[dict], rng: random.Random) -> None:
    licence = "  1 This database is made up.  \n"
    for pos in SUFFIX:
        at = len(licence)
        for synset in (s for s in synsets if s["pos"].replace("s", "a") == pos):
            synset["offset"] = at
            at += len(_line(synset, synsets).replace(" | so", " - so"))
    for pos, suffix in SUFFIX.items():
        own = [s for s in synsets if s["pos"].replace("s", "a") == pos]
        lines = "".join(_line(s, synsets).replace(" | so", " - so") for s in own)
        (folder / f"data.{suffix}").write_text(licence + lines)
        index = licence
        for form in sorted({word.lower() for s in own for word in s["words"]}):
            senses = [s["offset"] for s in own if form in (w.lower() for w in s["words"])]
            rng.shuffle(senses)
            count = len(senses)
            index += f"{form} {pos} {count} 2 @ ~ {count} 0 {' '.join(f'{o:08d}' for o in senses)}  \n"
        (folder / f"index.{suffix}").write_text(index)
        (folder / f"{suffix}.exc").write_text("wolves wolf\ncats hen cat\n" if pos == "n" else "jogged low\n")
    (folder / "lexnames").write_text("".join(f"{k:02d}\tnoun.x{k}\t1\n" for k in range(45)))
    for name in ("cntlist.rev", "index.sense"):
        (folder / name).write_text("")


def nltk_reader(folder: Path, monkeypatch):
    """NLTK's reader, which accepts only what is under nltk.data.path."""
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version="wordnet"):  # for other languages; it looks for a second WordNet in corpora/
            return None

    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(folder.parent)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Reader(str(folder), None)


class Slow:
    """Every relation by walking NLTK's objects, sense by sense."""

    METHODS = {
        "entailing": "entailments", "causing": "causes", "member_of": "member_holonyms", "similar": "similar_tos",
        "substance_of": "substance_holonyms", "part_of": "part_holonyms", "verb_group": "verb_groups",
    }  # fmt: skip
    INVERSES = {
        "entailed_by": "entailing", "caused_by": "causing", "has_member": "member_of",
        "has_substance": "substance_of", "has_part": "part_of", "hyponym": "hypernym",
        "hyponym_deep": "hypernym_deep",
    }  # fmt: skip

    def __init__(self, reader, depth: int) -> None:
        self.reader, self.depth = reader, depth

    def senses(self, query):
        return self.reader.synsets(query[0].replace(" ", "_"), query[1])

    def lemmas(self, query):
        found = []
        for pos in query[1] or "nvar":
            for form in self.reader._morphy(query[0].lower().replace(" ", "_"), pos):
                for synset in self.reader.synsets(form, pos, check_exceptions=False):
                    found += [lemma for lemma in synset.lemmas() if lemma.name().lower() == form]
        return found

    def above(self, synset):
        return {*synset.hypernyms(), *synset.instance_hypernyms()}

    def all_above(self, synset):
        reached, edge = set(), {synset}
        for _ in range(self.depth):
            edge = set().union(*map(self.above, edge)) if edge else set()
            reached |= edge
        return reached

    def holds(self, relation: str, left, right) -> bool:
        if relation in self.INVERSES:
            return self.holds(self.INVERSES[relation], right, left)
        here, there = self.senses(left), set(self.senses(right))
        if relation == "synonym":
            return bool(there & set(here))
        if relation == "hypernym":
            return any(there & self.above(s) for s in here)
        if relation == "hypernym_deep":
            return any(there & self.all_above(s) for s in here)
        if relation == "sister":
            return any(a != b and self.above(a) & self.above(b) for a in here for b in there)
        if relation in self.METHODS:
            return any(there & set(getattr(s, self.METHODS[relation])()) for s in here)
        method = {"antonym": "antonyms", "derived": "derivationally_related_forms", "pertainym": "pertainyms"}[
            relation
        ]
        named = {(lemma.synset(), lemma.name().lower()) for lemma in self.lemmas(right)}
        return any(
            (other.synset(), other.name().lower()) in named
            for lemma in self.lemmas(left)
            for other in getattr(lemma, method)()
        )


def check_relations(net, reader, left, right, depth: int) -> dict[str, int]:
    found = net.related(left, right, depth=depth)
    assert tuple(found) == RELATIONS
    slow = Slow(reader, depth)
    for name, values in found.items():
        assert values.dtype == bool and values.shape == (len(left),)
        for k, (a, b) in enumerate(zip(left, right, strict=True)):
            assert values[k] == slow.holds(name, a, b), (name, a, b)
    queries = [*left, *right]  # some stand there twice
    there = np.arange(len(left))
    both = net.related_both_ways(queries, there, there + len(left), depth)
    for got, expected in zip(both, (found, net.related(right, left, depth=depth)), strict=True):
        assert tuple(got) == RELATIONS
        assert all(np.array_equal(got[name], expected[name]) for name in RELATIONS)
    return {name: int(values.sum()) for name, values in found.items()}
