"""Pictures that need no more than numpy: alignments and reliability curves in, [height, width, 3] pixels out."""

from __future__ import annotations

import numpy as np

from ..evaluate.calibration import Reliability
from ..evaluate.scores import links_of
from ..types import Alignment

CELL = 14  # pixels; its first row and column are the grid's line
MOST = 150  # words of a side that are drawn; of longer sentences, the beginning
SIDE, BORDER = 180, 8  # pixels of a curve, which TensorBoard shows this large

# told apart by those who see no red or green, and by their shapes
HIT, MISSED, INVENTED = (0, 158, 115), (0, 114, 178), (213, 94, 0)
PAPER, LINE, FIFTH, INK = (255, 255, 255), (225, 225, 225), (160, 160, 160), (30, 30, 30)

_near, _far = 2, CELL - 2
_rows, _columns = np.mgrid[1:CELL, 1:CELL]
_inside = (np.minimum(_rows, _columns) >= _near) & (np.maximum(_rows, _columns) <= _far)
_core = (np.minimum(_rows, _columns) >= _near + 2) & (np.maximum(_rows, _columns) <= _far - 2)
_cross = (np.abs(_rows - _columns) <= 1) | (np.abs(_rows + _columns - CELL) <= 1)
# [CELL - 1, CELL - 1] each: a full square, a frame, a cross
SHAPES = {"hit": _inside, "missed": _inside & ~_core, "invented": _inside & _cross}
COLOURS = {"hit": HIT, "missed": MISSED, "invented": INVENTED}


def cells(alignment: Alignment, links: str = "sure") -> np.ndarray:
    """[source words, target words]: whether they are linked; possible links count where `links` is `all`."""
    linked = np.zeros((alignment.n_source, alignment.n_target), dtype=bool)
    for link in links_of(alignment, links):
        linked[link] = True
    return linked


def matrix(gold: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Two alignments' cells, a row a source word: hits are full squares, missed links frames, invented ones
    crosses. Every fifth line is darker."""
    gold, found = gold[:MOST, :MOST], found[:MOST, :MOST]
    rows, columns = gold.shape
    picture = np.full((rows * CELL + 1, columns * CELL + 1, 3), PAPER, dtype=np.uint8)
    for step, colour in ((1, LINE), (5, FIFTH)):
        picture[:: step * CELL] = colour
        picture[:, :: step * CELL] = colour
    for kind, cells in (("hit", gold & found), ("missed", gold & ~found), ("invented", found & ~gold)):
        for i, j in np.argwhere(cells):
            top, left = i * CELL + 1, j * CELL + 1
            picture[top : top + CELL - 1, left : left + CELL - 1][SHAPES[kind]] = COLOURS[kind]
    return picture


def reliability(curve: Reliability) -> np.ndarray:
    """A bar a bin, from left to right the chances: as high as the share that came true, a dark line at the mean
    chance, and what lies between them in another colour; the diagonal is where they are the same."""
    picture = np.full((SIDE + 1, SIDE + 1, 3), PAPER, dtype=np.uint8)
    picture[:: SIDE // 10] = picture[:, :: SIDE // 10] = LINE
    pixels = np.rint(np.column_stack([curve.edges[:-1], curve.edges[1:]]) * SIDE).astype(int)
    for (left, right), of_bin, mean, true in zip(pixels, curve.count, curve.probability, curve.share, strict=True):
        if not of_bin:
            continue
        bar = picture[::-1, left + 2 : right - 1]  # counted from below
        high, wanted = round(float(true) * SIDE), round(float(mean) * SIDE)
        bar[: high + 1] = MISSED
        bar[min(high, wanted) : max(high, wanted) + 1] = INVENTED
        bar[max(wanted - 1, 0) : wanted + 1] = INK
    along = np.arange(SIDE + 1)
    picture[SIDE - along, along] = INK
    framed = np.full((SIDE + 1 + 2 * BORDER, SIDE + 1 + 2 * BORDER, 3), PAPER, dtype=np.uint8)
    framed[BORDER:-BORDER, BORDER:-BORDER] = picture
    return framed
