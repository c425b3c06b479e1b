"""Words and numbers beside pictures: pixels and what they show in, pixels with lettered margins out.

A picture stays as it is: margins are put to its left, and above it (`worded`) or below it (`scaled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from .pictures import BORDER, CELL, INK, PAPER, SIDE

TEXT, GAP = 11, 4  # pixels
LONGEST = 20  # letters of a word; of a longer one, the beginning
MARGIN = 38


def worded(picture: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """A matrix with the word of each row to the left of it, and of each column, read upwards, above it."""
    height, width = ((size - 1) // CELL for size in picture.shape[:2])
    beside, above = _margin(rows[:height], "right"), np.rot90(_margin(columns[:width], "left"))
    corner = np.full((len(above), beside.shape[1], 3), PAPER, dtype=np.uint8)
    return np.vstack([np.hstack([corner, above]), np.hstack([beside, picture])])


def scaled(picture: np.ndarray, across: str, upwards: str) -> np.ndarray:
    """A curve with the numbers from 0 to 1 along both of its sides, and what they count."""
    from PIL import Image, ImageDraw

    height, width = picture.shape[:2]
    image = Image.new("RGB", (MARGIN + width, height + MARGIN), PAPER)
    image.paste(Image.fromarray(_caption(upwards, height)).rotate(90, expand=True), (0, 0))
    image.paste(Image.fromarray(_caption(across, width)), (MARGIN, height + MARGIN - CELL - GAP))
    image.paste(Image.fromarray(picture), (MARGIN, 0))
    draw = ImageDraw.Draw(image)
    for fifth in range(6):
        number, along = f"{fifth / 5:.1f}", fifth * SIDE // 5
        draw.text((MARGIN + BORDER + along, height + 2), number, INK, _font(), anchor="mt")
        draw.text((MARGIN - 2, BORDER + SIDE - along), number, INK, _font(), anchor="rm")
    return np.asarray(image)


def _margin(words: Sequence[str], side: str) -> np.ndarray:
    """A line a cell, its words at one side; [cells * CELL + 1, width, 3] as a matrix has it."""
    from PIL import Image, ImageDraw

    words = [word if len(word) <= LONGEST else word[: LONGEST - 1] + "…" for word in words]
    width = ceil(max(map(_font().getlength, words), default=0)) + 2 * GAP
    image = Image.new("RGB", (width, len(words) * CELL + 1), PAPER)
    draw, at, anchor = ImageDraw.Draw(image), *((width - GAP, "rm") if side == "right" else (GAP, "lm"))
    for number, word in enumerate(words):
        draw.text((at, (number + 0.5) * CELL), word, INK, _font(), anchor=anchor)
    return np.asarray(image)


def _caption(text: str, width: int) -> np.ndarray:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, CELL + GAP), PAPER)
    ImageDraw.Draw(image).text((width / 2, CELL / 2), text, INK, _font(), anchor="mm")
    return np.asarray(image)


@lru_cache(maxsize=1)
def _font() -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(TEXT)
