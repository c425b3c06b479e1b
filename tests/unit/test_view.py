"""Drawings of alignments, and the data of the page. tests/browser tests the page in a browser."""

from __future__ import annotations

import io
import json
import math
import pickle
import random
import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageColor

import jacana_torch as jt
from jacana_torch import Alignment, Example, JacanaError, Sentence, SentencePair
from jacana_torch.view import Why, grid, kinds, layout, page, svg
from jacana_torch.view.drawing import COLOURS, columns
from jacana_torch.view.layout import places
from jacana_torch.view.pages import embedded, payload

TEXT = st.text(max_size=8)
ATTACK = "</script><script>alert(1)</script>"


@st.composite
def aligned(draw) -> tuple[SentencePair, Alignment, Alignment]:
    """A pair of any characters, and two alignments of it."""
    one, other = draw(st.lists(TEXT, min_size=1, max_size=6)), draw(st.lists(TEXT, min_size=1, max_size=6))
    links = st.frozensets(st.tuples(st.integers(0, len(one) - 1), st.integers(0, len(other) - 1)))
    pair = SentencePair(Sentence(tuple(one)), Sentence(tuple(other)), draw(TEXT) or None)
    first, second = (
        Alignment(len(one), len(other), draw(links), draw(links), dict.fromkeys(draw(links), 0.25)) for _ in "ab"
    )
    return pair, first, second


def small() -> Alignment:
    pair = SentencePair(Sentence(("two", "cats")), Sentence(("a", "cat", "too")))
    return Alignment(2, 3, {(1, 1)}, {(0, 2)}, {(1, 1): 0.5}).of(pair)


GOLD = Alignment(2, 3, {(1, 1), (0, 0)})


def test_an_alignment_made_by_a_model_draws_itself():
    (alignment,) = jt.load("core").align([("The cats sleep.", "The cats are sleeping.")])
    assert alignment.pair.source.tokens == ("The", "cats", "sleep", ".")
    words = ElementTree.fromstring(alignment.to_svg()).iter("{http://www.w3.org/2000/svg}text")
    assert [word.text for word in words] == "The cats sleep . The cats are sleeping .".split()
    assert alignment.to_text() == alignment.to_text(("The cats sleep .", "The cats are sleeping ."))


def test_the_pair_is_not_part_of_equality_or_pickles():
    one = small()
    bare = Alignment(2, 3, {(1, 1)}, {(0, 2)})
    assert one == bare and hash(one) == hash(bare) and "too" not in repr(one)
    assert pickle.loads(pickle.dumps(one)).pair is None and pickle.loads(pickle.dumps(one)) == one
    assert bare.pair is None and bare._repr_html_() is None


@pytest.mark.parametrize("method", ["to_text", "to_html", "to_svg", "to_png", "to_latex"])
def test_words_that_are_not_those_aligned_are_refused(method):
    bare = Alignment(2, 3, {(1, 1)})
    with pytest.raises(JacanaError, match="does not know its words: give the pair"):
        getattr(bare, method)()
    with pytest.raises(JacanaError, match="2 x 3 tokens, and the pair has 3 x 3"):
        getattr(bare, method)(("one too many", "a b c"))
    with pytest.raises(JacanaError, match="gold is of 1 x 1 tokens"):
        getattr(bare, method)((["a", "b"], "a b c"), gold=Alignment(1, 1))


def test_text():
    assert small().to_text().splitlines() == [
        "         c  t",
        "         a  o",
        "      a  t  o",
        "two   ·  ·  ◇",
        "cats  ·  ▓  ·",
        "      ◇ possible",
    ]


def test_text_against_gold_in_ascii():
    lines = small().to_text(gold=GOLD, ascii=True).splitlines()
    assert lines[3:] == ["two   o  .  ?", "cats  .  +  .", "      # correct  o missed  ? possible"]


@given(aligned())
def test_the_grid_has_a_mark_for_every_cell_and_aligned_columns(case):
    pair, alignment, gold = case
    marks = grid(pair.source.tokens, pair.target.tokens, kinds(alignment, gold), alignment.confidence).split("\n")
    assert all(line.isprintable() for line in marks)
    body = [line for line in marks if re.search(r"(  [·█▓▒░○✕◇])+$", line) and not re.search(r"[a-z]{3}$", line)]
    m, n = len(pair.source), len(pair.target)
    rows = marks[-m - bool(kinds(alignment, gold)) :][:m] if len(body) >= m else body
    assert len(rows) == m
    signs = {"hit": "█▓▒░", "miss": "○", "invention": "✕", "aside": "◇"}
    for i, row in enumerate(rows):
        cells = row[-3 * n :]
        for j in range(n):
            kind = kinds(alignment, gold).get((i, j))
            assert cells[3 * j + 2] in (signs[kind] if kind else "·") and cells[3 * j : 3 * j + 2] == "  "
        assert columns(row) == columns(rows[0])


