"""docs/results.md: its commands are ones that can be run, and its tables are put where they belong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from composed import CONF, options

from jacana_torch import run

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
jacana-torch compare data=b
```
<!-- results:begin -->
<!-- results:end -->
after
"""


def test_tables_go_behind_their_commands_and_the_rest_stays():
    assert results.commands(PAGE) == [["compare", "data=a", "aligners=[x, y]"], ["compare", "data=b"]]
    one = results.filled(PAGE, 1, "| new |\n")
    assert one == PAGE.replace("old", "\n| new |\n")
    both = results.filled(one, 2, "| \\1 |")
    assert both == one.replace("begin -->\n<!--", "begin -->\n\n| \\1 |\n\n<!--")
    assert results.filled(both, 1, "| new |") == both


def test_what_was_measured_is_gone_on_with(tmp_path):
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


def test_the_page_has_a_table_for_each_corpus():
    found = results.commands(results.PAGE.read_text(encoding="utf-8"))
    assert [arguments[1] for arguments in found] == ["data=msr", "data=edinburgh"]
    assert all("systems=papers" in arguments for arguments in found)


def test_every_system_has_a_row():
    listed = yaml.safe_load((CONF / "systems" / "papers.yaml").read_text())["aligners"]
    systems = [run._system(item) for item in listed]
    labels = [label for _, _, label in systems]
    assert len(set(labels)) == len(labels)
    assert set(options("aligner")) <= {name for name, _, _ in systems}
