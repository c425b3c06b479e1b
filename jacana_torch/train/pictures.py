"""Pictures for TensorBoard, as [height, width, 3] pixels: alignments as matrices, and reliability curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from ..evaluate.calibration import Reliability
from ..evaluate.scores import links_of
from ..types import Alignment

CELL = 14  # pixels; the first row and column of each cell belong to the grid
MOST = 150  # words drawn of either side; longer sentences are cut
SIDE, BORDER = 180, 8  # pixels of a curve, which TensorBoard shows at this size

# Readers who see no red or green tell these colours apart, and the shapes below.
CORRECT, MISSED, SPURIOUS = (0, 158, 115), (0, 114, 178), (213, 94, 0)
PAPER, LINE, FIFTH, INK = (255, 255, 255), (225, 225, 225), (160, 160, 160), (30, 30, 30)

TEXT, GAP, MARGIN = 11, 4, 38  # pixels
LONGEST = 20  # letters of a word; longer ones are cut

_rows, _columns = np.mgrid[1:CELL, 1:CELL]
_first, _last = np.minimum(_rows, _columns), np.maximum(_rows, _columns)
_square = (_first >= 2) & (_last <= CELL - 2)
_core = (_first >= 4) & (_last <= CELL - 4)
_cross = (np.abs(_rows - _columns) <= 1) | (np.abs(_rows + _columns - CELL) <= 1)
# [CELL - 1, CELL - 1] each: a full square, a frame, a cross
SHAPES = {"correct": _square, "missed": _square & ~_core, "spurious": _square & _cross}
COLOURS = {"correct": CORRECT, "missed": MISSED, "spurious": SPURIOUS}


def cells(alignment: Alignment, links: str = "sure") -> np.ndarray:
    """[M, N] whether the words are linked. Possible links count if `links` is "all"."""
    linked = np.zeros((alignment.n_source, alignment.n_target), dtype=bool)
    for link in links_of(alignment, links):
        linked[link] = True
    return linked


def matrix(gold: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Draw the [M, N] cells of two alignments, a row per source word.

    Correct links are full squares, missed links frames, and spurious links crosses. Every fifth line is darker.
    """
    gold, found = gold[:MOST, :MOST], found[:MOST, :MOST]
    rows, columns = gold.shape
    picture = np.full((rows * CELL + 1, columns * CELL + 1, 3), PAPER, dtype=np.uint8)
    for step, colour in ((1, LINE), (5, FIFTH)):
        picture[:: step * CELL] = colour
        picture[:, :: step * CELL] = colour
    for outcome, linked in (("correct", gold & found), ("missed", gold & ~found), ("spurious", found & ~gold)):
        for i, j in np.argwhere(linked):
            top, left = i * CELL + 1, j * CELL + 1
            picture[top : top + CELL - 1, left : left + CELL - 1][SHAPES[outcome]] = COLOURS[outcome]
    return picture


def with_words(picture: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """Add the word of each row on the left of a matrix, and that of each column above it, read upwards."""
    height, width = ((size - 1) // CELL for size in picture.shape[:2])
    beside, above = _words(rows[:height], "right"), np.rot90(_words(columns[:width], "left"))
    corner = np.full((len(above), beside.shape[1], 3), PAPER, dtype=np.uint8)
    return np.vstack([np.hstack([corner, above]), np.hstack([beside, picture])])


def reliability(curve: Reliability) -> np.ndarray:
    """Draw a bar per bin, from left to right by probability.

    A bar is as high as the share that came true, with a dark line at the mean probability. What lies between the
    two has another colour. On the diagonal they are equal.
    """
    picture = np.full((SIDE + 1, SIDE + 1, 3), PAPER, dtype=np.uint8)
    picture[:: SIDE // 10] = picture[:, :: SIDE // 10] = LINE
    pixels = np.rint(np.column_stack([curve.edges[:-1], curve.edges[1:]]) * SIDE).astype(int)
    bins = zip(pixels, curve.count, curve.probability, curve.share, strict=True)
    for (left, right), count, mean, share in bins:
        if not count:
            continue
        bar = picture[::-1, left + 2 : right - 1]  # counted from below
        high, wanted = round(float(share) * SIDE), round(float(mean) * SIDE)
        bar[: high + 1] = MISSED
        bar[min(high, wanted) : max(high, wanted) + 1] = SPURIOUS
        bar[max(wanted - 1, 0) : wanted + 1] = INK
    along = np.arange(SIDE + 1)
    picture[SIDE - along, along] = INK
    framed = np.full((SIDE + 1 + 2 * BORDER, SIDE + 1 + 2 * BORDER, 3), PAPER, dtype=np.uint8)
    framed[BORDER:-BORDER, BORDER:-BORDER] = picture
    return framed


def with_scales(picture: np.ndarray, across: str, upwards: str) -> np.ndarray:
    """Add the numbers from 0 to 1 along two sides of a curve, and a caption for each."""
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


def _words(words: Sequence[str], side: str) -> np.ndarray:
    """[cells * CELL + 1, width, 3] a word per cell of a matrix, all flush left or flush right."""
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
