"""The page of `annotate` in a browser: by mouse, by keyboard alone, with a server that is killed, and two people.

Every test keeps its own record of what was clicked, and compares what was saved with it.
"""

from __future__ import annotations

import random
import re
import socket
from urllib.parse import urlsplit

import pytest
from annotating import corpus, session_served
from commands import started
from serving import Client, until

from jacana_torch import corpora

pytest.importorskip("starlette", reason="the extra serve is not installed")

Links = dict[tuple[int, int], str]  # kinds of the linked cells


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Command:
    """`jacana-torch annotate` as a process, at one port however often it is started."""

    def __init__(self, *options: str) -> None:
        self.port, self.options, self.process = free_port(), options, None

    def start(self, *more: str) -> str:
        self.process = started("annotate", *self.options, "--port", str(self.port), *more)
        said = ""
        while "http://" not in said:
            line = self.process.stderr.readline().decode()
            assert line, said
            said += line
        self.client = Client("127.0.0.1", urlsplit(re.search(r"http://\S+", said)[0]).port)
        return f"http://127.0.0.1:{self.port}/"

    def end(self) -> None:
        self.process.kill()  # SIGKILL: nothing can be tidied up
        self.process.communicate()


@pytest.fixture
def command():
    made = []

    def make(*options: str) -> Command:
        made.append(Command(*options))
        return made[-1]

    yield make
    for one in made:
        one.end()


def where(page) -> int:
    """The number of the pair in the address, from 1."""
    return int(re.search(r"pair=(\d+)", page.evaluate("location.hash"))[1])


class Hand:
    """What a person does on the page, by mouse or by keyboard, and the record of it."""

    def __init__(self, page) -> None:
        self.page, self.links, self.number = page, {}, -1

    def settle(self) -> None:
        """Wait until the page says that all is saved."""
        until(lambda: self.page.text_content("#saved") == "Saved" and self.page.locator("#matrix td").count(), 60)

    def begin(self) -> None:
        self.settle()
        self.links, self.number = self.shown(), where(self.page) - 1

    def turned(self) -> bool:
        return self.page.text_content("#matrix thead th").startswith("target")

    def size(self) -> tuple[int, int]:
        rows, columns = (
            self.page.locator("#matrix tbody tr").count(),
            self.page.locator("#matrix thead th").count() - 1,
        )
        return (columns, rows) if self.turned() else (rows, columns)

    def shown(self) -> Links:
        """The links on the page, as the cells' classes have them."""
        cells = self.page.eval_on_selector_all(
            "#matrix td.sure, #matrix td.possible",
            "all => all.map(one => [Number(one.dataset.row), Number(one.dataset.column), one.classList[0]])",
        )
        turned = self.turned()
        return {(column, row) if turned else (row, column): kind for row, column, kind in cells}

    def cell(self, i: int, j: int):
        row, column = (j, i) if self.turned() else (i, j)
        return self.page.locator(f'#matrix td[data-row="{row}"][data-column="{column}"]')

    def note(self, cells, kind: str, turn: bool) -> None:
        """Record what should happen to the cells."""
        all_have_it = all(self.links.get(cell) == kind for cell in cells)
        for cell in cells:
            if kind == "none" or (turn and all_have_it):
                self.links.pop(cell, None)
            else:
                self.links[cell] = kind

    def check(self) -> None:
        self.settle()
        assert self.shown() == self.links


# Key after key, faster than any answer.
PRESSES = """keys => keys.forEach(key =>
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})))"""


def block(one, other) -> list[tuple[int, int]]:
    rows, columns = (sorted((one[k], other[k])) for k in (0, 1))
    return [(i, j) for i in range(rows[0], rows[1] + 1) for j in range(columns[0], columns[1] + 1)]


def by_mouse(hand: Hand, rng: random.Random) -> None:
    """Click cells, drag a phrase, click two words, undo and redo."""
    page, (m, n) = hand.page, hand.size()
    for spot, kind in list(hand.links.items())[:1]:  # away with it
        hand.cell(*spot).click(modifiers=["Shift"] if kind == "possible" else [])
        hand.note([spot], kind, True)
        assert spot not in hand.links
    for _ in range(2):
        spot, kind = (rng.randrange(m), rng.randrange(n)), rng.choice(["sure", "possible"])
        hand.cell(*spot).click(modifiers=["Shift"] if kind == "possible" else [])
        hand.note([spot], kind, True)
    one = (rng.randrange(m - 1), rng.randrange(n - 1))
    other = (one[0] + 1, one[1] + 1)
    hand.cell(*one).hover()
    page.mouse.down()
    hand.cell(*other).hover()
    page.mouse.up()
    hand.note(block(one, other), "sure", True)
    hand.check()
    before = dict(hand.links)
    spot = (rng.randrange(m), rng.randrange(n))
    words = [
        page.locator(f"#curves .{side} .word").nth(k) for side, k in zip(("source", "target"), spot, strict=True)
    ]
    for word in rng.choice([words, words[::-1]]):
        word.click()
    hand.note([spot], "sure", True)
    hand.check()
    page.click("#undo")
    hand.settle()
    assert hand.shown() == before
    if rng.random() < 0.5:
        page.click("#redo")
    else:
        hand.links = before
    hand.check()