@given(aligned())
def test_kinds_by_set_operations(case):
    _, alignment, gold = case
    found = kinds(alignment, gold)
    by_kind = {
        kind: {link for link in found if found[link] == kind} for kind in ("hit", "miss", "invention", "aside")
    }
    assert by_kind["hit"] == alignment.sure & gold.sure
    assert by_kind["miss"] == gold.sure - alignment.sure
    assert by_kind["invention"] == alignment.sure - gold.sure
    assert by_kind["aside"] == (alignment.possible | gold.possible) - alignment.sure - gold.sure


@given(aligned())
def test_pictures_are_well_formed_and_hold_every_word_and_link(case):
    pair, alignment, gold = case
    found = kinds(alignment, gold)
    root = ElementTree.fromstring(svg(pair.source.tokens, pair.target.tokens, found, alignment.confidence))
    name = "{http://www.w3.org/2000/svg}"
    words = [text for text in root.iter(f"{name}text") if text.get("fill") == "currentColor"]
    assert len(words) == len(pair.source) + len(pair.target)
    for text, token in zip(words, pair.source.tokens + pair.target.tokens, strict=True):
        assert (text.text or "") == "".join(c if c.isprintable() else "\ufffd" for c in token)
    assert len(list(root.iter(f"{name}path"))) == len(found)
    assert {element.tag for element in root.iter()} <= {
        name + tag for tag in ("svg", "title", "rect", "path", "text")
    }


def test_pictures_show_probabilities_by_opacity_and_kinds_by_dashes():
    words, links = ["a"] * 5, {(0, 0): "hit", (1, 1): "hit", (2, 2): "miss", (3, 3): "invention", (4, 4): "aside"}
    drawn = ElementTree.fromstring(svg(words, words, links, {(0, 0): 0.0, (1, 1): 0.5}))
    paths = list(drawn.iter("{http://www.w3.org/2000/svg}path"))
    assert [path.get("stroke-opacity") for path in paths] == ["0.25", "0.62", "1.00", "1.00", "1.00"]
    assert len({path.get("stroke-dasharray") for path in paths}) == 4
    assert drawn[0].text == "Two sentences and the links between their words: 2 correct, 1 missed, 1 spurious"


@given(st.lists(st.text("ab漢", min_size=1, max_size=12), max_size=40), st.floats(10, 80))
def test_words_on_lines_do_not_touch_and_lines_are_not_too_long(tokens, most):
    middles, widest, lines = places(tokens, most)
    spans = [(line, x - columns(t) / 2, x + columns(t) / 2) for (x, line), t in zip(middles, tokens, strict=True)]
    assert widest <= max([most, *(columns(token) for token in tokens)]) + 1e-6
    assert all(left >= -1e-6 and right <= widest + 1e-6 for _, left, right in spans)
    for (line, _, right), (other, left, _) in zip(spans, spans[1:], strict=False):
        assert other == line + 1 or (other == line and left > right + 1)
    assert lines == (spans[-1][0] + 1 if spans else 0)


def test_a_plot_of_every_kind():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    alignment = Alignment(2, 3, {(1, 1), (1, 2)}, {(0, 2)}, {(1, 1): 0.5})
    ax = alignment.to_matplotlib((["$a", "b$c$"], ["x", "y_{2}", ""]), gold=GOLD)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$a", "b$c$"]
    drawn = {
        points.get_label(): {tuple(map(int, spot)) for spot in points.get_offsets()} for points in ax.collections
    }
    assert drawn == {"correct": {(1, 1)}, "spurious": {(2, 1)}, "missed": {(0, 0)}, "possible": {(2, 0)}}
    ax.figure.canvas.draw()  # dollar signs are not read as mathematics
    figure, own = matplotlib.pyplot.subplots()
    assert alignment.to_matplotlib(("a b", "c d e"), ax=own) is own
    matplotlib.pyplot.close("all")


def test_without_matplotlib_a_plot_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(JacanaError, match=r"pip install 'jacana-torch\[plot\]'"):
        small().to_matplotlib()


