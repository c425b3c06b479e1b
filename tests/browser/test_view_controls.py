"""The page of `jacana-torch view` in a browser: scores, filters, orders, search, the keyboard."""

from __future__ import annotations

import pages
import pytest
from pages import ids, kinds
from variants import variants

from jacana_torch.evaluate import score

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy


@pytest.mark.parametrize("counting", ["sure", "all"])
def test_scores_are_those_of_evaluate(compared, counting):
    compared.select_option("#counting", counting)
    gold, predicted = pages.stories()
    right = score([example.gold for example in gold], predicted, counting)
    figures = compared.locator("#scores dd").all_inner_texts()
    assert figures == [f"{100 * value:.2f}" for value in (right.precision, right.recall, right.f1, right.exact)]


def test_what_is_possible_counts_when_told_to(compared):
    compared.select_option("#counting", "all")
    assert kinds(compared.locator("article").nth(0)) == {"hit": 2, "miss": 1, "invention": 0, "aside": 0}


@pytest.mark.parametrize(
    ("wanted", "kept"),
    variants(
        [("unsure", "23"), ("exact", "14"), ("all", "1234"), ("errors", "23"), ("misses", "23"), ("none", "4")], 2
    ),
)
def test_filters(compared, wanted, kept):
    compared.select_option("#filter", wanted)
    assert ids(compared) == [f"story-{number}" for number in kept]
    number = len(kept)
    assert compared.locator("#found").inner_text() == ("4 pairs" if number == 4 else f"{number} of 4 pairs")


@pytest.mark.parametrize(
    ("key", "order", "backwards"),
    variants(
        [
            ("position", "1234", "4321"),
            ("f1", "3214", "1423"),  # equals stay as they are in the file
            ("errors", "1423", "2314"),
            ("misses", "1423", "2314"),
            ("inventions", "1423", "2314"),
            ("words", "4132", "2314"),
            ("confidence", "2314", "4123"),
        ],
        always=2,
    ),
)
def test_sorting_and_the_other_way_round(compared, key, order, backwards):
    compared.select_option("#sort", key)
    assert ids(compared) == [f"story-{number}" for number in order]
    compared.click("#order")
    assert ids(compared) == [f"story-{number}" for number in backwards]
    assert compared.locator("#order").get_attribute("aria-pressed") == "true"


def test_search_finds_words_marks_them_and_says_where_there_are_none(compared):
    compared.fill("#query", "BOAT")
    expect(compared.locator("article")).to_have_count(1)
    assert ids(compared) == ["story-2"]
    assert compared.locator(".sought").all_inner_texts() == ["boat", "boat"]
    compared.fill("#query", "zebra")
    expect(compared.locator("article")).to_have_count(0)
    assert compared.locator("#found").inner_text() == "No pair is like that."


def test_a_view_can_be_passed_on(compared):
    compared.select_option("#filter", "errors")
    compared.select_option("#sort", "f1")
    compared.check("[name=mode][value=matrix]", force=True)
    address = compared.url
    compared.goto("about:blank")
    compared.goto(address)
    assert ids(compared) == ["story-3", "story-2"]
    assert compared.locator("article svg.grid").count() == 2
    compared.goto("about:blank")
    compared.goto(address.split("#")[0] + "#filter=constructor&sort=%3Cb%3E&mode=x&least=many")
    assert ids(compared) == ["story-1", "story-2", "story-3", "story-4"]


def test_keyboard(compared):
    def current() -> str:
        return compared.evaluate(
            "document.activeElement.querySelector('.id')?.textContent ?? document.activeElement.id"
        )

    visited = []
    for key in ("j", "j", "ArrowDown", "k", "g", "G", "ArrowUp", "p", "n", "/"):
        compared.keyboard.press(key)
        visited.append(current())
    assert visited == [*(f"story-{k}" for k in (1, 2, 3, 2, 1, 4, 3, 2, 3)), "query"]
    compared.keyboard.type("rain")  # letters typed into a box are letters
    expect(compared.locator("article")).to_have_count(1)
    compared.keyboard.press("Escape")
    assert ids(compared) == [f"story-{k}" for k in (1, 2, 3, 4)] and current() == "story-1"
    compared.keyboard.press("m")
    assert compared.locator("svg.grid").count() == 4 and current() == "story-1"
    compared.keyboard.press("l")
    assert compared.locator("#tip").is_visible()
    compared.keyboard.press("Escape")
    assert compared.locator("#tip").is_hidden()
    compared.keyboard.press("s")
    compared.keyboard.press("r")
    assert compared.input_value("#sort") == "f1" and ids(compared)[0] == "story-1"
    compared.keyboard.press("?")
    assert compared.locator("#help").is_visible()
    compared.keyboard.press("Escape")
    assert compared.locator("#help").is_hidden()


def test_the_legend_hides_a_kind(compared):
    compared.uncheck("#show-hit")
    assert compared.locator(".part.hit >> visible=true").count() == 1  # the sample in the legend
    assert compared.locator("article .part.miss").first.is_visible()
    compared.check("#show-hit")
    assert compared.locator("article .part.hit").first.is_visible()


def test_the_least_confidence_hides_links_but_not_misses(compared):
    compared.fill("#least", "50")
    second = compared.locator("article").nth(1)
    assert second.locator(".part.weak").count() == 3 and second.locator(".part.miss.weak").count() == 0
    assert compared.locator("#least-said").inner_text() == "50 %"


def test_controls_that_mean_nothing_here_are_absent(opened):
    gold, _ = pages.stories()
    single = opened([gold[1]])
    assert single.locator("#counting").is_hidden() and single.locator("#least").is_hidden()
    assert single.locator("#scores div").count() == 0 and single.locator("#legend label").count() == 0
    assert single.locator("article .part.link").count() == 3
