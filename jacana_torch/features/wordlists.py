"""Closed classes of English words that matter to an aligner: function words, number words, short names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from threading import local

import numpy as np

FUNCTION_WORDS = frozenset(
    """a an the this that these those some any each every no all both either neither such
    i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our
    ours ourselves they them their theirs themselves one who whom whose which what where when why how
    am is are was were be been being do does did doing done have has had having will would shall should
    can could may might must ought 's 're 've 'll 'd 'm n't not ca wo
    about above across after against along among around as at before behind below between beyond by down during
    except for from in inside into like near of off on onto out outside over per since through throughout till to
    toward towards under until up upon via with within without
    and but or nor so yet if because although though while whereas whether unless than then
    there here also too very just only even more most much many less least few other another same own again once
    ever never still already now""".split()
)

# Function words that align in ways of their own; the others have no name.
FUNCTION_KINDS = {
    "determiner": frozenset(
        """a an the this that these those some any each every no all both either neither such""".split()
    ),
    "auxiliary": frozenset(
        """am is are was were be been being do does did doing done have has had having will would shall should can
        could may might must ought 's 're 've 'll 'd 'm n't not ca wo""".split()
    ),
    "preposition": frozenset(
        """about above across after against along among around as at before behind below between beyond by down
        during except for from in inside into like near of off on onto out outside over per since through
        throughout till to toward towards under until up upon via with within without""".split()
    ),
    "pronoun": frozenset(
        """i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us
        our ours ourselves they them their theirs themselves who whom whose which what""".split()
    ),
}

NEGATIONS = frozenset("not n't no never none nothing neither nor without nobody".split())

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""".split()
_NUMBER_WORDS = dict(zip(_UNITS, map(float, range(21)), strict=True)) | {
    "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0, "ninety": 90.0,
    "hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0,
    "first": 1.0, "second": 2.0, "third": 3.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0, "seventh": 7.0,
    "eighth": 8.0, "ninth": 9.0, "tenth": 10.0,
}  # fmt: skip
_NUMERIC = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?(st|nd|rd|th|s|%)?", re.ASCII)
_DIGIT = re.compile("[0-9]")

_SHORT_AND_FULL = """abe abraham|al albert|al alan|alex alexander|andy andrew|ben benjamin|bill william|bob robert|
    charlie charles|chris christopher|dan daniel|dave david|dick richard|don donald|ed edward|frank francis|
    fred frederick|greg gregory|hal harold|hank henry|harry harold|harry henry|jack john|jerry gerald|jim james|
    joe joseph|josh joshua|ken kenneth|kate katherine|kathy katherine|larry lawrence|liz elizabeth|maggie margaret|
    matt matthew|mike michael|nick nicholas|pat patrick|pat patricia|peggy margaret|pete peter|phil philip|
    ray raymond|rich richard|rick richard|rob robert|ron ronald|sam samuel|steve stephen|steve steven|sue susan|
    ted edward|ted theodore|tim timothy|tom thomas|tony anthony|vic victor|walt walter|will william"""
NICKNAMES = frozenset(map(frozenset, map(str.split, _SHORT_AND_FULL.split("|"))))

# Different spellings of one word, beyond case and stems.
_VARIANTS = {
    "n't": "not", "'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "ca": "can", "wo": "will", "'d": "would",
    "%": "percent", "&": "and", "pct": "percent", "vs": "versus", "jr": "junior", "sr": "senior", "st": "saint",
    "mr": "mister", "dr": "doctor", "gov": "governor", "sen": "senator", "rep": "representative", "gen": "general",
    "lt": "lieutenant", "sgt": "sergeant", "capt": "captain", "col": "colonel", "pres": "president",
    "corp": "corporation", "inc": "incorporated", "co": "company", "ltd": "limited", "dept": "department",
    "jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july",
    "aug": "august", "sep": "september", "sept": "september", "oct": "october", "nov": "november",
    "dec": "december", "mon": "monday", "tue": "tuesday", "wed": "wednesday", "thu": "thursday",
    "fri": "friday", "sat": "saturday", "sun": "sunday", "bn": "billion", "mln": "million",
    "km": "kilometer", "kg": "kilogram",
}  # fmt: skip


def variant(lower: str) -> str:
    """The one spelling that stands for all: `U.S.` and `us`, `%` and `percent`, `n't` and `not`."""
    if lower.isalpha():
        return _VARIANTS.get(lower, lower)
    if any(map(str.isdigit, lower)):
        return lower  # the dot of 1.5 does not abbreviate
    plain = lower.replace(".", "") or lower
    return _VARIANTS.get(plain, plain)


_OF_THREAD = local()  # in PyPy, a stemmer belongs to one thread


@lru_cache(maxsize=1 << 13)  # for a batch's new words, of which it is asked three times
def stem(word: str) -> str:
    """The Snowball English stem of a lower-case word."""
    stemmer = vars(_OF_THREAD).get("stemmer")
    if stemmer is None:
        import snowballstemmer

        stemmer = _OF_THREAD.stemmer = snowballstemmer.stemmer("english")
        stemmer.maxCacheSize = 0  # to look a new word up takes longer than to stem it
    return str(stemmer.stemWord(word))


def number_value(word: str) -> float | None:
    """The value of a lower-case number token, the same for `1,000` and `thousand`; None for other tokens."""
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if word.isalpha():
        return None
    if not _DIGIT.search(word) or not _NUMERIC.fullmatch(word):
        return None
    return float(re.sub(r"[^\d.+-]", "", word))


WORD_CLASSES = ("punct", "number", "function", "name", "content")
IS_CONTENT = np.isin(WORD_CLASSES, ("number", "name", "content"))


def word_class(word: str) -> str:
    """Which of the WORD_CLASSES (a name is capitalised): what decides how a word is usually aligned."""
    lower = word.lower()
    if not any(map(str.isalnum, word)):
        return "punct"
    if number_value(lower) is not None:
        return "number"
    if lower in FUNCTION_WORDS:
        return "function"
    return "name" if word[0].isupper() else "content"


def is_punctuation(word: str) -> bool:
    return word_class(word) == "punct"


def word_classes(words: Sequence[str]) -> np.ndarray:
    """[W] which of the WORD_CLASSES."""
    return np.array(list(map(WORD_CLASSES.index, map(word_class, words))), dtype=np.int64)
