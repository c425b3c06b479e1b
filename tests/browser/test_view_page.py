"""The page of `jacana-torch view` in a browser: drawing, controls, keyboard, print, looks, what it keeps out."""

from __future__ import annotations

import re

import pages
import pytest

from jacana_torch.evaluate import score
from jacana_torch.view import Why, page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
expect.set_options(timeout=15_000)  # machines that test are busy


def written(tmp_path, *arguments, **more):
    path = tmp_path / "page.html"
    path.write_text(page(*arguments, **more), encoding="utf-8")
    return path


@pytest.fixture
def opened(tmp_path, visit):
    """open(examples, predicted, ...) -> the page of them."""

    def open_(*arguments, browser: dict | None = None, **more):
        return visit(written(tmp_path, *arguments, **more), **(browser or {}))

    return open_


@pytest.fixture
def compared(opened):
    """The four stories, gold against predicted."""
    return opened(*pages.stories(), title="Four stories", files=("gold.jsonl", "found.jsonl"))


def ids(view) -> list[str]:
    return view.locator("article .id").all_inner_texts()


def kinds(article) -> dict[str, int]:
    return {kind: article.locator(f".part.{kind}").count() for kind in ("hit", "miss", "invention", "aside")}


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
    """Of every link: the browser's own geometry against the words' boxes."""
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
    [("all", "1234"), ("errors", "23"), ("misses", "23"), ("exact", "14"), ("unsure", "23"), ("none", "4")],
)
def test_filters(compared, wanted, kept):
    compared.select_option("#filter", wanted)
    assert ids(compared) == [f"story-{number}" for number in kept]
    number = len(kept)
    assert compared.locator("#found").inner_text() == ("4 pairs" if number == 4 else f"{number} of 4 pairs")


@pytest.mark.parametrize(
    ("key", "order", "backwards"),
    [
        ("position", "1234", "4321"),
        ("f1", "3214", "1423"),  # equals stay as they are in the file
        ("errors", "1423", "2314"),
        ("misses", "1423", "2314"),
        ("inventions", "1423", "2314"),
        ("words", "4132", "2314"),
        ("confidence", "2314", "4123"),
    ],
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
    assert said == ["Nina – Nina", "✓ hit", "posterior 30.0 %"]
    assert article.locator(".word.on").all_inner_texts() == ["Nina", "Nina"]
    compared.mouse.move(2, 2)
    assert compared.locator("#tip").is_hidden() and article.locator(".on").count() == 0


def test_hovering_a_word_lights_its_links(compared):
    article = compared.locator("article").nth(1)
    article.locator(".word", has_text="sold").first.hover()
    assert article.locator(".word.on").all_inner_texts() == ["sold", "sold"]
    assert article.locator(".part.on").count() == 1


def test_opacity_is_confidence_but_misses_are_always_seen(compared):
    lines = compared.locator("article").nth(1).locator(".part")
    shown = lines.evaluate_all(
        "parts => parts.map(p => [p.classList[1], +p.querySelector('.line').getAttribute('stroke-opacity')])"
    )
    opacity = {0.3: 0.475, 0.95: 0.963}
    assert shown == [["hit", opacity[0.3]], ["hit", opacity[0.3]], ["invention", opacity[0.3]], ["miss", 1]]


def test_reasons(opened):
    gold, predicted = pages.stories()

    def reasons(i, j):
        return Why(
            "both directions have it", [("spelling: suffix", 1.5), (pages.ATTACK, -0.25)], i == 0, 1, -2.5, 0.125
        )

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
    assert "✕ invented: in predicted alone" in said and "both directions have it" in said
    assert re.findall(r"[+−][\d.]+", said) == ["+1.50", "−0.25"]
    assert pages.ATTACK in said and "loses by 2.50 against “boat”" in said
    view.keyboard.press("ArrowRight")
    assert "○ missed: in gold alone" in view.locator("#tip").inner_text()
    assert "posterior 12.5 %" in view.locator("#tip").inner_text()


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


@pytest.mark.parametrize("flipped", [False, True])
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
    for example, guess, cells in zip(gold, predicted, found, strict=True):
        one, other = example.pair.source.tokens, example.pair.target.tokens
        links = sorted(example.gold.sure | example.gold.possible | guess.sure)
        met = [[one[i], other[j]] for i, j in links]
        assert cells == ([words[::-1] for words in met] if len(one) > len(other) else met)


def test_signs_stand_on_their_curves(compared):
    away = compared.evaluate("""() => [...document.querySelectorAll('article .part')].flatMap(part => {
        const [line, sign] = [part.querySelector('.line'), part.querySelector('.sign')];
        if (!sign) return [];
        const all = Array.from({ length: 101 }, (_, k) => line.getPointAtLength(line.getTotalLength() * k / 100));
        const [x, y] = ['x', 'y'].map(edge => +sign.getAttribute(edge));
        return [Math.min(...all.map(point => Math.hypot(point.x - x, point.y - y)))];
    })""")
    assert len(away) == 6 and max(away) < 3


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


def background(view) -> str:
    return view.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light(opened):
    view = opened(*pages.stories(), browser={"color_scheme": "dark"})
    dark = background(view)
    view.emulate_media(color_scheme="light")
    light = background(view)
    assert dark != light
    view.click("#theme")
    assert background(view) == dark and view.locator("#theme").inner_text() == "Dark"
    view.reload()  # it is remembered
    assert background(view) == dark
    view.keyboard.press("t")
    view.emulate_media(color_scheme="dark")
    assert background(view) == light and view.locator("#theme").inner_text() == "Light"


@pytest.mark.parametrize(("mode", "scheme"), [("arcs", "light"), ("arcs", "dark"), ("matrix", "dark")])
def test_axe_finds_nothing(opened, violations, mode, scheme):
    view = opened(*pages.stories(), browser={"color_scheme": scheme})
    view.check(f"[name=mode][value={mode}]", force=True)
    assert violations(view) == []
    view.keyboard.press("j")
    view.keyboard.press("l")
    assert view.locator("#tip").is_visible() and violations(view) == []
    view.keyboard.press("?")
    assert violations(view) == []


def test_links_can_be_listened_to(compared):
    items = compared.locator("article").nth(1).locator("ul.heard li").all_text_contents()
    assert items == [
        "Nina – Nina: hit, 30.0 %",
        "sold – sold: hit, 30.0 %",
        "her – The: invented, 30.0 %",
        "boat – boat: missed",
    ]


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
    expect(view.locator("article:first-child .arcs, article:last-child .arcs")).to_have_count(1)


def test_only_what_is_near_is_drawn_and_the_end_can_be_reached(opened):
    view = opened(pages.many(800))
    assert view.locator("article").count() == 800 and view.locator("article:has(.arcs)").count() < 30
    view.keyboard.press("G")
    expect(view.locator("article:last-child .arcs")).to_have_count(1)
    assert view.evaluate("document.activeElement.getAttribute('aria-posinset')") == "800"
    expect(view.locator("article:first-child .arcs")).to_have_count(0)  # what is far is let go
    box = view.locator("article").last.bounding_box()
    assert box is not None and 0 < box["y"] < 900


def test_lines_follow_their_words_when_the_window_narrows(opened):
    view = opened(pages.many(12))
    line = view.locator("article").nth(3).locator(".line").last
    before = line.get_attribute("d")
    view.set_viewport_size({"width": 420, "height": 800})
    expect(line).not_to_have_attribute("d", before)
    assert view.evaluate("document.documentElement.scrollWidth") <= 420


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
    """Even were something let through, the policy of the page would keep it from running."""
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
