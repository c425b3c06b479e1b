"""Words and pairs of words of one batch: what families compute once for each, however often it occurs.

All of it lasts as long as the batch, but for `KnownWords` and `KnownPairs`, which aligning uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, repeat
from operator import attrgetter, methodcaller
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..types import Sentence
from ..util.geometry import Ints

if TYPE_CHECKING:
    from .grid import WordTable

T = TypeVar("T")
Word = Any  # a string, or a tuple with the values of layers
Compute = Callable[[list[Word]], "Sequence[Any] | np.ndarray"]


@dataclass(frozen=True)
class WordKey:
    """What makes two tokens the same word: equal forms, and equal values of some layers.

    `form` is a function of the token: `str` for the token itself, None to ignore it. A word is a string, or a
    tuple of the form (unless that is None) and the layers' values. Functions are compared by identity, so keys
    belong in module constants.
    """

    form: Callable[[str], str] | None
    layers: tuple[str, ...] = ()

    def words(
        self, sentences: Sequence[Sentence], columns: dict[object, tuple[list[Any], Ints]]
    ) -> tuple[list[Word], Ints]:
        """The distinct words of some sentences, and which of them each token is.

        `columns` keeps the distinct values of tokens and layers for other keys.
        """
        own: list[tuple[list[Any], Ints]] = []
        for name in (self.form, *self.layers) if self.form is not None else self.layers:
            if name not in columns:
                get = methodcaller("layer", name) if isinstance(name, str) else attrgetter("tokens")
                values, number = numbered(chain.from_iterable(map(get, sentences)))
                if callable(name):
                    values, form = numbered(map(name, values))
                    number = form[number]
                columns[name] = [*values, None], number  # the last is that of -1
            own.append(columns[name])
        if not self.layers:
            values, number = own[0]
            return values[:-1], number
        code = own[0][1] % len(own[0][0])
        for values, number in own[1:]:
            _, code = np.unique(code * len(values) + number % len(values), return_inverse=True)
        place = np.empty(code.max(initial=-1) + 1, np.int64)  # a token of each word
        place[code] = np.arange(len(code))
        parts: list[Iterable[Any]] = []
        for values, number in own:
            parts.append(map(values.__getitem__, number[place].tolist()))
        return list(zip(*parts, strict=True)), code


def numbered(values: Iterable[Hashable]) -> tuple[list[Any], Ints]:
    """Distinct values in order of first appearance, and which of them each value is; -1 for None."""
    number: defaultdict[Hashable, int] = defaultdict(count().__next__, {None: -1})
    numbers = np.fromiter(map(number.__getitem__, values), np.int64)
    del number[None]
    return list(number), numbers


MOST_WORDS = 1 << 14  # that are known: then all are forgotten; seen once: then these are


class KnownWords:
    """What was computed of words that come back, for the batches to come. Threads may share it.

    A word has a number, from 1 on, as soon as it occurs twice in a batch, or in two batches: most new words of a
    text, such as misspellings, never come back. Values are computed of words of the present batch alone, and kept
    when all of them are there, so a word that `compute` cannot take fails in its own batches only.
    """

    def __init__(self) -> None:
        self._room = MOST_WORDS
        self._lock = RLock()
        self._number: dict[Word, int] = {}
        self._seen_once: set[Word] = set()
        self._columns: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}  # values, and which of them are there
        self.mapped: dict[Hashable, KnownWords] = {}  # what is known of the words that these are mapped to
        self.is_full = False

    def numbers(self, words: Sequence[Word], again: np.ndarray, wait: bool = True) -> Ints:
        """[W] the number of each word, -1 for those without one.

        Those that occur `again` [W] get one, and with `wait` the others too, the next time that they occur.
        """
        with self._lock:
            numbers = np.fromiter(map(self._number.get, words, repeat(-1)), np.int64, len(words))
            if len(self._seen_once) > self._room:
                self._seen_once = set()
            for k in np.flatnonzero(numbers < 0 if wait else (numbers < 0) & again).tolist():
                if not again[k] and words[k] not in self._seen_once:
                    self._seen_once.add(words[k])
                elif not self.is_full:
                    numbers[k] = self._number[words[k]] = len(self._number) + 1
                    self.is_full = len(self._number) >= self._room
                    self._seen_once.discard(words[k])
        return numbers

    def values(self, name: Hashable, words: list[Word], number: Ints, compute: Compute) -> np.ndarray:
        """[W, ...] `compute(words)`, computed of those words alone of which it is not known."""
        kept, there = self._columns.get(name, (np.zeros(0, np.void), np.zeros(self._room + 2, dtype=bool)))
        new = np.flatnonzero(~there[number])  # -1 is the last place, which stays empty
        if not len(new):
            return kept[number] if len(words) else np.asarray(compute(words))
        computed = np.asarray(compute(list(map(words.__getitem__, new.tolist()))))
        if computed.dtype != kept.dtype or computed.shape[1:] != kept.shape[1:]:  # the first, or longer strings
            if len(new) < len(words):
                new, computed = np.arange(len(words)), np.asarray(compute(words))
            kept, there = np.empty((self._room + 2, *computed.shape[1:]), computed.dtype), np.zeros_like(there)
            self._columns[name] = kept, there
        values = kept[number]
        values[new] = computed
        lasting = new[number[new] > 0]
        kept[number[lasting]] = values[lasting]
        there[number[lasting]] = True  # last: threads and interruptions find whole values only
        return values


@dataclass(frozen=True)
class Lexicon:
    """The W distinct words of a batch, and what is computed of each: by the first family that asks.

    `compute` takes words one by one: what it gives for a word may not depend on the others. It is called for words
    that are not `known` only; `number` [W] are the words' numbers there.
    """

    words: list[Word]
    known: KnownWords | None = None
    number: Ints = field(default_factory=partial(np.arange, 0), repr=False)
    _memo: dict[tuple[str, Hashable], Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.words)

    def attribute(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[W, ...] `compute(words)`."""
        key = "attribute", name
        if key not in self._memo:
            if self.known is None:
                self._memo[key] = np.asarray(compute(self.words))
            else:
                self._memo[key] = self.known.values(name, self.words, self.number, compute)
        values: np.ndarray = self._memo[key]
        return values

    def named(self, name: Hashable, compute: Compute) -> tuple[tuple[str, ...], Ints]:
        """The distinct names that `compute(words)` gives, and [W] the number of each word's; -1 for None."""
        key = "named", name
        if key not in self._memo:
            names, number = numbered(self.attribute(key, partial(_as_objects, compute)).tolist())
            self._memo[key] = tuple(names), number
        names_and_number: tuple[tuple[str, ...], Ints] = self._memo[key]
        return names_and_number

    def codes(self, name: Hashable, compute: Compute) -> Ints:
        """[W] equal numbers for words of equal values, strings; "" and None equal nothing, not even each other.

        The numbers are hashes of 63 bits, so that they outlive the batch: different values have different ones.
        """
        code = self.attribute(("codes", name), partial(_hashes, compute))
        return np.where(code < 0, -1 - np.arange(len(code)), code)

    def mapped(self, name: Hashable, of: Callable[[Word], Hashable]) -> tuple[Lexicon, Ints]:
        """The lexicon of the distinct values of `of(word)`, and [W] the number of each word's."""
        key = "mapped", name
        if key not in self._memo:
            values, number = numbered(self.attribute(key, partial(_as_objects, partial(map, of))).tolist())
            lexicon = Lexicon(values)
            if self.known is not None:
                known = self.known.mapped.setdefault(name, KnownWords())
                again = np.zeros(len(values), dtype=bool)
                again[number[self.number > 0]] = True
                lexicon = Lexicon(values, known, known.numbers(values, again, wait=False))
            self._memo[key] = lexicon, number
        mapped: tuple[Lexicon, Ints] = self._memo[key]
        return mapped


