"""docs/results.md: its commands are valid, and tables are inserted after their commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from composed import CONF, options

from jacana_torch.cli import hydra

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import results

PAGE = """before
```sh
jacana-torch compare data=a 'aligners=[x, y]'
```

<!-- results:begin -->
old
<!-- results:end -->
between
```sh
jacana-torch align
```
```sh
jacana-torch compare data=c
```
```sh
python scripts/errors.py one \\
    two
```
<!-- results:begin -->
<!-- results:end -->
after
"""


def test_tables_are_inserted_after_their_commands_and_other_text_stays():
    assert results.commands(PAGE) == [
        ["jacana-torch", "compare", "data=a", "aligners=[x, y]"],
        ["python", "scripts/errors.py", "one", "two"],
    ]
    one = results.filled(PAGE, 1, "| new |\n")
    assert one == PAGE.replace("old", "\n| new |\n")
    both = results.filled(one, 2, "| \\1 |")
    assert both == one.replace("begin -->\n<!--", "begin -->\n\n| \\1 |\n\n<!--")
    assert results.filled(both, 1, "| new |") == both


def test_an_interrupted_measurement_is_resumed(tmp_path):
    seen = []

    def command(arguments: list[str]) -> int:
        seen.append(arguments)
        folder = tmp_path / "kept"
        folder.mkdir(exist_ok=True)
        (folder / "table.md").write_text("a table")
        return 0

    for _ in range(2):
        assert results.measured(["compare", "data=a"], tmp_path / "kept", command) == "a table"
    assert [any(item.startswith("resume=") for item in arguments) for arguments in seen] == [False, True]
    assert all(arguments[:2] == ["compare", "data=a"] and "format=markdown" in arguments for arguments in seen)
    with pytest.raises(SystemExit):
        results.measured([], tmp_path, lambda arguments: 2)


def test_a_script_runs_once(tmp_path, capfd):
    command = ["python", "-c", "import sys; print('a table'); sys.exit(len(sys.argv) - 1)"]
    assert results.printed(command, tmp_path / "kept") == "a table\n"
    (tmp_path / "kept" / "table.md").write_text("kept")
    assert results.printed(command, tmp_path / "kept") == "kept"
    with pytest.raises(SystemExit, match="1"):
        results.printed([*command, "wrong"], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_every_command_has_its_own_folder():
    assert results.kept(["a", "b"]) == results.kept(["a", "b"]) != results.kept(["a b"])


def test_the_page_compares_all_systems_on_each_corpus():
    found = [
        dict(item.split("=", 1) for item in command[2:])
        for command in results.commands(results.PAGE.read_text(encoding="utf-8"))
        if command[1] == "compare"
    ]
    assert {command["systems"] for command in found} <= set(options("systems"))
    of_all = [command["data"] for command in found if command["systems"] == "papers"]
    assert of_all == ["msr", "edinburgh"]


def test_lists_of_systems_name_aligners_once():
    systems = {name: listed(name) for name in options("systems")}
    for labels in systems.values():
        assert len({label for _, _, label in labels}) == len(labels)
    assert {name for name, _, _ in systems["papers"]} <= set(options("aligner"))
    assert all(set(map(str, items)) <= set(map(str, systems["papers"])) for items in systems.values())


def listed(name: str) -> list[tuple[str, list[str], str]]:
    """The systems of a list, as `compare` reads them."""
    items = yaml.safe_load((CONF / "systems" / f"{name}.yaml").read_text())["aligners"]
    return [hydra._system(item) for item in items]