def by_keyboard(hand: Hand, rng: random.Random) -> None:
    """Walk over the matrix with arrows and set cells and phrases."""
    page, (m, n) = hand.page, hand.size()
    press = page.keyboard.press
    at = [0, 0]

    def walk(i: int, j: int) -> None:
        down, right = ("ArrowRight", "ArrowDown") if hand.turned() else ("ArrowDown", "ArrowRight")
        up, left = ("ArrowLeft", "ArrowUp") if hand.turned() else ("ArrowUp", "ArrowLeft")
        for _ in range(abs(i - at[0])):
            press(down if i > at[0] else up)
        for _ in range(abs(j - at[1])):
            press(right if j > at[1] else left)
        at[:] = [i, j]

    if page.evaluate("document.activeElement.tagName") != "TD":
        press("ArrowDown")  # to the matrix
    for key, kind in (("Space", "sure"), ("2", "possible"), ("1", "sure"), ("0", "none")):
        spot = rng.randrange(m), rng.randrange(n)
        walk(*spot)
        press(key)
        hand.note([spot], kind, key == "Space")
    one = (rng.randrange(m - 1), rng.randrange(n - 1))
    walk(*one)
    press("Shift+ArrowRight")
    press("Shift+ArrowDown")
    press("Enter")
    at[:] = [one[0] + 1, one[1] + 1]
    hand.note(block(one, at), "sure", True)
    hand.check()
    before = dict(hand.links)
    press("0")
    hand.note([tuple(at)], "none", False)
    hand.check()
    if hand.links != before:
        press(rng.choice(["u", "Control+z"]))
        hand.settle()
        assert hand.shown() == before
        hand.links = before


def links_of(alignment) -> Links:
    return {**dict.fromkeys(alignment.possible, "possible"), **dict.fromkeys(alignment.sure, "sure")}


def links_in(path, format: str | None = None) -> list[Links]:
    return [links_of(example.gold) for example in corpora.read(str(path), format)]


def test_a_pair_by_mouse_and_one_by_keyboard(tmp_path, visit):
    path = corpus(tmp_path, 3)
    with session_served(path) as (url, _, session):
        page = visit(url)
        hand, rng = Hand(page), random.Random(6)
        hand.begin()
        assert (hand.number, hand.links) == (0, {(0, 0): "sure"})
        assert page.text_content("#mistakes") == "about 1.0 mistakes expected"
        by_mouse(hand, rng)
        first = hand.links
        page.click("#accept")
        until(lambda: where(page) == 2)
        hand.begin()
        by_keyboard(hand, rng)
        page.keyboard.press("f")
        until(lambda: where(page) == 3)
        assert page.text_content("#counts") == "1 of 3 pairs accepted, 1 flagged"
        assert page.locator("#guidelines h3, #guidelines li, #guidelines p").all_inner_texts() == [
            "One",
            "item <b>",
            "words",
        ]
        assert [links_of(example.gold) for example in session.settled()] == [first]
        page.set_viewport_size({"width": 390, "height": 800})
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert links_in(tmp_path / "journal", "journal") == [first]


def test_axe_finds_nothing(tmp_path, visit, violations):
    with session_served(corpus(tmp_path, 2)) as (url, _, session):
        session.act("ann", session.version("ann", 0), 0, {"do": "edit", "cells": [[1, 2, "possible"]]})
        page = visit(url)
        Hand(page).settle()
        page.keyboard.press("ArrowDown")
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 800})
        page.keyboard.press("?")
        assert violations(page) == []


@pytest.mark.slow
def test_nothing_counts_as_saved_that_is_not(tmp_path, visit):
    """Without a server, the page says so; what is asked for meanwhile is dropped and not done later."""
    path = corpus(tmp_path, 2)
    with session_served(path) as (url, running, session):
        page = visit(url, tolerate=("ERR_", "409"))
        hand = Hand(page)
        hand.begin()
        page.route("**/change", lambda route: route.abort())
        page.route("**/pair?*", lambda route: route.abort())
        hand.cell(0, 0).focus()
        page.evaluate(PRESSES, ["ArrowDown", "1", "ArrowRight", "2", "0", "1"])
        until(lambda: page.is_visible("#wrong"))
        assert page.text_content("#saved") == "Not saved" and "does not answer" in page.text_content("#wrong")
        assert hand.shown() == hand.links == {(0, 0): "sure"}
        page.unroute("**/change")
        page.unroute("**/pair?*")
        until(lambda: not page.locator(".away").count())
        hand.check()
        assert session.work("ann", 0).sure == {(0, 0)} and not session.journal.state.people
        assert "repeat what is missing" in page.text_content("#wrong")
        session.act("ann", session.version("ann", 0), 0, {"do": "edit", "cells": [[1, 2, "sure"]]})  # another tab
        hand.cell(1, 1).click()
        until(lambda: "out of date" in page.text_content("#wrong"))
        hand.links[1, 2] = "sure"
        hand.check()


