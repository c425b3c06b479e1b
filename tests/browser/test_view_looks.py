"""The page of `jacana-torch view` in a browser: dark, light, printed, long, accessible, and secure."""

from __future__ import annotations

import pages
import pytest
from variants import variants

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy


def background(view) -> str:
    return view.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.slow
def test_dark_and_light(opened):
    view = opened(*pages.stories(), browser={"color_scheme": "dark"})
    dark = background(view)
    view.emulate_media(color_scheme="light")
    light = background(view)
    assert dark != light
    view.click("#theme")
    assert background(view) == dark and view.locator("#theme").inner_text() == "Colours: dark"
    view.reload()  # it is remembered
    assert background(view) == dark
    view.keyboard.press("t")
    view.emulate_media(color_scheme="dark")
    assert background(view) == light and view.locator("#theme").inner_text() == "Colours: light"


@pytest.mark.parametrize(("mode", "scheme"), variants([("matrix", "dark"), ("arcs", "light"), ("arcs", "dark")]))
def test_axe_finds_nothing(opened, violations, mode, scheme):
    view = opened(*pages.stories(), browser={"color_scheme": scheme})
    view.check(f"[name=mode][value={mode}]", force=True)
    assert violations(view) == []
    view.keyboard.press("j")
    view.keyboard.press("l")
    assert view.locator("#tip").is_visible() and violations(view) == []
    view.keyboard.press("?")
    assert violations(view) == []


@pytest.mark.slow
def test_print_shows_every_pair_and_no_control(opened):
    view = opened(pages.many(60))
    assert view.locator("article:has(.arcs)").count() < 60
    view.emulate_media(media="print", color_scheme="dark")
    expect(view.locator("article:has(.arcs)")).to_have_count(60)
    assert view.locator("#query").is_hidden() and view.locator(".buttons").is_hidden()
    assert background(view) == "rgb(255, 255, 255)"
    view.evaluate("scrollTo(0, 9999)")
    view.wait_for_timeout(200)
    assert view.locator("article:has(.arcs)").count() == 60
    widest = view.evaluate(
        "Math.max(...[...document.querySelectorAll('.word')].map(w => w.getBoundingClientRect().right))"
    )
    assert widest < 700
    assert view.pdf().count(b"/Type /Page\n") > 5
    view.emulate_media(media="screen")
    expect(view.locator("article")).not_to_have_count(60)


def test_only_what_is_near_is_in_the_page_and_the_end_can_be_reached(opened):
    view = opened(pages.many(800))
    assert (
        3 < view.locator("article").count() < 30
        and view.locator("article").count() == view.locator(".arcs").count()
    )
    assert view.locator("article").first.get_attribute("aria-setsize") == "800"
    whole = view.evaluate("document.documentElement.scrollHeight")
    view.keyboard.press("G")
    assert view.evaluate("document.activeElement.getAttribute('aria-posinset')") == "800"
    expect(view.locator("[aria-posinset='1']")).to_have_count(0)  # what is far is let go
    box = view.locator("article").last.bounding_box()
    assert box is not None and 0 < box["y"] < 900
    assert 0.6 < view.evaluate("document.documentElement.scrollHeight") / whole < 1.6  # it was well estimated
    view.evaluate("scrollTo(0, 0)")  # a focused pair stays, so that the keyboard goes on from it
    expect(view.locator("[aria-posinset='1']")).to_have_count(1)
    view.keyboard.press("k")
    assert view.evaluate("document.activeElement.getAttribute('aria-posinset')") == "799"


def test_pairs_stand_one_below_the_other_wherever_the_page_is_scrolled_to(opened):
    view = opened(pages.many(300))
    for share in (0.5, 0.1, 0.93):
        view.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", share)
        view.wait_for_timeout(80)
        boxes = view.evaluate("""() => [...document.querySelectorAll('article')].map(one => {
            const box = one.getBoundingClientRect();
            return [+one.getAttribute('aria-posinset'), box.top, box.bottom];
        })""")
        assert [number for number, *_ in boxes] == list(range(boxes[0][0], boxes[0][0] + len(boxes)))
        assert all(abs(below[1] - above[2] - 14) < 1 for above, below in zip(boxes, boxes[1:], strict=False))
        assert boxes[0][1] < 0 and boxes[-1][2] > 900


@pytest.mark.slow
def test_what_is_looked_at_stays_in_place_while_more_comes_in(opened):
    """Above the window are pairs whose heights are only estimated until they come near."""
    view = opened(pages.many(300), browser={"viewport": {"width": 700, "height": 900}})
    view.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    view.wait_for_timeout(150)
    view.mouse.move(300, 500)
    for _ in range(8):
        view.evaluate("""() => {
            const all = [...document.querySelectorAll("article")];
            window.seen = all.find(one => one.getBoundingClientRect().top > 0);
            window.before = window.seen.getBoundingClientRect().top;
        }""")
        view.mouse.wheel(0, -350)
        view.wait_for_timeout(100)
        moved = view.evaluate("window.seen.getBoundingClientRect().top - window.before")
        assert abs(moved - 350) <= 2


def test_what_words_hold_is_text(opened):
    view = opened([pages.attacked()], title=pages.BREAKOUT, files=(pages.ATTACK,))
    for mode in ("arcs", "matrix"):
        view.check(f"[name=mode][value={mode}]", force=True)
        words = view.locator("article .word, article .label:not(.side)").all_text_contents()
        assert sorted(words) == sorted(
            [pages.ATTACK, pages.BREAKOUT, "a b", pages.BREAKOUT, "&lt;", "{{data}}", ""]
        )
        view.keyboard.press("j")
        view.keyboard.press("l")
        assert view.locator("#tip .joined").inner_text() == f"{pages.ATTACK} – {pages.BREAKOUT}"
    assert view.title() == pages.BREAKOUT and view.locator("h1").inner_text() == pages.BREAKOUT
    assert view.locator("img, article script").count() == 0
    assert view.locator("script").count() == 2
    view.fill("#query", "<img")
    view.wait_for_timeout(200)
    assert view.locator("article").count() == 1


def test_foreign_scripts_do_not_run(opened):
    """The policy of the page stops scripts even if one got past the escaping."""
    view = opened(*pages.stories(), browser={"tolerate": ("Content Security Policy",)})
    view.evaluate("""() => {
        window.ran = [];
        document.addEventListener('securitypolicyviolation', event => window.ran.push(event.violatedDirective));
        const script = document.createElement('script');
        script.textContent = "window.ran.push('ran')";
        document.body.append(script);
    }""")
    view.wait_for_timeout(100)
    assert view.evaluate("window.ran") == ["script-src-elem"]