def _hashes(compute: Callable[[list[Word]], Iterable[str | None]], words: list[Word]) -> Ints:
    """[W] the hash of each value, equal in this process alone; -1 for "" and None."""
    values = list(compute(words))
    there = np.fromiter(map(bool, values), bool, len(values))
    return np.where(there, np.fromiter(map(hash, values), np.int64, len(values)) & np.int64(2**63 - 1), -1)


def _as_objects(compute: Callable[[list[Word]], Iterable[Any]], words: list[Word]) -> np.ndarray:
    return np.fromiter(compute(words), dtype=object, count=len(words))


@dataclass(frozen=True)
class WordPairs:
    """U pairs of words: `left` and `right` [U] are numbers in the lexicon. `swapped`: seen from the other side."""

    lexicon: Lexicon
    left: Ints
    right: Ints
    swapped: bool = False
    _shared: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def flipped(self) -> WordPairs:
        """The same pairs seen from the other side; the two share what `shared` computes."""
        return WordPairs(self.lexicon, self.right, self.left, not self.swapped, self._shared)

    def shared(self, name: Hashable, compute: Callable[[], T]) -> T:
        """What is the same from either side, computed by the first family that asks."""
        if name not in self._shared:
            self._shared[name] = compute()
        value: T = self._shared[name]
        return value

    def mapped(self, name: Hashable, of: Callable[[Word], Hashable]) -> WordPairs:
        """The pairs of `of(word)`, under a name of their own: of the lemmas of words that are tuples, say."""
        key = "mapped", name
        if key not in self._shared:
            lexicon, number = self.lexicon.mapped(name, of)
            left, right = (self.right, self.left) if self.swapped else (self.left, self.right)
            self._shared[key] = WordPairs(lexicon, number[left], number[right])
        pairs: WordPairs = self._shared[key]
        return pairs.flipped() if self.swapped else pairs

    def some(self, rows: Ints) -> tuple[list[Word], Ints]:
        """The distinct words of the pairs `rows` [R], and [2, R] which of them are left and right."""
        used, number = np.unique(np.array((self.left[rows], self.right[rows])), return_inverse=True)
        return list(map(self.lexicon.words.__getitem__, used.tolist())), number.reshape(2, -1)

    def equal(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` gives both words the same value."""
        codes = self.lexicon.codes(name, compute)
        same: np.ndarray = codes[self.left] == codes[self.right]
        return same

    def both(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` holds of both words."""
        holds = self.lexicon.attribute(name, compute).astype(bool, copy=False)
        both: np.ndarray = holds[self.left] & holds[self.right]
        return both


@dataclass(frozen=True)
class Signal:
    """A number for any two words, which several families read: `compute(pairs)` gives [U] of them.

    Signals of one name and key are the same. The fewer bits `precision` has, the faster are the computations with
    neighbouring cells. A `flipped` signal takes the words from the other side.
    """

    name: Hashable
    key: WordKey
    compute: Callable[[WordPairs], np.ndarray] = field(compare=False, repr=False)
    precision: type[np.floating[Any]] = field(default=np.float32, compare=False)
    flipped: bool = False

    def of(self, pairs: WordPairs) -> np.ndarray:
        """[U] the signal of word pairs."""
        return np.asarray(self.compute(pairs.flipped() if self.flipped else pairs), dtype=self.precision)


SLOT_BITS, WAYS = 19, 4
AT_ONCE = 1 << 14  # word pairs that are computed together, so that they stay in the cache
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(eq=False)
class KnownPairs:
    """Words and signals of word pairs that outlive a batch: in running text, most of them were seen before.

    All signals ever asked for are kept, of as many pairs as there is room for. What is kept never changes a result
    beyond rounding, only the time: with it, `core` takes 27% less CPU time for a corpus that is repeated with
    misspellings (20,000 pairs) and `standard` 20%, and both a fifth less memory. Threads may share it.
    """

    _tables: dict[WordKey, _Table] = field(init=False, repr=False, default_factory=dict)
    _lock: RLock = field(init=False, repr=False, default_factory=RLock)

    def __reduce__(self) -> tuple[type[KnownPairs], tuple[()]]:  # another process starts its own
        return KnownPairs, ()

    def lexicon(self, key: WordKey, words: list[Word], number: Ints) -> Lexicon:
        """The lexicon of a batch whose tokens are these words by `number`."""
        with self._lock:
            table = self._tables.setdefault(key, _Table())
            if table.words.is_full:
                table.forget()
            known = table.words
        again = np.bincount(number, minlength=len(words)) > 1
        return Lexicon(words, known, known.numbers(words, again))

    def per_cell(
        self, asked: Signal, words: WordTable, source_token: np.ndarray, target_token: np.ndarray
    ) -> dict[Signal, np.ndarray]:
        """Return signals [C] of the two words of each cell, given its two tokens.

        These are all signals of the key that were asked for before. A signal that is new is returned alone, and
        remembered from the next batch on.
        """
        with self._lock:
            table = self._tables.get(asked.key)
            if table and table.words is words.lexicon.known:  # else these were forgotten, for another thread
                if asked in table.signals:
                    return table.look_up(words, source_token, target_token)
                table.signals = [*table.signals, asked]
        return {asked: asked.of(words.pairs)[words.cell]}


@dataclass
class _Table:
    """Signals by slot; a pair of words may have any of a few slots.

    Only pairs of words that are known are kept. A new pair takes a slot that is empty, or whose pair was not asked
    for since it came; otherwise, the pairs there have to be asked for once more to stay.
    """

    words: KnownWords = field(default_factory=KnownWords)
    signals: list[Signal] = field(default_factory=list)
    values: dict[Signal, np.ndarray] = field(default_factory=dict)

    def forget(self) -> None:
        """Start anew with other words, in the same memory."""
        if self.values:
            self.code[:] = 0  # first: an interruption leaves no pairs under the numbers of other words
        self.words = KnownWords()

    def look_up(
        self, words: WordTable, source_token: np.ndarray, target_token: np.ndarray
    ) -> dict[Signal, np.ndarray]:
        if list(self.values) != self.signals:  # a single batch needs no room
            self.code = np.zeros(1 << SLOT_BITS, dtype=np.int64)  # 0 is empty
            self.asked_again = np.zeros(1 << SLOT_BITS, dtype=bool)
            room = map(partial(np.empty, 1 << SLOT_BITS), map(attrgetter("precision"), self.signals))
            self.values = dict(zip(self.signals, room, strict=True))  # last: an interruption leaves all or nothing
        of_word = words.lexicon.number  # below 0 if unknown, as is then the code
        code = (of_word[words.source] << 32)[source_token] | of_word[words.target][target_token]
        slot, known = self._find(code)
        self.asked_again[slot[known]] = True
        found = {}
        for signal, values in self.values.items():
            found[signal] = values.take(slot)
        cells = np.flatnonzero(~known)
        if len(cells):
            size = len(words.lexicon.words)
            new = (words.source * size)[source_token[cells]] + words.target[target_token[cells]]
            new, first, place = np.unique(new, return_index=True, return_inverse=True)
            left, right, code = new // size, new % size, code[cells[first]]
            computed = {}
            for signal in self.values:
                computed[signal] = np.empty(len(new), signal.precision)
            for begin in range(0, len(new), AT_ONCE):
                some = slice(begin, begin + AT_ONCE)
                pairs = WordPairs(words.lexicon, left[some], right[some])
                for signal, of_new in computed.items():
                    of_new[some] = signal.of(pairs)
                self._keep(code, computed, some)
            for signal, of_new in computed.items():
                found[signal][cells] = of_new[place]
        return found

    def _find(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return [C] slots, and [C] whether these hold the codes."""
        slot = _slots(code)
        known = self.code[slot] == code
        others = np.flatnonzero(~known)  # most are in their first slot
        for way in range(1, WAYS):
            place = slot[others] ^ way
            there = self.code[place] == code[others]
            slot[others[there]], known[others[there]] = place[there], True
            others = others[~there]
        return slot, known

    def _keep(self, code: np.ndarray, found: dict[Signal, np.ndarray], some: slice) -> None:
        numbered = some.start + np.flatnonzero(code[some] > 0)
        ways = _slots(code[numbered])[:, None] ^ np.arange(WAYS)
        rank = np.where(self.code[ways] == 0, 0, 1 + self.asked_again[ways])
        best = np.take_along_axis(ways, rank.argmin(1)[:, None], 1)[:, 0]
        free = rank.min(1) < 2
        self.asked_again[ways[~free]] = False
        place, kept = best[free], numbered[free]
        self.code[place] = 0  # an interruption leaves no values under the code of another pair
        for signal, values in found.items():
            self.values[signal][place] = values[kept]
        self.code[place] = code[kept]


def _slots(code: np.ndarray) -> np.ndarray:
    slots: np.ndarray = (code.view(np.uint64) * _SCATTER >> np.uint64(64 - SLOT_BITS)).view(np.int64)
    return slots
