"""The matching form of a token: what it is compared as. Tokens in, strings out; the reader's own tokens are kept.

Corpora spell the same word `-LRB-`, `-lrb-` or `(`, and a quote as two backticks, `“` or `"`. Case is not touched.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_BRACKETS |= {escape.lower(): bracket for escape, bracket in _BRACKETS.items()}
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
# Soft hyphen, zero-width space, word joiner, byte-order mark: nobody sees them. A ZWJ changes what one sees.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_ESCAPED = re.compile(r"\\+(?=[/*])")  # the Penn Treebank writes 1\/2 and \*
_DASHES = re.compile(r"-+\Z")  # `-`, `--` and the dashes that became `-` are one punctuation mark


@lru_cache(maxsize=1 << 13)
def matching_form(token: str) -> str:
    """The token with Penn escapes undone and typographic quotes and dashes in ASCII; never empty for a token.

    >>> [matching_form(token) for token in ("-LRB-", "``", "don’t", "—", "1\\\\/2")]
    ['(', '"', "don't", '-', '1/2']
    """
    if token.isascii():
        form = token
    else:
        form = unicodedata.normalize("NFC", _INVISIBLE.sub("", token)).translate(_CHARACTERS) or token
    if form in _WHOLE_TOKENS:
        return _WHOLE_TOKENS[form]
    if _DASHES.match(form):
        return "-"
    return _ESCAPED.sub("", form) if "\\" in form else form


@lru_cache(maxsize=1 << 13)
def unescaped(token: str) -> str:
    """The token as running text has it, for taggers that never saw escapes: brackets and apostrophes only."""
    if token in _BRACKETS:
        return _BRACKETS[token]
    return token if token.isascii() else token.replace("’", "'")
