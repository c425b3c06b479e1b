"""The served page in a browser: typing, clicking, the keyboard, and words that look like HTML."""

from __future__ import annotations

import json

import pytest
from serving import served, until
from variants import variants

pytest.importorskip("starlette", reason="the extra serve is not installed")

SOURCE, TARGET = "The cook tasted the hot soup.", "The hot soup was tasted by a cook."
XSS = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&amp;"


# Letter by letter with almost no pause, even on a slow machine.
TYPE_FAST = """async texts => {
    for (const [name, text] of Object.entries(texts)) {
        const field = document.querySelector(name);
        for (let end = 0; end <= text.length; end++) {
            field.value = text.slice(0, end);
            field.dispatchEvent(new Event("input", {bubbles: true}));
            await new Promise(done => setTimeout(done));
        }
    }
}"""


@pytest.fixture(scope="module")
def client():
    from jacana_torch.model import persist

    with served({"core": persist.load("core"), "bag": persist.load("bag_of_words")}, tokens=30) as client:
        yield client


@pytest.fixture
def page(client, visit):
    return opened(client, visit)


def opened(client, visit, path: str = "/", **options):
    page = visit(f"http://{client.host}:{client.port}{path}", **options)
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    if path.startswith("/#") or path == "/":
        page.wait_for_selector("#links button")
    return page


def eventually(page, script: str, argument=None) -> None:
    """Wait until the condition holds. Playwright's own way needs scripts that the page's policy forbids."""
    until(lambda: page.evaluate(script, argument))


def type_in(page, source: str, target: str) -> None:
    """Type both sentences and wait until their alignment is shown."""
    with page.expect_response(lambda response: answers(response, source, target)):
        for name, text in (("#source", source), ("#target", target)):
            page.fill(name, "")
            page.type(name, text)
    eventually(page, "!document.querySelector('#result.stale')")


def answers(response, source: str | list[str], target: str | list[str]) -> bool:
    if not response.url.endswith("/align") or response.status != 200:
        return False
    asked = json.loads(response.request.post_data)
    return (asked["source"], asked["target"]) == (source, target)


def links_shown(page) -> list[str]:
    return page.eval_on_selector_all("#links button", "all => all.map(one => one.dataset.link)")


def align(client, **asked) -> dict:
    return client.post("/align", {"source": SOURCE, "target": TARGET, **asked}).json["alignments"][0]


def as_shown(aligned: dict) -> list[str]:
    return [f"{i}-{j}" for i, j in aligned["sure"]]


def words_drawn(page, side: str) -> list[str]:
    return page.eval_on_selector_all(f".words.{side} .word", "all => all.map(one => one.textContent)")


def verdict(page) -> str:
    page.wait_for_selector(".verdict")
    return page.text_content(".verdict")


def test_what_is_typed_is_aligned_as_it_is_typed(client, page):
    type_in(page, SOURCE, TARGET)
    wanted = align(client)
    assert links_shown(page) == as_shown(wanted)
    assert page.input_value("#pharaoh") == " ".join(as_shown(wanted))
    assert [words_drawn(page, side) for side in ("source", "target")] == [wanted["source"], wanted["target"]]
    assert page.locator("#picture .part").count() == len(wanted["sure"])
    told = page.eval_on_selector_all("#links small", "all => all.map(one => parseFloat(one.textContent) / 100)")
    assert told == pytest.approx(list(wanted["confidence"].values()), abs=6e-4)
    page.fill("#target", "")
    page.wait_for_selector("#result", state="hidden")


@pytest.mark.slow
def test_few_questions_are_asked_while_someone_types(client, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response(lambda response: answers(response, SOURCE, TARGET)):
        page.evaluate(TYPE_FAST, {"#source": SOURCE, "#target": TARGET})
    assert 1 <= len([url for url in asked if url.endswith("/align")]) <= 4


@pytest.mark.slow
def test_models_and_symmetrizers_are_switched(client, page):
    type_in(page, SOURCE, TARGET)
    for symmetrize in ("union", "intersection", "forward"):
        with page.expect_response("**/align"):
            page.select_option("#symmetrize", symmetrize)
        wanted = as_shown(align(client, symmetrize=symmetrize))
        eventually(page, "wanted => document.getElementById('pharaoh').value === wanted", " ".join(wanted))
    with page.expect_response("**/align"):
        page.select_option("#model", "bag")
    wanted = " ".join(as_shown(align(client, model="bag")))
    eventually(page, "wanted => document.getElementById('pharaoh').value === wanted", wanted)
    assert not page.is_visible("#symmetrize") and not page.is_visible("#why")


@pytest.mark.slow
def test_why_is_asked_by_mouse(client, page):
    type_in(page, SOURCE, TARGET)
    first = links_shown(page)[0]
    page.locator("#picture .part .reach").first.dispatch_event("click")
    assert "is linked to" in verdict(page)
    assert page.get_attribute(f"#links [data-link='{first}']", "aria-pressed") == "true"
    page.click(".words.source .word >> nth=1")
    page.click(".words.target .word >> nth=1")
    eventually(page, "document.querySelector('.verdict').textContent.includes('“cook” is not linked to “hot”')")
    page.check("input[value=matrix]", force=True)
    box = page.locator("#picture .ruling").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 3.5 / 9, box["y"] + box["height"] * 2.5 / 7)
    eventually(page, "document.querySelector('.verdict').textContent.includes('“tasted” is not linked to “was”')")


