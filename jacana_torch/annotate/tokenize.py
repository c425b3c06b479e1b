"""Split English text into Penn-like tokens. Each token is a substring of the text.

Contractions are split as in the Treebank (do n't, can not, she 's). Hyphenated words, numbers, abbreviations,
URLs and emoji stay whole; quotes and brackets stay as typed. Every repetition in the patterns is bounded or
consumes what it scans, so that time is linear in the length of any text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from functools import lru_cache

from ..types import Sentence, SentencePair

_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Mx|Messrs|Dr|Drs|Prof|St|Sts|Jr|Sr|Esq|Hon|Rev|Fr|Gen|Lt|Col|Maj|Capt|Cmdr|Sgt|Cpl|Pvt|Adm|Gov|Sen|"
    "Rep|Pres|Supt|Det|Inc|Corp|Co|Cos|Ltd|Bros|Dept|Univ|Assn|Ave|Blvd|Rd|Hwy|Mt|Ft|Jan|Feb|Mar|Apr|Jun|Jul|Aug|"
    "Sept|Sep|Oct|Nov|Dec|Mon|Tue|Tues|Wed|Thu|Thurs|Fri|Ariz|Ark|Calif|Colo|Conn|Fla|Ga|Ill|Ind|Kan|Ky|Mass|Mich|"
    "Minn|Mo|Mont|Neb|Nev|Okla|Ore|Pa|Tenn|Tex|Va|Wash|Wis|Wyo|vs|etc|approx|al|cf|viz|"
    "mr|mrs|ms|dr|prof|jr|sr|st|lt|col|gen|gov|sen|inc|corp|ltd|bros"
)
_NUMBERED = "No|Nos|Art|Sec|Fig|Figs|Vol|Vols|Ch|pp|p|no|nos|fig|vol"  # abbreviations before a number only
_PATTERNS = (
    r"-[LR][RSC]B-|-[lr][rsc]b-",
    r"(?:https?|ftp|file)://[^\s<>\"“”]*|www\.[^\s<>\"“”]*",
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    r"&(?:[A-Za-z]{2,8}|#\d{1,6});",
    r"(?<!\S)[:;]['^]?-?[()DPp](?!\S)",
    r"[\U0001F1E6-\U0001F1FF]{2}",
    r"\.{2,}|…+|-{2,}|[–—―]+|([=*~#^+])\1+",
    r"``|''",
    r"['’](?:[sS]|[rR][eE]|[vV][eE]|[lL][lL]|[dD]|[mM]|[tT]|em|Em|til|Til|cause|Cause|[tT]is|[tT]was|\d\ds?)(?!\w)",
    r"(?:Ph\.?D|M\.Sc|B\.Sc)\.?(?!\w)",
    r"(?:[^\W\d_]\.){2,}(?:-\w+)*|(?:[^\W\d_]\.)+[^\W\d_](?![\w'’])",
    rf"(?:{_ABBREVIATIONS})\.(?![a-z])|(?:{_NUMBERED})\.(?=\s?\d)",
    r"[A-HJ-Z]\.(?=\s{1,3}[A-Z])",  # an initial; a lone `I.` ends a sentence
    r"(?:US|AU|NZ|HK|C|A)\$",
    r"[@#][^\W\d]\w*",
    r"(?:(?<![\w)\]%])[+\-−](?=\.?\d))?(?:(?<!\w)\.(?=\d))?"  # a sign, a point: -5, .25
    r"\w+(?:(?:[-‐‑'’&/]|(?<=\d)[.,:](?=\d)|(?<=[a-z\d])\.(?=[a-z\d]))\w+)*"
    r"(?:-(?=\s{1,3}(?:and|or|to)\s))?",  # pre- and post-war
    r"[^\s]",
)
_TOKEN = re.compile("(?:" + ")|(?:".join(_PATTERNS) + ")")
_URL = re.compile(r"(?:https?|ftp|file)://|www\.")
_URL_TAIL = frozenset(".,;:!?'’\"*…")

# Words that the Treebank writes as two, and where it cuts them.
_CUT = {
    "cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "lemme": 3, "gimme": 3, "'tis": 2, "'twas": 2,
}  # fmt: skip
_CLITICS = ("'s", "'re", "'ve", "'ll", "'d", "'m")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_ZWJ = "\u200d"
_CACHED_LENGTH = 64
_LONGEST_SPLIT = 40  # characters of the longest contraction; splitting takes quadratic time
_SPACE, _MARK, _BASE, _PICTURE = 0, 1, 2, 3


def tokenize(text: str) -> tuple[str, ...]:
    """Split a text into tokens.

    >>> tokenize("Mr. Ito can't pay $1,000.50 (it's U.S.-made)...")
    ('Mr.', 'Ito', 'ca', "n't", 'pay', '$', '1,000.50', '(', 'it', "'s", 'U.S.-made', ')', '...')
    """
    if not text.isprintable() or not (text.isascii() or _bases(text)[1] is None):
        return tuple(text[start:end] for start, end in spans(text))
    # The only white space is blanks. No pattern looks back over a blank. Those that look ahead do so after a point
    # or a hyphen, over three blanks, a word and the blank after it.
    chunks = text.split(" ")
    tokens: list[str] = []
    for k, chunk in enumerate(chunks):
        if chunk.endswith((".", "-")):
            tokens += _pieces(chunk, " ".join(["", *chunks[k + 1 : k + 5]]))
        elif len(chunk) <= _CACHED_LENGTH:
            tokens += _cached_pieces(chunk)
        else:
            tokens += _pieces(chunk)
    return tuple(tokens)


def _pieces(chunk: str, following: str = "") -> tuple[str, ...]:
    """Split a chunk without white space; `following` is the text after it that patterns may look at."""
    if chunk.isalpha() and chunk.lower() not in _CUT:
        return (chunk,)
    return tuple(chunk[start:end] for start, end in _found(chunk + following, len(chunk)))


_cached_pieces = lru_cache(maxsize=1 << 14)(_pieces)


def spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets (start, end) of the tokens. Only white space and invisible characters lie between."""
    bases, places = _bases(text)
    found = _found(bases, len(bases))
    if places is None:
        return found
    places.append(len(text))
    return [(places[start], places[end]) for start, end in found]


