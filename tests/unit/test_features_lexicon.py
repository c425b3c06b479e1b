"""Numbers and attributes of words: never changed, never computed twice, whatever comes in between."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
from feature_twin import interrupted_at
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features import lexicon as module
from jacana_torch.features.lexicon import Lexicon

words = st.text("abcAB'é", max_size=3)
batches = st.lists(st.lists(words, max_size=8), max_size=8)
MANY = [f"w{k}" for k in range(500)]


@given(batches)
def test_numbers_are_those_of_first_appearance(met):
    """Also where several spellings count as one word."""
    lexicon, expected = Lexicon(str.lower), {}
    for batch in met:
        got = lexicon.numbers(iter(batch))
        assert got.tolist() == [expected.setdefault(w.lower(), len(expected)) for w in batch]
        assert got.dtype == np.int64 and len(lexicon) == len(expected)
    assert lexicon.words == list(expected)


def figures(word: str) -> list[float]:
    return [len(word), sum(map(ord, word))]


@given(batches)
def test_attributes_are_computed_of_new_words_only(met):
    lexicon, asked, earlier = Lexicon(), [], []

    def compute(new: list[str]) -> list[list[float]]:
        asked.extend(new)
        return [figures(w) for w in new]

    for batch in met:
        lexicon.numbers(batch)
        values = lexicon.attribute("figures", compute)
        assert values.tolist() == [figures(w) for w in lexicon.words]
        earlier.append((values, values.tolist()))
    assert asked == (lexicon.words if met else [])
    assert all(values.tolist() == then for values, then in earlier)  # what was handed out stays as it was


def test_attributes_grow_far_and_keep_their_kind():
    """One word at a time, and many at once."""
    lexicon = Lexicon()
    for first, last in [(k, k + 1) for k in range(70)] + [(70, 71), (71, 500)]:
        lexicon.numbers(MANY[first:last])
        lower = lexicon.attribute("object", lambda new: np.array([w.upper() for w in new], dtype=object))
        flags = lexicon.attribute("flag", lambda new: np.array([w.endswith("7") for w in new], dtype=bool))
        assert lower.tolist() == [w.upper() for w in MANY[:last]] and lower.dtype == object
        assert flags.tolist() == [w.endswith("7") for w in MANY[:last]] and flags.dtype == bool


def test_without_words_attributes_have_their_kind_already_and_do_not_keep_it_wrongly():
    lexicon = Lexicon()

    def flags(new: list[str]) -> np.ndarray:
        return np.array([w == "a" for w in new], dtype=bool)

    assert (~lexicon.attribute("flag", flags)).dtype == bool and not len(lexicon.attribute("flag", flags))
    assert not len(lexicon.attribute("list", lambda new: [w == "a" for w in new]))
    assert lexicon.codes("code", list).dtype == np.int64 and lexicon.named("name", list)[1].dtype == np.int64
    lexicon.numbers("ab")
    assert lexicon.attribute("list", lambda new: [w == "a" for w in new]).dtype == bool


@given(batches)
def test_names_and_codes(met):
    lexicon = Lexicon()

    def name(word: str) -> str | None:
        return f"{word[0]}-" if len(word) > 1 else None

    def code(word: str) -> str | None:
        return {0: "", 1: None}.get(len(word), word[:1])

    for batch in met:
        lexicon.numbers(batch)
        names, number = lexicon.named("x", lambda new: [name(w) for w in new])
        assert [names[k] if k >= 0 else None for k in number] == [name(w) for w in lexicon.words]
        assert len(set(names)) == len(names) and set(names) == {n for w in lexicon.words if (n := name(w))}
        codes = lexicon.codes("x", lambda new: [code(w) for w in new])
        for i, one in enumerate(lexicon.words):
            for j, other in enumerate(lexicon.words):
                assert (codes[i] == codes[j]) == (i == j or bool(code(one)) and code(one) == code(other))


@given(st.lists(st.lists(st.tuples(words, words), max_size=6), max_size=6))
def test_parts_of_words(met):
    lexicon = Lexicon()
    for batch in met:
        lexicon.numbers(batch)
        for place in (1, 0):
            inner, number = lexicon.part(place)
            assert [inner.words[k] for k in number] == [word[place] for word in lexicon.words]
            assert len(set(inner.words)) == len(inner.words) and lexicon.part(place)[0] is inner


def consistent(lexicon: Lexicon) -> bool:
    """Whether it still knows what is what."""
    numbers = lexicon.numbers(MANY[:8])
    values = lexicon.attribute("figures", lambda new: [figures(w) for w in new])
    names, named = lexicon.named("first", lambda new: [w[-1] for w in new])
    return (
        [lexicon.words[k] for k in numbers] == MANY[:8]
        and values[numbers].tolist() == [figures(w) for w in MANY[:8]]
        and [names[k] for k in named[numbers]] == [w[-1] for w in MANY[:8]]
    )


def test_an_interruption_anywhere_does_no_lasting_harm():
    for k in count():
        lexicon = Lexicon()
        lexicon.numbers(MANY[:3])
        if not interrupted_at(k, module.__file__, lambda known=lexicon: consistent(known)):
            break
        assert consistent(lexicon), k
    assert k > 30


def test_threads_wait_for_one_another():
    """Else several of them compute what is new, and what each appends is another's."""
    lexicon, asked = Lexicon(), []

    def slowly(new: list[str]) -> list[list[float]]:
        asked.extend(new)
        time.sleep(0.002)
        return [figures(w) for w in new]

    def work(start: int) -> bool:
        for k in range(start, start + 40, 2):
            with lexicon.lock:
                numbers = lexicon.numbers(MANY[k : k + 3])
            values = lexicon.attribute("figures", slowly)
            if values[numbers].tolist() != [figures(w) for w in MANY[k : k + 3]]:
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    assert asked == lexicon.words