def test_a_notebook_shows_links_that_open_their_reasons():
    model = jt.load("core")
    pair = SentencePair(Sentence(("the", "cats", ATTACK)), Sentence(("cats", ATTACK, "sleep")))
    (alignment,) = model.align([pair])
    shown = alignment._repr_html_()
    parts = re.findall(r'<details data-link="(\d+)-(\d+)".*?<p[^>]*>(.*?)</p>(.*?)</details>', shown, re.S)
    assert [(int(i), int(j)) for i, j, *_ in parts] == alignment.links and len(parts) == 2
    for i, j, reason, table in parts:
        link = alignment.explain(int(i), int(j))
        assert unescape(reason) == link.reason and table.count("<tr>") == len(link.to_dict()["groups"])
    scripts = Scripts()
    scripts.feed(shown)
    assert (
        scripts.tags.count("script") == 1
        and "alert" not in "".join(scripts.held)
        and "cats" not in scripts.held[0]
    )
    (other,) = jt.load("bag_of_words").align([pair])  # which gives no reasons
    assert other._repr_html_() == other.to_svg() and "<script" not in other.to_svg()


def crossed(figure: layout.Figure, links: list[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """(link, word) where a curve runs through a word that it does not join, by points on the curve."""
    found = []
    boxes = [(word.x, word.y, columns(word.text) * layout.COLUMN / 2) for word in figure.words]
    for curve, (i, j) in zip(figure.curves, links, strict=True):
        for (x, y), (a, b), (c, d), (u, v) in curve.steps():
            for t in (k / 16 for k in range(17)):
                r = 1 - t
                across, down = (
                    r**3 * one + 3 * r * r * t * two + 3 * r * t * t * three + t**3 * four
                    for one, two, three, four in ((x, a, c, u), (y, b, d, v))
                )
                through = (
                    n
                    for n, (at, base, half) in enumerate(boxes)
                    if -10 < down - base < 4 and abs(across - at) < half
                )
                found += [(curve.link, n) for n in through if n not in (i, number + j)]
    return found


@pytest.mark.parametrize("most", [25, 40, 200])
def test_curves_of_pictures_never_run_through_words(most):
    words = ["a" * (1 + k % 7) for k in range(28)]
    order = random.Random(most).sample(range(28), 28)
    links = dict.fromkeys(enumerate(order), "link")
    assert crossed(layout.figure(words, words, links, most=most), list(links), 28) == []


def test_words_from_right_to_left_stand_in_place():
    hebrew = "הילדה קראה ספר ישן .".split()
    for tokens, seen in (
        (hebrew, [4, 3, 2, 1, 0]),
        (["she", "said", *hebrew[:2], "twice", "."], [0, 1, 3, 2, 4, 5]),
        ([*hebrew[:3], "a", "b", ",", "c", hebrew[3]], [7, 3, 4, 5, 6, 2, 1, 0]),
    ):
        middles, *_ = places(tokens, 100)
        assert sorted(range(len(tokens)), key=lambda k: middles[k][0]) == seen


def test_png_holds_the_colours_of_links_where_they_are():
    words, links = ["aa", "bb", "cc"], {(0, 0): "hit", (1, 1): "miss", (2, 2): "invention"}
    pair = SentencePair(Sentence(tuple(words)), Sentence(tuple(words)))
    gold = Alignment(3, 3, {(0, 0), (1, 1)})
    made = Alignment(3, 3, {(0, 0), (2, 2)}).of(pair)
    image = Image.open(io.BytesIO(made.to_png(gold=gold, scale=3, background="#102030")))
    figure = layout.figure(words, words, links)
    assert image.size == (math.ceil(3 * figure.width), math.ceil(3 * figure.height))
    assert image.getpixel((0, 0)) == (16, 32, 48) and image.text["Title"].endswith(
        "1 correct, 1 missed, 1 spurious"
    )
    for curve in figure.curves:
        x, y = curve.points[0]
        near = [image.getpixel((round(3 * x) + dx, round(3 * y) + dy)) for dx in (-1, 0, 1) for dy in range(8)]
        assert ImageColor.getrgb(COLOURS[curve.kind]) in near


@pytest.mark.parametrize(
    ("looks", "message"),
    [
        ({"scale": 0}, "scale 0 makes"),
        ({"scale": 1e5}, "choose another"),
        ({"background": "blurple"}, "name a colour"),
    ]
    + [({"font": "no-such-font"}, "there is no font")],
)
def test_png_that_cannot_be_drawn(looks, message):
    with pytest.raises(JacanaError, match=message):
        small().to_png(**looks)


@given(aligned())
def test_latex_is_balanced_and_holds_every_word_and_link(case):
    pair, alignment, gold = case
    text = alignment.to_latex(pair, gold=gold)
    assert text.startswith("\\begin{tikzpicture}") and text.endswith("\\end{tikzpicture}\n")
    depth = [0]
    for found in re.findall(r"(?<!\\)(?:\\\\)*([{}])", text):
        depth.append(depth[-1] + (1 if found == "{" else -1))
    assert min(depth) == 0 == depth[-1] and not re.search(r"(?<!\\)[#$%&_^~](?!\\circ|\\times|\\diamond|\})", text)
    assert text.count("\\draw[") == len(kinds(alignment, gold))
    assert text.count("anchor=base]") == len(pair.source) + len(pair.target)


class Scripts(HTMLParser):
    """The elements of a page and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.held: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "script":
            self.held.append("")

    def handle_data(self, data):
        if self.lasttag == "script" and self.held:
            self.held[-1] += data


def parsed(text: str) -> tuple[list[str], dict]:
    scripts = Scripts()
    scripts.feed(text)
    return scripts.tags, json.loads(scripts.held[0])


def read_back(data: dict) -> list[tuple]:
    """A second reader of the data, next to assets/pairs.js."""
    out = []
    for id, source, target, flat, *_ in data["pairs"]:
        words = [(side.split(" ") if side else []) if isinstance(side, str) else side for side in (source, target)]
        links = {tuple(flat[k : k + 2]): tuple(flat[k + 2 : k + 4]) for k in range(0, len(flat), 4)}
        out.append((id or None, *words, links))
    return out


@given(st.lists(aligned(), min_size=1, max_size=3))
def test_the_page_holds_the_given_alignments(cases):
    examples = [Example(pair, gold) for pair, gold, _ in cases]
    _, data = parsed(page(examples, [found for _, _, found in cases]))
    assert data["files"] == ["gold", "predicted"]
    for (pair, gold, found), (id, source, target, links) in zip(cases, read_back(data), strict=True):
        assert (id, source, target) == (pair.id, list(pair.source.tokens), list(pair.target.tokens))
        says = {}
        for bit, side in ((1, gold.sure), (2, gold.possible), (4, found.sure), (8, found.possible)):
            for link in side:
                says[link] = says.get(link, 0) + bit
        probabilities = {
            link: round(1000 * found.confidence[link]) if link in found.confidence else -1 for link in says
        }
        assert links == {link: (says[link], probabilities[link]) for link in says} and list(links) == sorted(links)


@given(aligned())
def test_no_word_becomes_markup(case):
    pair, gold, _ = case
    plain = page([Example(small().pair, small())])
    hostile = SentencePair(Sentence((ATTACK, *pair.source.tokens)), pair.target, "<!--")
    gold = Alignment(len(hostile.source), len(hostile.target))
    text = page([Example(hostile, gold)], title=ATTACK, files=("<script>",))
    assert parsed(text)[0] == parsed(plain)[0]
    text.encode("utf-8")  # lone surrogates are escaped


def test_what_could_end_a_script_is_escaped():
    assert embedded(["</SCRIPT>", "<!--", "\u2028", "\ud800", "{{data}}"]) == (
        '["\\u003c/SCRIPT>","\\u003c!--","\\u2028","\\ud800","{{data}}"]'
    )


def test_gold_alone_and_a_prediction_alone_give_the_same_page():
    pair, alignment = small().pair, small()
    shown = page([Example(pair, alignment)], files=["x"]), page([Example(pair)], [alignment], files=["x"])
    assert parsed(shown[0])[1] == parsed(shown[1])[1]


def test_reasons_are_packed_once_by_name():
    def explain(i, j):
        return Why("kept", "the same word.", [("a", 1.004), ("b", -2.0)], 0.5) if i else None

    examples = [Example(small().pair, small())] * 2
    data = json.loads(payload(examples, [], ["x"], [explain, explain]))
    assert (
        data["groups"] == ["a", "b"] and data["verdicts"] == ["kept"] and data["sentences"] == ["the same word."]
    )
    assert data["pairs"][0][4] == [0, [0, 0, 0, 100, 1, -200]]
    assert data["pairs"][0][3] == [0, 2, 8, -1, 1, 1, 4, 500]  # a known confidence stays


def test_predictions_must_fit():
    pair = small().pair
    with pytest.raises(JacanaError, match="there are 1 pairs and 0 predictions"):
        page([Example(pair, GOLD)], [])
    with pytest.raises(JacanaError, match="pair 1 has 2 x 3 tokens and its prediction 3 x 2"):
        page([Example(pair, GOLD)], [GOLD.flip()])


def test_a_page_loads_nothing_and_allows_its_own_script_alone():
    text = page([Example(small().pair, small())])
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)|@import|url\(|https?://(?!www\.w3\.org)""", text)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+'; base-uri 'none'; "
        r"form-action 'none'",
        policy,
    )