def tokenized(pair: SentencePair) -> SentencePair:
    """Tokenise the sentences that have a raw `text`. Layers of other tokens are dropped."""
    sides = []
    for sentence in (pair.source, pair.target):
        if sentence.text is not None and (tokens := tokenize(sentence.text)) != sentence.tokens:
            sentence = Sentence(tokens, text=sentence.text)
        sides.append(sentence)
    source, target = sides
    return pair if source is pair.source and target is pair.target else replace(pair, source=source, target=target)


def _found(bases: str, stop: int) -> list[tuple[int, int]]:
    """Return the spans that begin before `stop` in a text without marks."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < stop and (match := _TOKEN.search(bases, at)):
        start, at = match.span()
        if _URL.match(bases, start):
            at = _url_end(bases, start, at)
        found += _parts(bases, start, at)
    return found


def _url_end(text: str, start: int, end: int) -> int:
    """Return the end of a URL without trailing punctuation. A closing bracket belongs to it if it opens in it."""
    scheme = _URL.match(text, start)
    least = scheme.end() if scheme else start
    open_brackets = text.count("(", start, end) - text.count(")", start, end)
    while end > least and (text[end - 1] in _URL_TAIL or (text[end - 1] == ")" and open_brackets < 0)):
        open_brackets += text[end - 1] == ")"
        end -= 1
    return end


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the span of a token, or the spans of the parts of a contraction."""
    if end - start > _LONGEST_SPLIT or not text[end - 1].isalpha():
        return [(start, end)]
    word = text[start:end].lower().replace("’", "'")
    if word in _CUT:
        return [(start, start + _CUT[word]), (start + _CUT[word], end)]
    if "'" not in word:
        return [(start, end)]
    cuts = [end]
    while True:
        rest = word[: cuts[-1] - start]
        clitic = "n't" if rest.endswith("n't") else next((c for c in _CLITICS if rest.endswith(c)), "")
        if not clitic or len(clitic) == len(rest):
            break
        cuts.append(cuts[-1] - len(clitic))
    cuts.append(start)
    cuts.reverse()
    return list(zip(cuts, cuts[1:], strict=False))


def _bases(text: str) -> tuple[str, list[int] | None]:
    """Remove characters that only modify the one before; return the rest with its offsets in the text.

    These are combining marks, variation selectors, skin tones, and what a ZWJ joins to an emoji; the patterns need
    not know them. Invisible separators become spaces. Offsets are None if nothing changed.
    """
    kinds = {character: _kind(character) for character in set(text)}
    if all(kind in (_BASE, _PICTURE) for kind in kinds.values()):
        return text, None
    bases: list[str] = []
    places: list[int] = []
    joined = False  # whether a ZWJ joins the character to the one before
    for place, character in enumerate(text):
        kind = kinds[character]
        has_base = bool(bases) and not bases[-1].isspace()
        if kind == _SPACE:
            bases.append(" ")
            places.append(place)
        elif not (has_base and (kind == _MARK or (joined and kind == _PICTURE))):
            bases.append(character)
            places.append(place)
        joined = character == _ZWJ and has_base
    return "".join(bases), places


@lru_cache(maxsize=1 << 14)
def _kind(character: str) -> int:
    if character == _ZWJ or ord(character) in _SKIN_TONES:
        return _MARK
    category = unicodedata.category(character)
    if category in ("Mn", "Mc", "Me"):
        return _MARK
    if category == "Cf":  # soft hyphens and the tags of flags modify; direction marks and the like separate
        return _MARK if character in "\u00ad\u200c\u2060" or ord(character) >= 0xE0000 else _SPACE
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return _SPACE if character not in " \t\n\r" else _BASE
    return _PICTURE if category == "So" else _BASE