@pytest.mark.slow
def test_forty_pairs_and_a_server_that_is_killed(tmp_path, visit, command, violations):
    path = corpus(tmp_path)
    content, rng = path.read_bytes(), random.Random(7)
    made = command(str(path), "--model", "core", "--annotator", "ann", "ben")
    page = visit(made.start(), tolerate=("ERR_", "beforeunload"))
    hand, done = Hand(page), {}
    for count in range(40):
        hand.begin()
        assert hand.number not in done
        (by_mouse if count < 20 else by_keyboard)(hand, rng)
        if count % 10 == 5:  # twice by mouse, twice by keyboard: an edit is under way when the server dies
            before = dict(hand.links)
            if count < 20:
                hand.cell(0, 0).click(no_wait_after=True)
            else:
                page.keyboard.press("Space")
            made.end()
            for number, links in done.items():  # what was accepted is on the disk
                assert links_in(f"{path}.journal")[sorted(done).index(number)] == links
            made.start()
            until(lambda: not page.is_visible(".away"), 60)
            page.reload()
            hand.settle()
            found = hand.shown()
            other = [cell for cell in found.keys() | before.keys() if found.get(cell) != before.get(cell)]
            assert len(other) <= 1, "all that was saved, with the edit under way or without"
            assert count >= 20 or other in ([], [(0, 0)])
            hand.begin()
            if page.evaluate("document.activeElement.tagName") != "TD" and count >= 20:
                page.keyboard.press("ArrowDown")
        done[hand.number] = dict(hand.links)
        if count < 20:
            page.click("#accept")
        else:
            page.keyboard.press("a")
        until(lambda last=count == 39, seen=hand.number: last or where(page) != seen + 1)
        hand.settle()
    assert page.text_content("#counts") == "40 of 40 pairs accepted" and violations(page) == []
    wanted = [done[number] for number in sorted(done)]
    assert links_in(f"{path}.journal") == wanted and len(wanted) == 40
    made.end()
    for name in ("gold.jsonl", "gold.talp"):
        out = started("annotate", str(path), "--export", str(tmp_path / name)).communicate(timeout=60)
        assert out[1].endswith(b"40 accepted pairs\n"), out
        assert links_in(tmp_path / name) == wanted
    assert path.read_bytes() == content
    adjudicated(page, made, path, done, violations)


def adjudicated(page, made: Command, path, done: dict[int, Links], violations) -> None:
    """Ben differs from Ann on three pairs; a third person decides."""
    url = made.start()
    page.goto(f"{url}#by=ben&pair=1")
    page.reload()
    hand, bens = Hand(page), {}
    for number in range(5):
        page.goto(f"{url}#by=ben&pair={number + 1}")
        page.reload()
        hand.begin()
        for cell in done[number].keys() | hand.links.keys():
            wanted = done[number].get(cell, "none")
            if hand.links.get(cell, "none") != wanted:
                hand.cell(*cell).focus()
                page.keyboard.press({"sure": "1", "possible": "2", "none": "0"}[wanted])
                hand.note([cell], wanted, False)
        if number < 3:  # here Ben is of another mind
            cell = next(iter(sorted(hand.links)))
            hand.cell(*cell).focus()
            page.keyboard.press("0")
            hand.note([cell], "none", False)
        hand.check()
        bens[number] = dict(hand.links)
        page.keyboard.press("a")
        hand.settle()
    until(lambda: page.is_visible("#agreed") and "5" in page.locator("#agreement tr").inner_text().split(), 30)
    row = page.locator("#agreement tr").inner_text().split()
    assert row[:3] == ["ann,", "ben", "5"] and 80 < float(row[3]) < 100 and 0.7 < float(row[4]) < 1
    made.end()
    out = started("annotate", str(path), "--export", "-").communicate(timeout=60)
    assert b"'ann' and 'ben' disagree" in out[1] and b"--compare" in out[1]

    page.goto(made.start("--compare", "--annotator", "eva"))
    page.reload()
    decided = {}
    for count in range(3):
        hand.begin()
        assert page.text_content("#title") == "Adjudicate" and hand.number < 3
        mine, theirs = done[hand.number], bens[hand.number]
        assert hand.links == {cell: kind for cell, kind in mine.items() if theirs.get(cell)}, "what both agree on"
        assert page.locator("#differences li").count() == 1
        assert violations(page) == []
        kind = ("sure", "possible", "none")[count]
        page.locator("#differences button", has_text=kind).click()
        hand.note([next(iter(mine.keys() - theirs.keys()))], kind, False)
        hand.check()
        decided[hand.number] = dict(hand.links)
        page.keyboard.press("a")
        until(lambda n=count: page.text_content("#counts").startswith(f"{n + 1} of 3"))
        hand.settle()
    made.end()
    wanted = [{**done, **decided}[number] for number in sorted(done)]
    assert links_in(f"{path}.journal") == wanted