@given(
    st.lists(st.lists(st.sampled_from(["a", "A", "b", "bb", "BB", "", "c", "dd", "ddd"]), max_size=6), max_size=6),
    st.booleans(),
)
def test_without_the_rare_words_the_others_are_what_they_were(met, late):
    """Attributes, names and codes of a lexicon that forgot words are those of one that never met them."""
    old, seen = Lexicon(), []

    def said(of: Lexicon) -> tuple:
        length = of.attribute("length", lambda words: np.array([len(w) for w in words], dtype=np.int64))
        names, number = of.named("first", lambda words: [w[:1] or None for w in words])
        codes = of.codes("lower", lambda words: [w.lower() for w in words])
        same = codes[:, None] == codes
        return length.tolist(), [names[k] if k >= 0 else None for k in number], same.tolist()

    def told(words: list[str]) -> tuple:
        first, lower = [w[:1] or None for w in words], [w.lower() for w in words]
        same = [[i == j or (a == b != "") for j, b in enumerate(lower)] for i, a in enumerate(lower)]
        return [len(w) for w in words], first, same

    for words in met:
        old.numbers(words)
        seen.append(words)
        if not late:
            said(old)
    serials = old.serials.tolist()
    new = old.without_rare()
    often = [w for w in old.words if sum(w in words for words in seen) > 1]
    assert new.words == often
    assert new.serials.tolist() == [serials[old.words.index(w)] for w in often]
    assert said(new) == told(new.words)
    assert new.numbers(["ddd", "zz", "A"]).tolist() == [new.words.index(w) for w in ("ddd", "zz", "A")]
    assert said(new) == told(new.words)
    assert said(old) == told(old.words)
    assert not set(new.serials[len(often) :].tolist()) & set(serials)  # none is given again


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_columns_grow_by_little(added):
    """Words are appended by the batch; a lexicon has many columns, and what they have no use for is memory too."""
    column, total = module._Column(), 0
    for some in added:
        column.append(np.arange(total, total + some))
        total += some
        assert column.values.tolist() == list(range(total))
        assert len(column._room) <= max(total, 5 * total // 4)
