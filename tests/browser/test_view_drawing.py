"""The page of `jacana-torch view` in a browser: curves, matrices, and the details of a link."""

from __future__ import annotations

import re

import pages
import pytest
from pages import ids, kinds
from variants import variants

from jacana_torch.view import Why

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy


def test_every_link_is_drawn_as_what_it_is(compared):
    found = [kinds(compared.locator("article").nth(k)) for k in range(4)]
    assert found == [
        {"hit": 2, "miss": 0, "invention": 0, "aside": 1},
        {"hit": 2, "miss": 1, "invention": 1, "aside": 0},
        {"hit": 0, "miss": 1, "invention": 1, "aside": 1},
        {"hit": 0, "miss": 0, "invention": 0, "aside": 0},
    ]
    assert compared.title() == "Four stories"
    assert compared.locator("#files").inner_text() == "gold.jsonl against found.jsonl"
    assert ids(compared) == ["story-1", "story-2", "story-3", "story-4"]


def test_kinds_differ_by_dashes_and_signs_and_not_by_colour_alone(compared):
    styles, signs = {}, {}
    for kind in ("hit", "miss", "invention"):
        part = compared.locator(f"#pairs .part.{kind}").first
        styles[kind] = part.locator(".line").evaluate("line => getComputedStyle(line).strokeDasharray")
        signs[kind] = "".join(part.locator(".sign").all_text_contents())
    assert len(set(styles.values())) == 3
    assert signs == {"hit": "", "miss": "○", "invention": "✕"}


def test_curves_end_at_their_words(compared):
    """Compare the browser's geometry of every link with the boxes of its words."""
    ends = compared.evaluate("""() => [...document.querySelectorAll('article')].flatMap(article =>
        [...article.querySelectorAll('.part .line')].map(line => {
            const at = (where) => {
                const point = line.getPointAtLength(where).matrixTransform(line.getScreenCTM());
                const words = [...article.querySelectorAll('.word')].map(w => [w, w.getBoundingClientRect()]);
                const near = words.filter(([, box]) => point.x >= box.left && point.x <= box.right &&
                    Math.min(Math.abs(point.y - box.top), Math.abs(point.y - box.bottom)) < 3);
                return near.map(([word]) => word.textContent).join('?');
            };
            return [article.querySelector('.id').textContent, at(0), at(line.getTotalLength())];
        }))""")
    expected = []
    for (source, target, sure, possible, found), number in zip(pages.STORIES, range(1, 5), strict=True):
        for i, j in sorted(sure | possible | found):
            expected.append([f"story-{number}", source.split()[i], target.split()[j]])
    assert ends == expected


def test_signs_stand_on_their_curves(compared):
    away = compared.evaluate("""() => [...document.querySelectorAll('article .part')].flatMap(part => {
        const [line, sign] = [part.querySelector('.line'), part.querySelector('.sign')];
        if (!sign) return [];
        const all = Array.from({ length: 101 }, (_, k) => line.getPointAtLength(line.getTotalLength() * k / 100));
        const [x, y] = ['x', 'y'].map(edge => +sign.getAttribute(edge));
        return [Math.min(...all.map(point => Math.hypot(point.x - x, point.y - y)))];
    })""")
    assert len(away) == 6 and max(away) < 3


@pytest.mark.parametrize("flipped", variants([True, False]))
def test_matrix_cells_stand_where_their_words_meet(opened, flipped):
    gold, predicted = pages.stories()
    if flipped:  # then the source words go across, where they are more
        gold, predicted = [one.flip() for one in gold], [one.flip() for one in predicted]
    view = opened(gold, predicted)
    view.check("[name=mode][value=matrix]", force=True)
    found = view.evaluate("""() => [...document.querySelectorAll('article')].map(article => {
        const labels = [...article.querySelectorAll('.label:not(.side)')];
        const named = (side, edge) => labels.filter(label => label.classList.contains(side))
            .map(label => [label.textContent, +label.getAttribute(edge)]);
        const [down, across] = [named('row', 'y'), named('column', 'x')];
        const near = (all, at) => all.find(([, where]) => Math.abs(where - at) < 1)[0];
        return [...article.querySelectorAll('rect.reach')].map(rect => {
            const middle = (edge, size) => +rect.getAttribute(edge) + rect.getAttribute(size) / 2;
            return [near(down, middle('y', 'height')), near(across, middle('x', 'width'))];
        });
    })""")
    for example, found_links, cells in zip(gold, predicted, found, strict=True):
        one, other = example.pair.source.tokens, example.pair.target.tokens
        links = sorted(example.gold.sure | example.gold.possible | found_links.sure)
        met = [[one[i], other[j]] for i, j in links]
        assert cells == ([words[::-1] for words in met] if len(one) > len(other) else met)
    view.keyboard.press("j")
    for i, j in sorted(gold[0].gold.sure | gold[0].gold.possible):  # what stands out is named as it is drawn
        view.keyboard.press("l")
        lit = view.locator("article").first.locator(".label.on").all_text_contents()
        assert sorted(lit) == sorted([gold[0].pair.source.tokens[i], gold[0].pair.target.tokens[j]])


