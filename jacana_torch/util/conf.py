"""Find what conf/ names: features, aligners, symmetrizers, annotators, each a YAML in the folder of its kind.

Folders of your own, laid out as conf/, add to it: list them in the environment variable JACANA_CONF, separated as
in PATH. A file of the package's conf/ is found before yours of the same name.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import ConfigError

VARIABLE = "JACANA_CONF"


def conf_directory() -> Path:
    """The package's conf/, which stands beside it in a checkout and inside it once installed."""
    inside, beside = Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf"
    return inside if inside.is_dir() else beside


def own_directories() -> list[Path]:
    """The user's folders, in order."""
    found = []
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"{VARIABLE} names {name!r}, which is not a folder")
        found.append(folder)
    return found


def paths(group: str) -> dict[str, Path]:
    """The YAML files of a group, such as `aligner`, by name in alphabetical order."""
    found: dict[str, Path] = {}
    for folder in [conf_directory(), *own_directories()]:
        for path in (folder / group).glob("*.yaml"):
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def read(path: Path) -> Any:
    """The content of a YAML file as dictionaries, lists and plain values."""
    import yaml  # takes 10 ms, and most commands read none

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
