"""The page of `jacana-torch view` in a browser: two systems without gold, and several beside gold."""

from __future__ import annotations

import pages
import pytest
from pages import ids
from serving import until

from jacana_torch import Alignment, Example
from jacana_torch.evaluate import score
from jacana_torch.view import Why

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy


def systems() -> tuple[list[Example], list[list[Alignment]]]:
    """The stories: a system that has them right, one with errors, and one without links."""
    gold, predicted = pages.stories()
    right = [example.gold for example in gold]
    return gold, [right, predicted, [Alignment(one.n_source, one.n_target) for one in right]]


def test_two_systems_without_gold_are_neither_right_nor_wrong(opened):
    gold, (one, other, _) = systems()
    bare = [Example(example.pair) for example in gold]
    view = opened(bare, one, other, files=("old", "new"), title="Two")
    assert view.locator("#files").inner_text() == "A: old, B: new"
    assert ids(view) == ["story-2", "story-3", "story-1", "story-4"]  # where they differ comes first
    second = view.locator("article").first
    kinds = {kind: second.locator(f".part.{kind}").count() for kind in ("both", "first", "second", "hit", "miss")}
    assert kinds == {"both": 2, "first": 1, "second": 1, "hit": 0, "miss": 0}
    assert second.locator("ul.heard li").all_text_contents()[2:] == [
        "her – The: new only, 30.0 %",
        "boat – boat: old only",
    ]
    assert view.locator("#scores dd").all_inner_texts() == ["4", "2", "2", "66.7 %"]
    said = view.locator("main").inner_text() + view.locator("#legend").inner_text()
    assert not any(word in said for word in ("missed", "spurious", "correct", "Precision"))
    view.select_option("#filter", "agree")
    assert ids(view) == ["story-1", "story-4"]
    view.select_option("#filter", "second")
    assert ids(view) == ["story-2", "story-3"]


def test_three_systems_stand_side_by_side_where_they_differ(opened, violations):
    gold, (right, wrong, none) = systems()

    def reasons(i, j):
        return Why(f"about {i} and {j}")

    view = opened(gold, right, wrong, none, files=("gold", "right", "wrong", "none"), why={"wrong": [reasons] * 4})
    assert ids(view) == ["story-2", "story-1", "story-3", "story-4"]
    rows = view.locator("#table tbody tr").all_inner_texts()
    for row, name, found in zip(rows, ("right", "wrong", "none"), (right, wrong, none), strict=True):
        figures = score([example.gold for example in gold], found)
        values = (figures.precision, figures.recall, figures.f1, figures.exact)
        assert row.split() == [name, *(f"{100 * value:.2f}" for value in values)]
    panels = view.locator("article").first.locator(".system")
    found = [pages.kinds(panels.nth(k)) for k in range(3)]
    assert [(one["hit"], one["miss"], one["invention"]) for one in found] == [(3, 0, 0), (2, 1, 1), (0, 3, 0)]
    lefts = [panels.nth(k).bounding_box()["x"] for k in range(3)]
    assert lefts == sorted(set(lefts)) and violations(view) == []
    view.keyboard.press("j")
    view.keyboard.press("l")  # the same link stands out wherever it is
    assert view.locator("article").first.locator(".part.on").count() == 3
    assert "✓ correct; in right, wrong" in view.locator("#tip").inner_text()
    assert "about 0 and 5" in view.locator("#tip").inner_text()
    view.select_option("#system", "1")
    assert view.locator(".system").count() == 0
    assert pages.kinds(view.locator("article").first) == {"hit": 2, "miss": 1, "invention": 1, "aside": 0}
    view.select_option("#sort", "f1")
    assert ids(view)[0] == "story-1" and "system=1" in view.url


@pytest.mark.slow
def test_three_systems_without_gold(opened):
    gold, found = systems()
    long = pages.example(" ".join(["word"] * 60), " ".join(["word"] * 50), {(0, 0)})
    gold, found = [*gold, long], [[*one, long.gold] for one in found]
    view = opened([Example(example.pair) for example in gold], *found, files=("a", "b", "c"))
    first = view.locator("article").first.locator(".system")
    assert [first.nth(k).locator(".part.some").count() for k in range(3)] == [3, 3, 0]
    assert view.locator("#table").is_hidden() and view.locator(".part.miss").count() == 0
    view.fill("#query", "word")
    expect(view.locator(".system .scrolls")).to_have_count(3)  # matrices scroll within their columns
    assert view.evaluate("document.documentElement.scrollWidth") <= 1280
    view.evaluate("document.querySelectorAll('.pane')[1].scrollTo(90, 70)")  # and together
    same = "() => [...document.querySelectorAll('.pane')].map(one => [one.scrollLeft, one.scrollTop])"
    until(lambda: view.evaluate(same) == [[90, 70]] * 3)
    boxes = "() => [...document.querySelectorAll('.pane')].map(one => one.getBoundingClientRect().toJSON())"
    panes = view.evaluate(boxes)
    assert len(panes) == 3 and all(
        one["x"] + one["width"] < other["x"] for one, other in zip(panes, panes[1:], strict=False)
    )
