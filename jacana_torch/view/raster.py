"""Draw an alignment as a PNG picture, with Pillow."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import JacanaError
from .drawing import COLOURS, DASHES, described, opacity, stroke
from .layout import LETTERS, Curve, Point, figure

if TYPE_CHECKING:
    from ..types import Link

FINER = 3  # pixels that are drawn for one of the picture, in each direction
STEPS = 72  # straight pieces of a curve
LARGEST = 20_000_000  # pixels
# As systems name them; a word takes the first that has all of its letters. The last resort is Pillow's own.
FONTS = (
    *("DejaVuSansMono.ttf", "Menlo.ttc", "consola.ttf", "LiberationMono-Regular.ttf"),
    *("DejaVuSans.ttf", "Arial Unicode.ttf", "arial.ttf", "NotoSans-Regular.ttf", "NotoSansCJK-Regular.ttc"),
)
_MISSING = "\U0010ffff"  # no font has it
_SIGN = 12


def png(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    scale: float = 2.0,
    background: str = "white",
    colour: str = "black",
    font: str | None = None,
    most: float = 110,
) -> bytes:
    """The bytes of a PNG file: `scale` pixels for each of the SVG picture, words in `font` (a file or a name)."""
    from PIL import Image, ImageColor, ImageDraw, PngImagePlugin

    shape = figure(source, target, links, confidence, most)
    fine = scale * FINER
    if not 0 < scale or shape.width * shape.height * scale**2 > LARGEST:
        raise JacanaError(
            f"scale {scale:g} makes a picture without pixels, or of more than {LARGEST:,}: choose another"
        )
    size = math.ceil(shape.width * scale) * FINER, math.ceil(shape.height * scale) * FINER
    try:
        ground = ImageColor.getrgb(background)[:3]
        ink = ImageColor.getrgb(colour)[:3]
    except ValueError as error:
        raise JacanaError(f"{error}: name a colour as in HTML, `white` or `#f5f4f1`") from None
    image = Image.new("RGB", size, ground)
    pen = ImageDraw.Draw(image)
    for curve in shape.curves:
        paint = _mixed(ImageColor.getrgb(COLOURS[curve.kind])[:3], ground, opacity(curve.probability))
        for piece in _pieces(_drawn(curve), DASHES.get(curve.kind)):
            _line(pen, [(x * fine, y * fine) for x, y in piece], stroke(curve.kind) * fine, paint)
    signs = [(one.sign, ImageColor.getrgb(COLOURS[one.kind])[:3]) for one in shape.curves if one.sign]
    for sign, paint in signs:
        pen.text((sign.x * fine, sign.y * fine), sign.text, paint, _font(sign.text, font, _SIGN * fine), "mm")
    for word in shape.words:
        text = _ordered(word.text)
        pen.text((word.x * fine, word.y * fine), text, ink, _font(text, font, LETTERS * fine), "ms")
    image = image.resize((size[0] // FINER, size[1] // FINER), Image.Resampling.BOX)
    about = PngImagePlugin.PngInfo()
    about.add_text("Title", described(list(links.values())))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True, dpi=(72 * scale, 72 * scale), pnginfo=about)
    return buffer.getvalue()


def _mixed(paint: Sequence[int], ground: Sequence[int], share: float) -> tuple[int, ...]:
    return tuple(round(share * one + (1 - share) * other) for one, other in zip(paint, ground, strict=True))


def _drawn(curve: Curve) -> list[Point]:
    points = [curve.points[0]]
    for (x, y), (a, b), (c, d), (u, v) in curve.steps():
        for step in range(1, STEPS + 1):
            t, r = step / STEPS, 1 - step / STEPS
            shares = r**3, 3 * r * r * t, 3 * r * t * t, t**3
            points.append(
                (
                    sum(share * one for share, one in zip(shares, (x, a, c, u), strict=True)),
                    sum(share * one for share, one in zip(shares, (y, b, d, v), strict=True)),
                )
            )
    return points


def _pieces(points: list[Point], dash: tuple[float, float] | None) -> list[list[Point]]:
    """The line itself, or its dashes."""
    if dash is None:
        return [points]
    pieces: list[list[Point]] = [[points[0]]]
    on, left = True, dash[0]
    for start, end in zip(points, points[1:], strict=False):
        length = math.dist(start, end)
        done = 0.0
        while length - done > left:
            done += left
            at = tuple(one + (other - one) * done / length for one, other in zip(start, end, strict=True))
            if on:
                pieces[-1].append((at[0], at[1]))
            else:
                pieces.append([(at[0], at[1])])
            on = not on
            left = dash[0] if on else dash[1]
        left -= length - done
        if on:
            pieces[-1].append(end)
    return pieces


def _line(pen: Any, points: list[Point], width: float, paint: tuple[int, ...]) -> None:
    """A line with round ends and joints."""
    half = width / 2
    for x, y in (points[0], points[-1]):
        pen.ellipse((x - half, y - half, x + half, y + half), fill=paint)
    if len(points) > 1:
        pen.line(points, fill=paint, width=round(width), joint="curve")


def _ordered(text: str) -> str:
    """The letters from left to right, where Pillow lacks the library that orders them (libraqm)."""
    from PIL import features

    backwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return text[::-1] if backwards and not features.check("raqm") else text


def _font(text: str, name: str | None, size: float) -> Any:
    fonts = [_named(name, size)] if name is not None else _usual(size)
    return next((font for font in fonts if _has(font, text)), fonts[0])


def _has(font: Any, text: str) -> bool:
    missing = bytes(font.getmask(_MISSING))
    return all(bytes(font.getmask(letter)) != missing for letter in set(text) if not unicodedata.combining(letter))


@cache
def _usual(size: float) -> list[Any]:
    from PIL import ImageFont

    found = []
    for name in FONTS:
        with suppress(OSError):
            found.append(ImageFont.truetype(name, size))
    return [*found, ImageFont.load_default(size)]


@cache
def _named(name: str, size: float) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(name, size)
    except OSError:
        raise JacanaError(f"there is no font {name!r}: name a file of type TTF or OTF") from None
