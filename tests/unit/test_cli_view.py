"""`jacana-torch view`: every kind of file becomes a page, and mistakes one line."""

from __future__ import annotations

import json
import re

import pytest

import jacana_torch as jt
from jacana_torch.cli import main

GOLD = """{"id": "one", "source": ["a", "cat"], "target": ["the", "cat"], "sure": [[0, 0], [1, 1]]}
{"id": "two", "source": ["it", "rains"], "target": ["rain"], "sure": [[1, 0]]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text(GOLD)
    (tmp_path / "found.txt").write_text("1-1\n0-0\n")
    (tmp_path / "pairs.txt").write_text("The cats sleep.\tA cat sleeps.\n")
    return tmp_path


def held(text: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_gold_against_links_of_another_format(folder, capsys):
    assert main(["view", "gold.jsonl", "found.txt", "-o", "page.html", "--title", "A & B"]) == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    data = held(text)
    assert data["files"] == ["gold.jsonl", "found.txt"] and "<h1>A &amp; B</h1>" in text
    assert [pair[3] for pair in data["pairs"]] == [[0, 0, 1, -1, 1, 1, 5, -1], [0, 0, 4, -1, 1, 0, 1, -1]]
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("jacana-torch: 2 pairs")


def test_one_file_to_stdout(folder, capsys):
    assert main(["view", "gold.jsonl"]) == 0
    data = held(capsys.readouterr().out)
    assert data["files"] == ["gold.jsonl"] and data["pairs"][0] == [
        "one",
        "a cat",
        "the cat",
        [0, 0, 4, -1, 1, 1, 4, -1],
    ]


def test_a_model_aligns_text_and_gives_reasons(folder, capsys):
    assert main(["view", "pairs.txt", "--model", "core"]) == 0
    data = held(capsys.readouterr().out)
    ((_, source, _, links, why),) = data["pairs"]
    assert data["files"] == ["core"] and source == "The cats sleep ."
    assert len(why) == len(links) // 4 > 0
    for reasons in why:
        sentence, verdict, *groups = reasons
        assert data["sentences"][sentence].endswith(".") and data["verdicts"][verdict]
        assert all(0 <= name < len(data["groups"]) for name in groups[::2]) and 2 <= len(groups) <= 10


def test_a_model_is_compared_with_gold_and_explains_what_it_missed(folder, capsys):
    assert main(["view", "gold.jsonl", "--model", "core"]) == 0
    data = held(capsys.readouterr().out)
    assert data["files"] == ["gold.jsonl", "core"]
    flat, why = data["pairs"][0][3:]
    assert all(0 <= posterior <= 1000 for posterior in flat[3::4]) and all(why)


def test_a_file_and_models_are_systems_and_models_give_reasons(folder, capsys):
    assert main(["view", "gold.jsonl", "found.txt", "--model", "core", "--model", "bag_of_words"]) == 0
    data = held(capsys.readouterr().out)
    assert data["files"] == ["gold.jsonl", "found.txt", "core", "bag_of_words"] and data["gold"]
    assert data["explained"] == ["core", "bag_of_words"]
    for (_, source, target, flat, by_core, by_bag), found in zip(data["pairs"], [{(1, 1)}, {(0, 0)}], strict=True):
        links = {tuple(flat[k : k + 2]): flat[k + 2 : k + 6] for k in range(0, len(flat), 6)}
        assert {link for link, (says, *_) in links.items() if says & 4} == found
        for number, name in ((2, "core"), (3, "bag_of_words")):
            (alignment,) = jt.load(name).align([(source.split(), target.split())])
            assert {link for link, (says, *_) in links.items() if says & 4**number} == alignment.sure
        assert all(by_core) and not any(by_bag) and len(by_core) == len(by_bag) == len(links)


def test_two_models_without_gold(folder, capsys):
    assert main(["view", "pairs.txt", "--model", "core", "--model", "core"]) == 0
    data = held(capsys.readouterr().out)
    assert data["files"] == ["core (1)", "core (2)"] and not data["gold"]
    ((_, source, _, flat, *whys),) = data["pairs"]
    assert source == "The cats sleep ." and set(flat[2::5]) == {4 + 16} and flat[3::5] == flat[4::5]
    assert whys[0] == whys[1]


def test_models_that_give_no_reasons_are_shown_without(folder, capsys):
    assert main(["view", "pairs.txt", "--model", "ted"]) in (0, 2)
    out, err = capsys.readouterr()
    if "error" in err:
        pytest.skip(err)
    assert set(held(out)["pairs"][0][4]) <= {0}


def test_a_pair_without_words(folder, capsys):
    (folder / "empty.txt").write_text("\ta cat\nthe cat\ta cat\n")
    assert main(["view", "empty.txt", "--model", "core", "--from", "text"]) == 0
    assert [len(pair[3]) > 0 for pair in held(capsys.readouterr().out)["pairs"]] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (
            [],
            "a cat\tthe cat\n",
            "pair 1 has no links to show: name a second file that has them, or align with --model",
        ),
        (["--from", "jsonl"], "", "has no pairs to show"),
        (["gold.jsonl"], "a cat\tthe cat\n", "gold.jsonl: has 2 pairs, and gold has 1"),
        (["--model", "nothing-like-it"], "a cat\tthe cat\n", "nothing-like-it"),
        (
            ["found.txt", "--from", "jsonl"],
            GOLD + '{"source": ["a"], "target": ["b"]}\n',
            "pair 3 has no links, but others have",
        ),
    ],
)
def test_mistakes(folder, capsys, arguments, text, message):
    (folder / "bad").write_text(text)
    assert main(["view", "bad", *arguments, "-o", "page.html"]) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err and not (folder / "page.html").exists()


def test_a_page_of_a_corpus_is_small(folder, capsys, data_root):
    corpus = str(data_root / "msr" / "dev.jsonl")
    assert main(["view", corpus, str(data_root / "msr" / "dev.C.jsonl"), "-o", "page.html"]) == 0
    assert len(held((folder / "page.html").read_text(encoding="utf-8"))["pairs"]) == 800
    assert (folder / "page.html").stat().st_size < 1_000_000
