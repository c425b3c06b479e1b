"""`jacana-torch compare`: its output, files, exit codes and error messages."""

from __future__ import annotations

import json
import logging
import re
import shlex
from pathlib import Path

import pytest
import torch
import toy_systems
from toy_systems import EXAMPLES, Interrupted

from jacana_torch.cli import hydra, main
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.model import persist


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    toy_systems.write_corpora(folder)
    toy_systems.write_configs(folder / "conf")
    return folder


@pytest.fixture
def command(files, tmp_path, capsys, monkeypatch):
    """Run in this process: (exit code, stdout, stderr). Restores logging and threads."""
    root, threads = logging.getLogger(), torch.get_num_threads()
    handlers, level = root.handlers[:], root.level
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JACANA_TRUST", toy_systems.__name__)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        return code, *capsys.readouterr()

    yield call
    root.handlers[:], root.level = handlers, level
    torch.set_num_threads(threads)


@pytest.fixture
def compare(files, command):
    given = [f"--config-dir={files / 'conf'}", f"data.root={files}", "data.train=[words.jsonl]", "annotate=none"]
    return lambda aligners, *overrides: command(
        "compare", *given, "rounds=100", f"aligners=[{aligners}]", *overrides
    )


def test_systems_have_own_settings_and_names_or_are_saved_models(compare, model):
    aligners = f'crf,{{bare: "crf features=[string] trainer.max_iterations=3"}},{model},core'
    settings = ("features=[string,position]", "trainer.max_iterations=2", "hydra.run.dir=here")
    code, out, err = compare(aligners, *settings, "format=json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [row["system"] for row in rows] == ["crf", "bare", model, "core"] and not rows[0]["converged"]
    assert [row["trained_on"] for row in rows] == ["the same pairs"] * 2 + ["saved model"] * 2
    for row, name in zip(rows[2:], (model, "core"), strict=True):
        found = persist.load(name).align([e.pair for e in EXAMPLES])
        assert row["score"] == score([e.gold for e in EXAMPLES], found).to_dict()

    kept = [json.loads(path.read_text())["of"]["system"] for path in Path("here/rows").iterdir()]
    directions = [system["model"]["aligner"]["forward"] for system in kept if "model" in system]
    assert sorted((sorted(d["families"]), d["max_iterations"]) for d in directions) == [
        (["position", "string"], 2), (["string"], 3),
    ]  # fmt: skip
    held = json.loads(Path("here/compare.json").read_text())
    assert held == json.loads(out) and held["data"] == ["words.jsonl"] and held["machine"]["threads"] == 1
    assert "bare (the same pairs)" in Path("here/compare.log").read_text()


def test_an_interruption_prints_the_command_that_continues(compare, command, files):
    Interrupted.still[:] = ["once"]
    code, out, err = compare("equal,interrupted", "output=sub/t.md", "hydra.run.dir=one")
    assert (code, out) == (130, "") and not Path("sub").exists()
    program, *again = shlex.split(err.split("to resume: ")[1].splitlines()[0])
    assert program == "jacana-torch" and again[-1].startswith("resume=") and again[-1].endswith("/one")
    code, out, err = command(*again, f"--config-dir={files / 'conf'}")
    assert (code, out) == (0, "") and "equal: measured before" in err
    assert len(list(Path("one/rows").iterdir())) == 2
    assert [path.name for path in Path("sub").iterdir()] == ["t.md"]
    assert re.match(r"\| system .*\n\|.*\n\| equal \|.*\n\| interrupted \|", Path("sub/t.md").read_text())


def test_without_any_system_that_runs_there_is_no_table(compare):
    code, out, err = compare("broken")
    assert (code, out) == (2, "") and "broken cannot run: ZeroDivisionError: by nought" in err


@pytest.mark.parametrize(
    ("aligners", "overrides", "says"),
    [
        ("", [], "aligners"),
        ("equal,nope", [], "nope"),
        ("equal", ["aligner=crf"], "aligners=[crf"),
        ('"equal +aligner.colour=red"', [], "colour"),
        ("equal", ["data=nope"], "msr"),
        ("equal", ["-m"], "sweep"),
        ('"core trainer.l2=1"', [], "takes no settings"),
    ],
)  # fmt: skip
def test_mistakes_are_short_and_exit_with_2(compare, aligners, overrides, says):
    code, out, err = compare(aligners, *overrides)
    assert (code, out) == (2, ""), err
    message = err[err.index("jacana-torch: error:") :]
    assert says in message and "Traceback" not in err and len(message.splitlines()) < 15


@pytest.mark.parametrize(
    "item", ["equal colour", "'equal", {"a": "b", "c": "d"}, {"a": 1}, 3, None, ["equal"], "", {"a": ""}]
)
def test_an_item_that_names_no_system_is_an_error(item):
    with pytest.raises(ConfigError, match="aligners: "):
        hydra._system(item)
    assert hydra._system("x a=b 'c=[d, e]'") == ("x", ["a=b", "c=[d, e]"], "x a=b 'c=[d, e]'")
    assert hydra._system({"y": "x a=b"}) == ("x", ["a=b"], "y")
