"""Each command is a module of jacana_torch.cli that owns its options, examples and function."""

from __future__ import annotations

import argparse
import importlib
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
    assert done.stderr.split() == [f"jacana_torch.cli.{next(word for word in arguments if word[0] != '-')}"]


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
    assert corpora.formats(lambda one: one.holds_confidence) == ("jsonl", "naacl")


@pytest.mark.parametrize("name", corpora.formats(corpora.can_align))
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
