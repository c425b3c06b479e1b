"""The rules of features/approximate_parse.py, one sentence and one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

AUXILIARIES = set("""be is are was were been being am 's 're 'm have has had having do does did get got""".split())
MARKS = {"that", "because", "although", "if", "while", "whether"}
VERBS, DETERMINERS, OWNERS = ("VB",), {"DT", "PDT"}, {"PRP$"}


def parsed(tags: Sequence[str], tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    return Sentence(tags, tokens).parsed()


class Sentence:
    def __init__(self, tags: Sequence[str], tokens: Sequence[str]) -> None:
        self.tags, self.words, self.size = list(tags), [token.lower() for token in tokens], len(tags)
        self.phrases = self._phrases()
        self.phrase_of = {k: p for p in self.phrases for k in range(p[0], p[1] + 1)}
        self.head_of = {p: self._head(p) for p in self.phrases}
        self.adverbs = [self._is_adverb(k) and k not in self.phrase_of for k in range(self.size)]
        self.verbs = [t.startswith("VB") and k not in self.phrase_of for k, t in enumerate(self.tags)]
        self.helped = {k: v for k in range(self.size) for v in [self._helped(k)] if v is not None}
        self.mains = [(self.verbs[k] or self.tags[k] == "MD") and k not in self.helped for k in range(self.size)]
        self.nominals = [k in self.head_of.values() or self._pronoun(k) for k in range(self.size)]
        self.contents = [a or b for a, b in zip(self.mains, self.nominals, strict=True)]
        self.prepositions = [t == "IN" or (t == "TO" and k not in self.helped) for k, t in enumerate(self.tags)]
        self.marks = [t == "IN" and w in MARKS for t, w in zip(self.tags, self.words, strict=True)]

    # Looking around

    def back(self, k: int, true: Callable[[int], bool] | Sequence[bool]) -> int | None:
        return self._first(range(k - 1, -1, -1), true)

    def on(self, k: int, true: Callable[[int], bool] | Sequence[bool]) -> int | None:
        return self._first(range(k + 1, self.size), true)

    @staticmethod
    def _first(places: Iterable[int], true: Callable[[int], bool] | Sequence[bool]) -> int | None:
        return next((k for k in places if (true(k) if callable(true) else true[k])), None)

    # Kinds of words

    def _noun(self, k: int) -> bool:
        return self.tags[k].startswith("NN")

    def _is_adverb(self, k: int) -> bool:
        return self.tags[k].startswith("RB") or self.tags[k] in ("RP", "WRB")

    def _pronoun(self, k: int) -> bool:
        return self.tags[k] in ("PRP", "EX", "WP", "WDT")

    def _before_noun(self, k: int) -> bool:
        return self.tags[k].startswith("JJ") or self.tags[k] in ("CD", "$", "#", "DT", "PDT", "PRP$")

    def _in_phrase(self, k: int) -> bool:
        if self._noun(k) or self._before_noun(k) or self.tags[k] == "POS":
            return True
        if self.tags[k] not in ("VBN", "VBG") and not self._is_adverb(k):
            return False
        if not 0 < k < self.size - 1:
            return False
        return self._before_noun(k - 1) and (self._noun(k + 1) or self.tags[k + 1].startswith("JJ"))

    # Phrases

    def _phrases(self) -> list[tuple[int, int]]:
        """First and last tokens."""
        found: list[list[int]] = []
        for k in range(self.size):
            if not self._in_phrase(k):
                continue
            opens = self.tags[k] in ("DT", "PDT", "PRP$") and not (k and self.tags[k - 1] in ("DT", "PDT"))
            if found and found[-1][1] == k - 1 and not opens:
                found[-1][1] = k
            else:
                found.append([k, k])
        return [(a, b) for a, b in found]

    def _head(self, phrase: tuple[int, int]) -> int:
        first, last = phrase
        nouns = [k for k in range(first, last + 1) if self._noun(k)]
        if nouns:
            return nouns[-1]
        return last - 1 if self.tags[last] == "POS" and last > first else last

    def _inside(self, k: int) -> tuple[int, str]:
        """What a word of a phrase that is not its head hangs on."""
        first, last = phrase = self.phrase_of[k]
        head = self.head_of[phrase]
        name = {"DT": "det", "PDT": "det", "CD": "num", "$": "num", "#": "num", "POS": "case", "PRP$": "poss"}.get(
            self.tags[k], "nn" if self._noun(k) else "amod"
        )
        genitive = next((g for g in range(k, last + 1) if self.tags[g] == "POS"), None)
        if genitive is None or genitive > head:
            return head, name
        begin = next((g + 1 for g in range(genitive - 1, first - 1, -1) if self.tags[g] == "POS"), first)
        nouns = [g for g in range(begin, genitive) if self._noun(g)]
        owner = nouns[-1] if nouns else begin
        return (head, "poss") if k == owner else (owner, name)

    # Verbs

    def _helped(self, k: int) -> int | None:
        """The word after an auxiliary that it goes with, adverbs left out."""
        following = self.on(k, lambda i: not self.adverbs[i])
        if following is None or not self.verbs[following]:
            return None
        if self.tags[k] in ("MD", "TO") or (self.verbs[k] and self.words[k] in AUXILIARIES):
            return following
        return None

    def _verb(self, k: int, steps: int = 4) -> int:
        while k in self.helped and steps:
            k, steps = self.helped[k], steps - 1
        return k

    def _start(self, k: int) -> int:
        """The first token of the phrase or of the verbs that k is the last of."""
        if k in self.phrase_of:
            return self.phrase_of[k][0]
        for _ in range(4 if self.mains[k] else 0):
            earlier = self.back(k, lambda i: not self.adverbs[i])
            if earlier is None or earlier not in self.helped:
                break
            k = earlier
        return k

    # Rules

    def root(self) -> int:
        finite = self._first(range(self.size), lambda k: self.mains[k] and self.tags[k] != "VBG")
        if finite is not None:
            return finite
        content = self._first(range(self.size), self.contents)
        return 0 if content is None else content

    def parsed(self) -> tuple[list[int], list[str]]:
        if not self.size:
            return [], []
        root = self.root()
        found = [(-1, "root") if k == root else self._one(k, root) for k in range(self.size)]
        return [head for head, _ in found], [name for _, name in found]

    def _one(self, k: int, root: int) -> tuple[int, str]:
        if k in self.phrase_of and k not in self.head_of.values():
            return self._inside(k)
        if k in self.helped:
            return self._verb(k, 5), "aux"
        last, last_main = self.back(k, self.contents), self.back(k, self.mains)
        next_main = self.on(k, self.mains)
        if self.nominals[k] or self.mains[k]:
            return self._phrase_or_verb(k, root, last, last_main, next_main)
        if self.marks[k] and next_main is not None:
            return next_main, "mark"
        if self.prepositions[k]:
            return first_of(last, next_main, root), "prep"
        if self.adverbs[k]:
            before, behind = (f(k, lambda i: not self.adverbs[i]) for f in (self.back, self.on))
            parts = [i is not None and (self.mains[i] or i in self.helped) for i in (before, behind)]
            if parts[0]:
                return self._verb(behind if parts[1] else before, 5), "advmod"  # type: ignore[arg-type]
            return first_of(next_main, last_main, root), "advmod"
        name = "cc" if self.tags[k] == "CC" else "dep" if self.tags[k][0].isalpha() else "punct"
        return first_of(last, root), name

    def _phrase_or_verb(self, k, root, last, last_main, next_main) -> tuple[int, str]:
        start = self._start(k)
        end = self.phrase_of[k][1] if k in self.phrase_of else k
        left, right = start - 1, end + 1
        governor = self.back(k, lambda i: self.contents[i] or (self.prepositions[i] and not self.marks[i]))
        if governor is not None and self.contents[governor]:
            governor = None
        joint = self.back(k, lambda i: self.contents[i] or self.tags[i] == "CC")
        joined = joint is not None and self.tags[joint] == "CC"
        last_nominal = self.back(k, self.nominals)
        beside = self.head_of[self.phrase_of[left]] if left in self.phrase_of else None
        if self.nominals[k]:
            if self.tags[k] in ("WP", "WDT"):
                return first_of(next_main, last, root), "nsubj"
            if governor is not None:
                return governor, "pobj"
            if joined and last_nominal is not None:
                return last_nominal, "conj"
            if right < self.size and next_main is not None:
                follows = self.on(right, lambda i: not self.adverbs[i]) if self.adverbs[right] else right
                if follows is not None and (self.mains[follows] or follows in self.helped):
                    return next_main, "nsubj"
            if left >= 0 and self.mains[left]:
                return left, "dobj"
            if beside is not None:
                return beside, "dep"
            if last_main is not None:
                return last_main, "dep"
            return (root, "dep") if next_main is None else (next_main, "nsubj")
        if joined and last_main is not None:
            return last_main, "conj"
        if self.tags[k] in ("VBN", "VBG") and beside is not None:
            return beside, "acl"
        if left >= 0 and self.tags[left] in ("WP", "WDT"):
            antecedent = self.back(left, self.nominals)
            if antecedent is not None:
                return antecedent, "rcmod"
        if governor is not None:
            return governor, "pcomp"
        if last_main is not None:
            return last_main, "xcomp" if self.tags[start] == "TO" else "ccomp"
        return root, "dep"


def first_of(*tokens: int | None) -> int:
    return next(token for token in tokens if token is not None)