def test_why_is_asked_by_keyboard(client, page):
    type_in(page, SOURCE, TARGET)
    page.focus("#links button")
    page.keyboard.press("Tab")
    second = links_shown(page)[1]
    page.keyboard.press("Enter")
    assert "is linked to" in verdict(page)
    assert page.get_attribute(f"#links [data-link='{second}']", "aria-pressed") == "true"
    page.focus("#which-source")
    page.keyboard.type("5")
    page.focus("#which-target")
    page.keyboard.type("0")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    eventually(page, "document.querySelector('.verdict').textContent.includes('“soup” is not linked to “The”')")


@pytest.mark.slow
def test_reasons_are_those_of_the_drawn_alignment(page):
    """Text entered since, which is not aligned yet, does not count."""
    type_in(page, SOURCE, TARGET)
    page.evaluate("document.querySelector('#source').value = document.querySelector('#target').value = 'now'")
    page.click("#links [data-link='1-7']")
    assert "“cook” is linked to “cook”" in verdict(page)


@pytest.mark.slow
def test_the_reasons_are_the_models(client, page):
    type_in(page, SOURCE, TARGET)
    page.click("#links [data-link='1-7']")
    assert "“cook” is linked to “cook”" in verdict(page)
    answer = client.post("/explain", {"source": SOURCE, "target": TARGET, "link": [1, 7], "top": 12}).json[
        "links"
    ][0]
    assert page.locator(".reason").inner_text() == answer["reason"]
    bars = page.eval_on_selector_all(".groups tr", "rows => rows.map(row => row.querySelector('th').textContent)")
    assert bars == [group["title"] for group in answer["groups"]] and 0 < len(bars) <= 5
    assert not page.locator(".directions").is_visible()
    page.click(".more summary")
    assert page.locator(".directions").is_visible()
    shown = page.eval_on_selector_all(
        ".directions section:first-child table:first-of-type tr",
        "rows => rows.map(row => [row.querySelector('th').textContent, row.querySelector('.sum').textContent])",
    )
    wanted = [reason for reason in answer["forward"]["reasons"] if reason["contribution"]][:8]
    assert [name for name, _ in shown] == [reason["title"] for reason in wanted]
    figures = [float(figure.replace("−", "-")) for _, figure in shown]
    assert figures == pytest.approx([reason["contribution"] for reason in wanted], abs=0.0051)


def test_markup_is_text(client, page):
    page.check("#tokens")
    tokens = [XSS.replace(" ", ""), "cook"]
    with page.expect_response(lambda response: answers(response, tokens, tokens)):
        for name in ("#source", "#target"):
            page.fill(name, " ".join(tokens))
    eventually(page, "!document.querySelector('#result.stale')")
    assert words_drawn(page, "source") == words_drawn(page, "target") == tokens
    page.click("#links button")
    assert "onerror=alert(1)" in verdict(page)
    page.check("input[value=matrix]", force=True)
    assert page.locator("#picture img, #links img, #reasons img, main script").count() == 0


def test_refusals_are_shown_as_text(client, visit):
    page = opened(client, visit, tolerate=("Failed to load resource",))
    page.fill("#source", "word " * 31)
    page.wait_for_selector("#wrong")
    assert page.text_content("#wrong") == "source has 31 tokens, more than the limit of 30"
    assert page.is_hidden("#result") and page.is_hidden("#why") and not page.text_content("#said")  # not of these
    page.fill("#source", "word")
    page.wait_for_selector("#wrong", state="hidden")
    page.wait_for_selector("#result")


@pytest.mark.slow
def test_an_address_holds_what_was_typed(client, visit, page):
    type_in(page, SOURCE, TARGET)
    page.select_option("#symmetrize", "union")
    address = page.evaluate("location.hash")
    again = opened(client, visit, f"/{address}")
    assert (again.input_value("#source"), again.input_value("#target")) == (SOURCE, TARGET)
    assert again.input_value("#symmetrize") == "union"
    again.click("#swap")
    eventually(again, "document.querySelector('.words.source').textContent.includes('tasted by')")
    assert again.input_value("#source") == TARGET


@pytest.mark.slow
def test_it_says_that_the_server_is_gone(visit):
    from jacana_torch.model import persist

    with served({"bag": persist.load("bag_of_words")}) as client:
        page = opened(client, visit, tolerate=("Failed to load resource",))
    page.fill("#source", "and now")
    page.wait_for_selector("#wrong")
    assert "is it still running?" in page.text_content("#wrong")


@pytest.mark.parametrize(("scheme", "width"), variants([("dark", 390), ("light", 1280)]))
def test_it_is_accessible(client, visit, violations, scheme, width):
    page = opened(client, visit, color_scheme=scheme, viewport={"width": width, "height": 800})
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    page.click("#links button >> nth=1")
    page.click("#reasons summary")
    page.wait_for_selector(".directions")
    assert violations(page) == []
    page.check("input[value=matrix]", force=True)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_the_api_is_described_and_tried(client, visit, violations):
    page = opened(client, visit, "/docs")
    page.wait_for_selector(".endpoint")
    titles = page.eval_on_selector_all(".endpoint h2 code", "all => all.map(one => one.textContent)")
    assert titles == ["/align", "/explain", "/models", "/healthz"]
    page.click(".endpoint >> nth=0 >> text=Send")
    eventually(page, "document.querySelector('pre').textContent.startsWith('200 OK')")
    assert json.loads(page.text_content("pre").split("\n", 1)[1])["alignments"][0]["sure"]
    assert violations(page) == []
