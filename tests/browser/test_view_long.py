"""The page of `jacana-torch view` in a browser: long sentences, and sentences written from right to left."""

from __future__ import annotations

import pages
import pytest

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy

# For each curve, the words that it runs through, besides the two that it joins.
CROSSED = """() => [...document.querySelectorAll('article .part .line')].flatMap(line => {
    const boxes = [...line.closest('article').querySelectorAll('.word')].map(word => word.getBoundingClientRect());
    const length = line.getTotalLength();
    const crossed = new Set();
    for (let at = 4; at < length - 4; at += 4) {
        const point = line.getPointAtLength(at).matrixTransform(line.getScreenCTM());
        boxes.forEach((box, k) => {
            const within = point.x > box.left + 1 && point.x < box.right - 1;
            if (within && point.y > box.top + 2 && point.y < box.bottom - 2) crossed.add(k);
        });
    }
    return [...crossed];
})"""
# How far a curve is from the word that it begins at, in pixels.
ENDS = """() => Math.max(...[...document.querySelectorAll('article .arcs')].flatMap(arcs => {
    const words = [...arcs.querySelectorAll('.source .word')].map(word => word.getBoundingClientRect());
    return [...arcs.querySelectorAll('.line')].map(line => {
        const point = line.getPointAtLength(0).matrixTransform(line.getScreenCTM());
        const away = ({ x, width, bottom }) => Math.hypot(point.x - x - width / 2, point.y - bottom);
        return Math.min(...words.map(away));
    });
}))"""
# What the pane of a matrix shows: how many words of its rows can be seen, and the frame of the overview.
SEEN = """() => {
    const box = (name) => document.querySelector(name).getBoundingClientRect();
    const [pane, head, side] = ['.pane', '.heads', '.sides'].map(box);
    const rows = [...document.querySelectorAll('.label.row')].map(one => one.getBoundingClientRect());
    const frame = document.querySelector('.frame');
    return {
        rows: rows.map(({ y, height }) => y + height / 2).filter(y => y > head.bottom && y < pane.bottom).length,
        letters: rows[0].height,
        frame: frame && ['x', 'y', 'width', 'height'].map(name => +frame.getAttribute(name)),
        apart: head.top - pane.top + side.left - pane.left,
    };
}"""


def shuffled(words: int, name: str = "word") -> pages.Example:
    """A sentence of this many words, and the same with its parts exchanged."""
    source = [f"{name}{k}" if k % 3 else "a" for k in range(words)]
    order = [*range(words // 2, words), *range(words // 2)]
    return pages.example(
        " ".join(source), " ".join(source[k] for k in order), {(k, j) for j, k in enumerate(order)}
    )


def test_curves_never_run_through_words(opened):
    view = opened([shuffled(34), shuffled(7)], browser={"viewport": {"width": 460, "height": 1400}})
    assert view.locator(".line").count() == 41
    assert view.locator(".words.source").first.bounding_box()["height"] > 150
    assert view.evaluate(CROSSED) == []


def test_phrases_of_long_sentences_are_bundled(opened):
    view = opened([shuffled(22, "w")])
    assert view.locator(".words.source").bounding_box()["height"] < 50  # one line
    heights = view.evaluate("""() => [...document.querySelectorAll('article .line')].slice(0, 6).map(line => {
        const box = line.getBBox();
        for (let at = 0; at < line.getTotalLength(); at += 1) {
            const point = line.getPointAtLength(at);
            if (point.y >= box.y + box.height / 3) return point.x;
        }
    })""")
    ends = view.evaluate("""() => [...document.querySelectorAll('article .line')].slice(0, 6)
        .map(line => line.getPointAtLength(0).x)""")
    assert max(heights) - min(heights) < 20 < 150 < max(ends) - min(ends)


def test_long_pairs_are_matrices_that_scroll_and_zoom(opened, violations):
    view = opened([shuffled(88), shuffled(20)])
    assert view.locator("article").nth(0).locator(".matrix").count() == 1
    assert view.locator("article").nth(1).locator(".arcs").count() == 1
    before = view.evaluate(SEEN)
    assert before["letters"] > 9 and before["rows"] < 70 and before["frame"][0:2] == [0, 0]
    view.keyboard.press("j")
    for _ in range(60):
        view.keyboard.press("l")
    after = view.evaluate(SEEN)  # a link that is stepped to comes into sight, and the labels stay there
    assert after["frame"][1] > 0 and after["apart"] == before["apart"]
    assert view.locator(".label.on").count() == 2 and violations(view) == []
    view.keyboard.press("0")
    everything = view.evaluate(SEEN)
    assert everything["rows"] == 88 and everything["frame"] is None  # so there is no overview
    for _ in range(6):
        view.keyboard.press("+")
    near = view.evaluate(SEEN)
    assert near["rows"] < 40 and near["letters"] > before["letters"]
    view.locator(".overview").click(position={"x": 75, "y": 75})
    assert view.evaluate(SEEN)["frame"][1] > near["frame"][1]


def test_matrices_fit_phones_and_can_be_tapped(opened):
    view = opened([shuffled(60)], browser={"viewport": {"width": 390, "height": 800}, "has_touch": True})
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    assert view.evaluate(SEEN)["letters"] > 9
    view.locator("article .part").nth(30).tap()  # it is scrolled to
    assert view.locator("#tip .joined").inner_text() == "a – a" and view.locator(".part.on").count() == 1
    view.locator("#found").tap()
    assert view.locator("#tip").is_hidden() and view.locator(".part.on").count() == 0


@pytest.mark.slow
def test_long_pairs_are_printed_as_a_whole(opened):
    view = opened([shuffled(88), shuffled(30)])
    view.emulate_media(media="print")
    expect(view.locator(".whole .overview")).to_have_count(0)
    assert view.locator(".sheet").bounding_box()["width"] <= 681  # of the paper
    cut = "() => [...document.querySelectorAll('.pane')].some(one => one.scrollHeight > one.clientHeight + 1)"
    assert not view.evaluate(cut)
    assert view.evaluate(CROSSED) == [] and view.evaluate(ENDS) < 4
    view.emulate_media(media="screen")
    expect(view.locator(".scrolls .overview")).to_have_count(1)


def test_words_from_right_to_left_stand_in_place(opened):
    hebrew = pages.example("הילדה קראה ספר ישן .", "she said תודה רבה to them", {(0, 0), (1, 2), (2, 3), (3, 1)})
    view = opened([hebrew])
    placed = view.evaluate("""() => ['source', 'target'].map(side =>
        [...document.querySelectorAll(`.${side} .word`)].map(word =>
            [word.getBoundingClientRect().left, word.textContent]))""")
    lefts = [[word for _, word in sorted(words)] for words in placed]
    assert lefts == [". ישן ספר קראה הילדה".split(), "she said רבה תודה to them".split()]
