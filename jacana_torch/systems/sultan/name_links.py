"""The stage neAlign: links of names, parts of names, and acronyms.

If a partial mention leaves out words of a full name ("Ada Byron", "Byron"), these are linked with the mention, if
the name is a person's or the words only denote a kind of company ("Ltd."). The paper does so for every name; of
places and institutions ("Lake Geneva", "Geneva") it is seldom right on MSR's dev set. Names that are complete on
both sides need no stage of their own: they consist of the same words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...features.name_spans import acronym_letters
from .parsed_sentence import Name, ParsedSentence
from .stages import PairState

TITLES = frozenset(
    """mr mrs ms dr sir lord lady king queen prince princess pope president premier chancellor minister prime vice
    senator sen governor gov judge justice chief mayor general gen colonel col captain capt commander lieutenant lt
    sergeant sgt major marshal field admiral secretary professor prof rep representative congressman congresswoman
    chairman director executive ambassador bishop archbishop cardinal father sister saint st us u.s former
    ex-president sheikh ayatollah imam detective officer attorney foreign defense defence finance""".split()
)
COMPANY = frozenset("inc ltd co corp llc plc ag gmbh sa nv incorporated limited company corporation".split())
# In names of places, peoples, times or institutions, but rarely of persons: where only tags mark a name, nothing
# else tells these from persons.
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


def link_names(pair: PairState) -> None:
    """Link parts of names and acronyms, with the full name on either side."""
    for full, short, turn in ((pair.source, pair.target, 1), (pair.target, pair.source, -1)):
        names, mentions = _names(full), _names(short)
        cells = [cell for name in names for mention in mentions for cell in _partial(full, name, short, mention)]
        for k, place in [*cells, *_acronyms(full, short, names)]:
            pair.links[(k, place)[::turn]] = True


def _names(words: ParsedSentence) -> list[Name]:
    """The names, without titles before them."""
    found = []
    for name in words.names:
        first = name.first
        while first < name.behind and _bare(words, first) in TITLES:
            first += 1
        if first < name.behind:
            found.append(Name(first, name.behind, name.kind))
    return found


def _bare(words: ParsedSentence, k: int) -> str:
    return words.forms[k].rstrip(".")


def _partial(full: ParsedSentence, name: Name, short: ParsedSentence, mention: Name) -> Iterator[tuple[int, int]]:
    """Links of a full name with a mention that is part of it, unless either sentence has it twice."""
    rest = _left_out(full, name, short, mention)
    if rest:
        for k in name.places:
            for place in mention.places:
                if k in rest or full.forms[k] == short.forms[place]:
                    yield k, place


def _left_out(full: ParsedSentence, name: Name, short: ParsedSentence, mention: Name) -> range:
    """The words of the name that the mention leaves out."""
    own, size = short.forms[mention.first : mention.behind], len(name) - len(mention)
    if size < 1 or full.forms.count(own[0]) != 1 or short.forms.count(own[0]) != 1:
        return range(0)
    begins, ends = range(name.first, name.first + size), range(name.behind - size, name.behind)
    words = full.forms[name.first : name.behind]
    if words[: len(own)] == own and all(_bare(full, k) in COMPANY for k in ends):
        return ends
    return begins if words[size:] == own and len(own) == 1 and _is_person(full, name) else range(0)


def _is_person(words: ParsedSentence, name: Name) -> bool:
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


def _acronyms(full: ParsedSentence, short: ParsedSentence, names: list[Name]) -> Iterator[tuple[int, int]]:
    """Links of acronyms that the other sentence spells out once and does not use itself."""
    for place, token in enumerate(short.tokens):
        letters = acronym_letters(token)
        if letters and short.forms[place] not in full.forms:
            spelt = [run for run in (_spelt(full, name, letters) for name in names) if run]
            if len(spelt) == 1:
                yield from ((k, place) for k in spelt[0])


def _spelt(words: ParsedSentence, name: Name, letters: str) -> list[int]:
    """The words of a name whose initials spell an acronym, with or without its stop words."""
    for every in (True, False):
        places = [k for k in name.places if every or not words.stop[k]]
        if "".join(words.forms[k][:1] for k in places).upper() == letters:
            return places
    return []
