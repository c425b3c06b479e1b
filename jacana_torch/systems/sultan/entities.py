"""neAlign: names, their parts and their acronyms.

In: a `Board`. Its links out.

The words of a full name that a partial mention leaves out are linked with the mention ("Ada Byron", "Byron") where
they are a person's, or only say what kind of company it is ("Ltd."). The paper does it for every name; of places
and institutions ("Lake Geneva", "Geneva") it is seldom right on MSR's dev set. Names that are whole on both sides
need no stage of their own: they are the same words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...features.name_spans import acronym_letters
from .board import Board
from .word_tables import Name, Words

TITLES = frozenset(
    """mr mrs ms dr sir lord lady king queen prince princess pope president premier chancellor minister prime vice
    senator sen governor gov judge justice chief mayor general gen colonel col captain capt commander lieutenant lt
    sergeant sgt major marshal field admiral secretary professor prof rep representative congressman congresswoman
    chairman director executive ambassador bishop archbishop cardinal father sister saint st us u.s former
    ex-president sheikh ayatollah imam detective officer attorney foreign defense defence finance""".split()
)
COMPANY = frozenset("inc ltd co corp llc plc ag gmbh sa nv incorporated limited company corporation".split())
# In the name of a place, a people, a time or an institution, but hardly in a person's: where only tags say what is
# a name, nothing else tells these from people.
NO_PERSON = COMPANY | frozenset(
    """bank city state states university college school party union navy army force forces court council committee
    commission agency ministry department government house senate congress parliament radio television news times
    post street road river lake sea ocean bay island islands mountain mount valley county province republic kingdom
    club team league cup award prize games museum center centre hospital airport station church group companies
    association organization institute foundation fund service services office bureau board law act war day week
    month year summit treaty conference embassy military police north south east west northern southern eastern
    western central new world international national american british federal great hong associates
    monday tuesday wednesday thursday friday saturday sunday""".split()
)
PEOPLE = ("PERSON", "PER")
LONGEST_PERSON = 4

# Full names, the sentence of partial ones and theirs, and which way round a link is.
View = tuple[Words, Words, int]


def link_entities(board: Board) -> None:
    for full, short, turn in _views(board):
        for name in _names(full):
            for mention in _names(short):
                for k, place in _partial(full, name, short, mention):
                    board.links[(k, place)[::turn]] = True
        for k, place in _acronyms(full, short):
            board.links[(k, place)[::turn]] = True


def _views(board: Board) -> tuple[View, View]:
    return (board.source, board.target, 1), (board.target, board.source, -1)


def _names(words: Words) -> list[Name]:
    """The names without the titles before them."""
    found = []
    for name in words.names:
        first = name.first
        while first < name.behind and _bare(words, first) in TITLES:
            first += 1
        if first < name.behind:
            found.append(Name(first, name.behind, name.kind))
    return found


def _bare(words: Words, k: int) -> str:
    return words.forms[k].rstrip(".")


def _partial(full: Words, name: Name, short: Words, mention: Name) -> Iterator[tuple[int, int]]:
    """Links of a full name with a mention that is part of it; none where it is not, or where it is named twice."""
    rest = _left_out(full, name, short, mention)
    if rest:
        for k in name.places:
            for place in mention.places:
                if k in rest or full.forms[k] == short.forms[place]:
                    yield k, place


def _left_out(full: Words, name: Name, short: Words, mention: Name) -> range:
    """The words of the name that the mention leaves out."""
    own, size = short.forms[mention.first : mention.behind], len(name) - len(mention)
    if size < 1 or full.forms.count(own[0]) != 1 or short.forms.count(own[0]) != 1:
        return range(0)
    begins, ends = range(name.first, name.first + size), range(name.behind - size, name.behind)
    words = full.forms[name.first : name.behind]
    if words[: len(own)] == own and all(_bare(full, k) in COMPANY for k in ends):
        return ends
    return begins if words[size:] == own and len(own) == 1 and _is_person(full, name) else range(0)


def _is_person(words: Words, name: Name) -> bool:
    if not 2 <= len(name) <= LONGEST_PERSON:
        return False
    if name.kind:
        return name.kind in PEOPLE
    if words.tags[name.behind - 1] == "NNPS":
        return False
    return all(_in_persons_name(words.tokens[k], _bare(words, k)) for k in name.places)


def _in_persons_name(token: str, bare: str) -> bool:
    abbreviation = len(bare) > 1 and token.isupper()
    return bare.replace("-", "").isalpha() and not abbreviation and bare not in NO_PERSON


def _acronyms(full: Words, short: Words) -> Iterator[tuple[int, int]]:
    """Links of acronyms that the other sentence spells out, once and without using them itself."""
    for place, token in enumerate(short.tokens):
        letters = acronym_letters(token)
        if letters and short.forms[place] not in full.forms:
            spelt = [run for run in (_spelt(full, name, letters) for name in _names(full)) if run]
            if len(spelt) == 1:
                yield from ((k, place) for k in spelt[0])


def _spelt(words: Words, name: Name, letters: str) -> list[int]:
    """The words of a name whose initials spell an acronym; stop words among them may be left out."""
    for every in (True, False):
        places = [k for k in name.places if every or not words.stop[k]]
        if "".join(words.forms[k][:1] for k in places).upper() == letters:
            return places
    return []
