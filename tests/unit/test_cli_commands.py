"""Each command is a module of jacana_torch.cli that owns its options, examples and function."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import pkgutil
import subprocess
import sys

import pytest

from jacana_torch import cli, corpora, symmetrize
from jacana_torch.cli import COMMANDS, main


def test_the_list_has_every_command():
    modules = {
        m.name: importlib.import_module(f"jacana_torch.cli.{m.name}") for m in pkgutil.iter_modules(cli.__path__)
    }
    assert {name for name, module in modules.items() if "ABOUT" in vars(module)} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_complete(name):
    command, parser = cli.command(name), argparse.ArgumentParser()
    assert command.ABOUT.endswith(".") and f"jacana-torch {name}" in command.EXAMPLES
    assert command.add_options(parser) is None and callable(command.run)
    assert all(action.help for action in parser._actions)


@pytest.mark.parametrize("arguments", [["models", "--help"], ["-v", "models", "--help"], ["train", "--help"]])
def test_a_call_imports_no_other_command(arguments):
    code = f"import sys\nfrom jacana_torch.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass\n"
    code += (
        "print(*sorted(m for m in sys.modules if m.startswith('jacana_torch.cli.')), sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    name = next(word for word in arguments if word[0] != "-")
    assert done.stderr.split() == sorted([f"jacana_torch.cli.{name}", "jacana_torch.cli.parser"])


def test_help_lists_all_commands_with_or_without_one(capsys):
    for arguments in ([], ["--help"], ["--help", "align"], ["--verb", "--help"]):
        try:
            main(arguments)
        except SystemExit:
            pass
        text = "".join(capsys.readouterr())
        assert all(f"\n    {name} " in text for name in COMMANDS), arguments


def test_help_lists_formats_and_symmetrizers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["align", "--help"])
    text = capsys.readouterr().out
    assert ", ".join(name.replace("_", "-") for name in symmetrize.names()) in text
    aligned, read = (", ".join(corpora.formats(fits)) for fits in (corpora.can_align, corpora.can_read))
    assert f"output format: {aligned} " in text and f"input format: {read} " in text
    assert "text" in read and "text" not in aligned and "naacl" in aligned and "naacl" not in read


def test_formats_that_hold_confidences():
    assert corpora.formats(lambda one: one.holds_confidence) == ("csv", "jsonl", "naacl", "parquet", "tsv")


@pytest.mark.parametrize("name", corpora.formats(lambda one: corpora.can_align(one) and not one.binary))
def test_align_writes_every_format_that_holds_links(cli, model, tmp_path, name):
    file = tmp_path / f"out.{name}"
    line = "red dog\tdog\n"
    code, out, err = cli("align", "--model", model, "--to", name, stdin=line)
    assert code == 0, err
    assert cli("align", "--model", model, "--output", str(file), stdin=line)[0] == 0
    assert file.read_text() == out
    holds = corpora.format_named(name).holds_confidence
    code, out, err = cli("align", "--model", model, "--to", name, "--confidence", stdin=line)
    assert (code, "0.9" in out) == ((0, True) if holds else (2, False)), err


def test_align_passes_other_keys_on(cli, model, caplog):
    lines = "".join(
        json.dumps({"source": source, "target": "red dog", "label": label, "meta": {"n": [label]}}) + "\n"
        for label, source in enumerate(["red dog", "dog's", "old dog"])
    )
    code, out, err = cli("align", "-", "--from", "jsonl", "--model", model, "--to", "jsonl", stdin=lines)
    assert code == 0 and not caplog.text
    assert [(item["label"], item["meta"]) for item in map(json.loads, out.splitlines())] == [
        (label, {"n": [label]}) for label in range(3)
    ]
    code, out, err = cli("align", "-", "--from", "jsonl", "--model", model, stdin=lines)
    assert code == 0 and out.splitlines()[0] == "0-0 1-1"
    assert caplog.text.count("left out 'label', 'meta' of 3 pairs: pharaoh cannot hold") == 1


def test_align_tokenises_an_array_as_lines(cli, model, tmp_path):
    record = {"source": "It's a dog.", "target": ["a", "dog"]}
    (tmp_path / "x.json").write_text(json.dumps([record]))
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    array, lines = (
        cli("align", str(tmp_path / f"x.{end}"), "--model", model, "--to", "jsonl") for end in ("json", "jsonl")
    )
    assert array[:2] == lines[:2] and json.loads(lines[1])["source"] == ["It", "'s", "a", "dog", "."]


@pytest.mark.parametrize("to", ["msr", "multimwa", "jacana", "naacl"])
def test_skip_bad_covers_what_cannot_be_written(cli, model, to):
    """Line n of the output is that of line n of the input."""
    lines = '{"source": ["red", "old dog"], "target": ["red"]}\n{"source": ["dog"], "target": ["dog"]}\n'
    command = ("align", "-", "--from", "jsonl", "--model", model, "--to", to)
    if to == "naacl":  # which holds every alignment
        assert cli(*command, stdin=lines)[1] == "1 1 1 S\n2 1 1 S\n"
        return
    code, out, err = cli(*command, stdin=lines)
    assert code == 2 and "pair 1: this format cannot hold the token 'old dog'" in err
    code, out, err = cli(*command, "--skip-bad", stdin=lines)
    assert code == 0 and "skipped 1 bad item" in err and "Each got an empty alignment" in err
    first, second = corpora.read(io.StringIO(out), to)
    assert not first.gold.sure and second.gold.sure == {(0, 0)}


def test_headers_on_the_command_line(cli, model, tmp_path, caplog):
    lines = "source\ttarget\nred dog\tdog\n"
    code, out, err = cli("align", "--model", model, stdin=lines)
    assert (code, out) == (0, "1-0\n") and "<stdin>:1: the line names the columns" in caplog.text
    assert cli("align", "--model", model, "--no-header", stdin=lines)[1].count("\n") == 2
    assert cli("align", "--model", model, "--header", stdin="these\twords\n" + lines[14:])[1] == "1-0\n"
    assert cli("convert", "-", "-", "--to", "jsonl", stdin=lines)[1].count("\n") == 1
    assert cli("convert", "-", "-", "--to", "jsonl", "--no-header", stdin=lines)[1].count("\n") == 2
    code, out, err = cli("convert", "-", "-", "--from", "jsonl", "--to", "talp", "--header", stdin="{}\n")
    assert code == 2 and "do not name their columns" in err
    (tmp_path / "x.txt").write_text("source\ttarget\tlinks\nred\tdog\t0-0\n")
    found = str(tmp_path / "x.txt")
    for command in (
        ["view", found],
        ["evaluate", found, found],
        ["count", found, str(tmp_path / "x.npz"), "--min-count", "1"],
    ):
        assert cli(*command)[0] == 0, command
        assert cli(*command, "--no-header")[0] == 2, command
