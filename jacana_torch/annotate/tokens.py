"""Tokens: split English text into them, and normalise them to matching forms and lemmas.

Splitting gives Penn-like tokens, each a substring of the text. Contractions are split as in the Treebank (do n't,
can not, she 's). Hyphenated words, numbers, abbreviations, URLs and emoji stay whole; quotes and brackets stay as
typed. Every repetition in the patterns is bounded or consumes what it scans, so that time is linear in the length
of any text.

Corpora spell the same word `-LRB-`, `-lrb-` or `(`, and a quote as two backticks, `“` or `"`. Matching forms undo
this; the tokens themselves stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count, filterfalse, islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..types import Sentence, SentencePair

if TYPE_CHECKING:
    from ..resources.wordnet_graph import WordNet

Words = Sequence[str]

# -- splitting

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
    pieces = []
    for start, end in _found(chunk + following, len(chunk)):
        pieces.append(chunk[start:end])
    return tuple(pieces)


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


# -- matching forms and lemmas

_BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
}  # fmt: skip
_WHOLE_TOKENS = {**_BRACKETS, "``": '"', "''": '"', "`": "'"}
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‘’‚‛′ʼ´＇", "'"),
        **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
        "…": "...",
        "\u00a0": " ",
        "\u202f": " ",
    }
)
# Soft hyphen, zero-width space, word joiner, byte-order mark. A zero-width joiner stays: one sees what it does.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_ESCAPED = re.compile(r"(?<!\\)\\+(?=[/*])")  # the Penn Treebank writes 1\/2 and \*
_DASHES = re.compile(r"-+\Z")  # `-`, `--` and a dash that became `-` are the same punctuation mark

# What the Treebank splits off does not look like its lemma. The tag decides between several lemmas.
_CLITIC_LEMMAS = {
    ("n't", "RB"): "not",
    ("ca", "MD"): "can",
    ("wo", "MD"): "will",
    ("'ll", "MD"): "will",
    ("'d", "MD"): "would",
    ("'d", "VBD"): "have",
    ("'ve", "VBP"): "have",
    ("'ve", "VB"): "have",
    ("'m", "VBP"): "be",
    ("'re", "VBP"): "be",
    ("'s", "VBZ"): "be",
}
_WORDNET_POS = {"N": "n", "V": "v", "J": "a", "R": "r"}  # by the first letter of a Penn tag
_CACHED_LEMMAS = 1 << 14  # words with their tags
_known_lemmas: WeakKeyDictionary[WordNet, dict[tuple[str, str], str]] = WeakKeyDictionary()  # by token and tag


@lru_cache(maxsize=1 << 14)  # a batch has some 9,000 words, and several callers
def matching_form(token: str) -> str:
    """Undo Penn escapes and write typographic quotes and dashes in ASCII. Case stays; a token never becomes empty.

    >>> [matching_form(token) for token in ("-LRB-", "``", "don’t", "—", "1\\\\/2")]
    ['(', '"', "don't", '-', '1/2']
    """
    if token.isalnum() and token.isascii():
        return token
    form = token
    if not token.isascii():
        form = unicodedata.normalize("NFC", _INVISIBLE.sub("", token)).translate(_CHARACTERS) or token
    if form in _WHOLE_TOKENS:
        return _WHOLE_TOKENS[form]
    if _DASHES.match(form):
        return "-"
    return _ESCAPED.sub("", form) if "\\" in form else form


@lru_cache(maxsize=1 << 13)
def unescaped(token: str) -> str:
    """Write brackets and apostrophes as running text does, for taggers that were trained without escapes."""
    if token in _BRACKETS:
        return _BRACKETS[token]
    return token if token.isascii() else token.replace("’", "'")


def lower_case(tokens: Words) -> tuple[str, ...]:
    """Return the matching forms in lower case, which stand in for lemmas without WordNet."""
    return tuple(matching_form(token).lower() for token in tokens)


def wordnet_pos(tag: str) -> str | None:
    """Map a Penn tag to WordNet's part of speech: n, v, a or r. Particles and closed classes map to None."""
    return None if tag == "RP" else _WORDNET_POS.get(tag[:1])


def lemmas(sentences: Sequence[Words], tags: Sequence[Words]) -> list[tuple[str, ...]]:
    """Lemmatise tagged sentences with WordNet; lemmas are in lower case.

    A word that WordNet does not know, or whose class it does not cover, is its own lemma. Raises MissingResource
    without WordNet.
    """
    from ..resources import wordnet

    net = wordnet()
    known = _known_lemmas.setdefault(net, {})
    if len(known) > _CACHED_LEMMAS:
        known.clear()
    number: defaultdict[tuple[str, str], int] = defaultdict(count().__next__)  # of each token with its tag
    tagged = zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True)
    numbers = list(map(number.__getitem__, tagged))
    fresh: dict[tuple[str, str], str] = {}  # known only when all are there: the call may fail or be interrupted
    new: list[tuple[str, str]] = []
    forms: list[str] = []
    letters: list[str] = []
    for key in filterfalse(known.__contains__, number):
        form, tag = matching_form(key[0]).lower(), key[1]
        fresh[key] = _CLITIC_LEMMAS.get((form, tag), form)
        letter = wordnet_pos(tag)
        if letter is not None and (form, tag) not in _CLITIC_LEMMAS:
            new.append(key)
            forms.append(form)
            letters.append(letter)
    for key, lemma in zip(new, net.morphy_all(forms, letters), strict=True):
        if lemma:
            fresh[key] = lemma
    known.update(fresh)
    found = map(list(map(known.__getitem__, number)).__getitem__, numbers)
    by_sentence: list[tuple[str, ...]] = []
    for words in sentences:
        by_sentence.append(tuple(islice(found, len(words))))
    return by_sentence
