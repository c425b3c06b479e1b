"""jt.diff: sentences, edits and reasons; text, page and JSON; the command, also as git runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jacana_torch as jt
from jacana_torch import resources
from jacana_torch.cli import main
from jacana_torch.differences import splitting
from jacana_torch.differences.edits import edits
from jacana_torch.differences.reasons import REASONS, reason

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

OLD = """The committee approved the new budget on Monday. It gives the harbour millions. Nobody objected.

The old lighthouse will be closed in winter, and visitors may not enter. Boats leave every hour."""
NEW = """The committee approved the new budget on Tuesday. Boats leave every hour. It gives the harbour millions.

The old lighthouse will be closed in winter. Visitors may not enter. Tickets cost five dollars."""


@pytest.fixture(scope="module")
def core():
    return jt.load("core")


@pytest.fixture(scope="module")
def found(core):
    return jt.diff(OLD, NEW, core)


def test_sentences_end_where_readers_see_it():
    text = 'Dr. No paid $3.50. "Why?" he asked... then left.\n\nA title\n- one\n- two (see p. 3). OK!'
    said = [text[s.offsets[0][0] : s.offsets[-1][1]] for s in splitting.sentences(text)]
    assert said == [
        "Dr. No paid $3.50.",
        '"Why?"',
        "he asked... then left.",
        "A title",
        "- one",
        "- two (see p. 3).",
        "OK!",
    ]


def test_markdown_is_split_where_its_lines_end():
    text = "## Use\nRun\nnow:\n```sh\nls a\ncd b\n```\nIt ends.\n| a | b |\n| c | d |\nAn ```end``` is\r\n\r\nnear"
    said = [text[s.offsets[0][0] : s.offsets[-1][1]] for s in splitting.sentences(text)]
    code, rows = ["```sh", "ls a", "cd b", "```"], ["| a | b |", "| c | d |"]
    assert said == ["## Use", "Run\nnow:", *code, "It ends.", *rows, "An ```end``` is", "near"]


@given(st.text(alphabet="aB .?!\"'\n-(“”1`|#", max_size=40))
def test_sentences_hold_every_token_once(text):
    places = [place for s in splitting.sentences(text) for place in s.offsets]
    assert places == splitting.spans(text)


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("Cat", "cat", "case"), ("two", "2", "notation"), ("two", "three", "number"), ("walks", "walked", "form"),
        ("not", "always", "negation"), ("harbour", "harbor", "spelling"), ("he", "John", "pronoun"),
        ("in", "on", "function"),
        (",", ";", "punctuation"), ("Bob", "Robert", "abbreviation"), ("U.N.", "United Nations", "abbreviation"),
        ("gave up", "stopped trying", "phrase"), ("per cent", "percent", "notation"),
    ],
)  # fmt: skip
def test_reasons(one, other, why):
    assert reason(one.split(), other.split()) == why and why in REASONS


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [("bought", "purchased", "synonym"), ("hot", "cold", "antonym"), ("dog", "animal", "general")],
)
def test_reasons_of_wordnet(one, other, why):
    if not resources.available("wordnet"):
        pytest.skip("needs wordnet")
    assert reason([one], [other]) == why


WORDS = st.lists(st.sampled_from("the a cat dog sat ran not 3 .".split()), max_size=7)


@given(WORDS, WORDS, st.data())
def test_edits_hold_every_token_once_and_make_the_target(source, target, data):
    cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = data.draw(st.lists(st.sampled_from(cells), unique=True)) if cells else []
    own = edits(source, target, links, dict.fromkeys(links, 0.5))
    for side, tokens in (("source", source), ("target", target)):
        spans = [getattr(edit, side) for edit in own]
        assert sorted(k for first, last in spans for k in range(first, last)) == list(range(len(tokens)))
    written = [edit.after for edit in own if edit.after]
    assert " ".join(written).split() == target
    for edit in own:
        assert (edit.kind == "insert") == (not edit.before) and (edit.kind == "delete") == (not edit.after)
        assert edit.kind != "keep" or edit.before == edit.after


@given(WORDS)
def test_the_same_words_have_no_edits(words):
    assert all(edit.kind == "keep" for edit in edits(words, words, [(k, k) for k in range(len(words))]))


def test_a_text_and_itself_do_not_differ(core):
    assert not jt.diff(OLD, OLD, core)
    assert not jt.diff("", "", core) and not jt.diff("\n", " ", core)
    assert [edit.kind for edit in jt.diff("", "One.", core).edits] == ["insert"]


def test_repeated_sentences_cost_no_more_than_others(core):
    found = jt.diff("Yes. " * 600, "Yes. " * 590 + "No way. " + "Yes. " * 8, core)
    kinds = [piece.paired.kind for piece in found.pieces]
    assert kinds.count("same") == 598 and len(found.changes) <= 3


def test_texts_beyond_the_limit_are_errors(core, monkeypatch):
    from jacana_torch.differences import document
    from jacana_torch.errors import ConfigError

    monkeypatch.setattr(document, "_MOST_CELLS", 3)
    with pytest.raises(ConfigError, match="2 and 2 sentences are too long"):
        jt.diff("Yes. No.", "No. Yes.", core)


def test_sentences_are_paired(core):
    said = [(kind, len(a), len(b)) for kind, a, b in jt.pair_sentences(OLD, NEW, core)]
    assert said == [
        ("changed", 1, 1), ("moved", 1, 1), ("same", 1, 1), ("deleted", 1, 0), ("split", 1, 2), ("inserted", 0, 1)
    ]  # fmt: skip
    back = [(kind, len(a), len(b)) for kind, a, b in jt.pair_sentences(NEW, OLD, core)]
    assert ("merged", 2, 1) in back


def test_edits_have_kinds_places_and_probabilities(found):
    changed = {(edit.kind, edit.before, edit.after) for _, edit in found.changes}
    assert ("substitute", "Monday", "Tuesday") in changed
    assert ("move", "Boats leave every hour .", "Boats leave every hour .") in changed
    assert ("delete", "Nobody objected .", "") in changed
    assert ("insert", "", "Tickets cost five dollars .") in changed
    for piece, edit in found.changes:
        source, target = found.places(piece, edit)
        assert source is None or OLD[slice(*source)].split()[0].startswith(edit.before.split()[0])
        assert target is None or NEW[slice(*target)].split()[0].startswith(edit.after.split()[0])
        assert edit.probability is not None and 0 <= edit.probability <= 1


def test_case_and_space_count_on_request(core):
    a, b = "The cat  sat down.", "the cat sat down."
    assert not jt.diff(a, b, core)
    assert [edit.reason for _, edit in jt.diff(a, b, core, case=True).changes] == ["case"]
    assert [(edit.reason, edit.before, edit.after) for _, edit in jt.diff(a, b, core, space=True).changes] == [
        ("space", "  ", " ")
    ]


def test_text_and_unified(found):
    text = found.to_text()
    assert (
        "[-Monday-]{+Tuesday+}" in text
        and "{>Boats leave every hour.>}" in text
        and "[-Nobody objected.-]" in text
    )
    assert "\x1b[31mMonday\x1b[m\x1b[32mTuesday\x1b[m" in found.to_text(color=True)
    lines = found.to_unified().splitlines()
    assert lines[0] == "@@ -1 +1 @@" and "-Nobody objected." in lines and ">Boats leave every hour." in lines
    assert jt.diff(OLD, OLD, "core").to_unified() == "" and jt.diff(OLD, OLD, "core").to_text() == OLD


def test_what_moved_shows_its_changes_and_what_is_gone_its_line(core):
    kept = "The mayor opened the exhibition on Sunday.\nTwo trains collided outside the tunnel.\n"
    found = jt.diff(
        f"Old title\n\nThe bakery sells bread in May.\n{kept}", f"{kept}The bakery sold bread in May.\n", core
    )
    assert found.to_text() == f"[-Old title-]\n\n{kept}{{>The bakery>}} [-sells-]{{+sold+}} {{>bread in May.>}}\n"
    assert "A 2 3|||R:MORPH|||sold|||" in found.to_m2() and found.to_m2().count("\nA ") == 4
    back = jt.diff(f"{kept}- an item\n\nNobody\n", f"{kept}", core)
    assert back.to_text() == f"{kept[:-1]}\n[-- an item-]\n\n[-Nobody-]\n"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("Cars cannot enter.", "Cars can't enter.", "Cars [-cannot-]{+can't+} enter."),
        ("He will not go.", "He won't go.", "He [-will not-]{+won't+} go."),
        ("I have seen it.", "I've seen it.", "I[- have-]{+'ve+} seen it."),
    ],
)
def test_contractions_are_read_as_they_are_written(core, old, new, text):
    assert jt.diff(old, new, core).to_text() == text


def test_context_leaves_out_lines_far_from_changes(core):
    lines = ["Rain fell.", "Dogs bark.", "Cats sleep.", "Two men sing.", "Birds fly.", "Fish swim."]
    old = "\n\n".join(lines) + "\n"
    found = jt.diff(old, old.replace("Two", "Three"), core)
    changed = "[-Two-]{+Three+} men sing."
    assert found.to_text(context=0) == f"@@\n{changed}\n"
    assert found.to_text(context=2) == f"@@\nCats sleep.\n\n{changed}\n\nBirds fly.\n"
    assert found.to_text(context=99) == found.to_text()
    assert "\x1b[36m@@\x1b[m" in found.to_text(True, 0) and jt.diff(old, old, core).to_text(context=1) == ""


def test_the_page_escapes_and_needs_nothing_else(core):
    page = jt.diff("A <b>bold</b> & old claim.", 'A <i>"bold"</i> & new claim.', core).to_html("<x>")
    assert "<b>bold" not in page and "<i>" not in page and "&lt;" in page and "<title>&lt;x&gt;</title>" in page
    assert "<script" not in page and "src=" not in page and "default-src 'none'" in page


def test_json_is_plain(found):
    item = json.loads(json.dumps(found.to_dict()))
    assert item["changes"]["move"] == 1
    assert [piece["kind"] for piece in item["pieces"]] == [
        "changed",
        "moved",
        "same",
        "deleted",
        "split",
        "inserted",
    ]


def test_the_command(tmp_path, capsys):
    (tmp_path / "a").write_text(OLD)
    (tmp_path / "b").write_text(NEW)
    files = [str(tmp_path / "a"), str(tmp_path / "b"), "--model", "core"]
    assert main(["diff", *files]) == 0
    assert "[-Monday-]{+Tuesday+}" in capsys.readouterr().out
    assert main(["diff", *files, "--exit-code", "--html", "--output", str(tmp_path / "page.html")]) == 1
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>") and not capsys.readouterr().out
    assert main(["diff", files[0], files[0], "--model", "core", "--exit-code", "--format", "unified"]) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "c").write_bytes(b"\xff")
    assert main(["diff", files[0], str(tmp_path / "c")]) == 2
    assert "c:1: byte 0xff is not UTF-8" in capsys.readouterr().err
    strange = tmp_path / os.fsdecode(b"d\xe9")
    strange.write_text(NEW)
    assert main(["diff", files[0], str(strange), "--model", "core", "--html"]) == 0
    assert "d\ufffd</title>" in capsys.readouterr().out
    git = [str(strange), str(strange), "0", "0", files[0], "0", "0", "--model", "core"]
    assert main(["diff", *git]) == 0 and "d\ufffd\n" in capsys.readouterr().out
    assert main(["diff", files[0]]) == 2
    assert "takes two files" in capsys.readouterr().err
    assert main(["diff", *files, "--context", "1", "--json"]) == 2
    assert "--context counts lines of --format text, not of json" in capsys.readouterr().err
    assert main(["diff", *files, "--context", "0"]) == 0 and "\n@@\n" in capsys.readouterr().out


def test_git_runs_it(tmp_path):
    def git(*arguments):
        named = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "PYTHONPATH": str(Path(__file__).parents[2])}
        return subprocess.run(
            ["git", *named, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )

    git("init", "-q")
    (tmp_path / "page.md").write_text(OLD)
    git("add", "page.md")
    git("commit", "-qm", "one")
    (tmp_path / "page.md").write_text(NEW)
    command = f"{sys.executable} -m jacana_torch diff --model core"
    for done in (
        git("difftool", "-y", "-x", command, "HEAD"),
        git("-c", f"diff.external={command}", "diff", "--ext-diff"),
    ):
        assert "[-Monday-]{+Tuesday+}" in done.stdout
    assert done.stdout.startswith("page.md\n")


def test_planted_edits_are_found(capsys):
    import diff_planted

    if not all(map(resources.available, ("wordnet", "tagger", "glove-840b"))):
        pytest.skip("the model standard needs wordnet, tagger and glove-840b")
    diff_planted.measure("standard", 1, False, 6)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("| all |") and float(last.split("|")[-2]) >= 90
