"""The guidelines that stand beside the pairs: a text of the user's, or a short default."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError

LARGEST = 1 << 18  # characters
DEFAULT = """\
Link words that mean the same here, in these two sentences.

# Sure
- the same word, another form of it, a synonym: bought – purchased
- a pronoun and what it stands for: she – Nina
- names and parts of names: Mr. Lee – Lee

# Possible
- related, but not the same: boat – harbour
- words that correspond only as part of a phrase: gave, up – abandoned

# Phrases
- Link every word of one phrase with every word of the other: passed away – died
- Prefer words to phrases where single words correspond.

# No link
- words without a counterpart: leave them alone
- articles, prepositions and punctuation that stand at unrelated words

Flag a pair that is broken or that you doubt, and say why.
"""


def guidelines(path: str | None) -> str:
    """Return the text: `# ` begins a heading and `- ` an item."""
    if path is None:
        return DEFAULT
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--guidelines {path}: cannot be read as text ({error})") from None
    if len(text) > LARGEST:
        raise ConfigError(f"--guidelines {path}: {len(text)} characters are too many ({LARGEST} at most)")
    return text