def test_opacity_is_confidence_but_misses_are_always_seen(compared):
    lines = compared.locator("article").nth(1).locator(".part")
    shown = lines.evaluate_all(
        "parts => parts.map(p => [p.classList[1], +p.querySelector('.line').getAttribute('stroke-opacity')])"
    )
    opacity = {0.3: 0.475, 0.95: 0.963}
    assert shown == [["hit", opacity[0.3]], ["hit", opacity[0.3]], ["invention", opacity[0.3]], ["miss", 1]]


def point_at(part) -> None:
    """Move the mouse onto a curve, off the middle, where others may cross it."""
    x, y = part.locator(".line").evaluate("""line => {
        const point = line.getPointAtLength(line.getTotalLength() / 5).matrixTransform(line.getScreenCTM());
        return [point.x, point.y];
    }""")
    part.page.mouse.move(x, y)


def test_hover_tells_the_words_the_kind_and_the_posterior(compared):
    article = compared.locator("article").nth(1)
    point_at(article.locator(".part").nth(0))
    said = compared.locator("#tip p").all_inner_texts()
    assert said == ["Nina – Nina", "✓ correct", "posterior 30.0 %"]
    assert article.locator(".word.on").all_inner_texts() == ["Nina", "Nina"]
    compared.mouse.move(2, 2)
    assert compared.locator("#tip").is_hidden() and article.locator(".on").count() == 0


def test_hovering_a_word_lights_its_links(compared):
    article = compared.locator("article").nth(1)
    article.locator(".word", has_text="sold").first.hover()
    assert article.locator(".word.on").all_inner_texts() == ["sold", "sold"]
    assert article.locator(".part.on").count() == 1


def test_reasons(opened):
    gold, predicted = pages.stories()

    def reasons(i, j):
        return Why("both directions have it", "the same word.", [("spelling", 1.5), (pages.ATTACK, -0.25)], 0.125)

    view = opened(gold, predicted, why=[reasons] * len(gold))
    article = view.locator("article").nth(1)
    view.keyboard.press("j")
    for _ in range(2):
        view.keyboard.press("j")
    view.keyboard.press("k")
    for _ in range(3):
        view.keyboard.press("ArrowRight")
    assert article.evaluate("article => article === document.activeElement")
    said = view.locator("#tip").inner_text()
    assert "✕ spurious: in predicted alone" in said and "both directions have it" in said
    assert re.findall(r"[+−][\d.]+", said) == ["+1.50", "−0.25", "+1.25"]
    assert pages.ATTACK in said and "the same word." in said
    view.keyboard.press("ArrowRight")
    assert "○ missed: in gold alone" in view.locator("#tip").inner_text()
    assert "posterior 12.5 %" in view.locator("#tip").inner_text()


def test_lines_follow_their_words_when_the_window_narrows(opened):
    view = opened(pages.many(12))
    line = view.locator("article").nth(3).locator(".line").last
    before = line.get_attribute("d")
    view.set_viewport_size({"width": 420, "height": 800})
    expect(line).not_to_have_attribute("d", before)
    assert view.evaluate("document.documentElement.scrollWidth") <= 420


def test_links_can_be_listened_to(compared):
    items = compared.locator("article").nth(1).locator("ul.heard li").all_text_contents()
    assert items == [
        "Nina – Nina: correct, 30.0 %",
        "sold – sold: correct, 30.0 %",
        "her – The: spurious, 30.0 %",
        "boat – boat: missed",
    ]
