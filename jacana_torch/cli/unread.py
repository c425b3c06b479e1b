"""Settings that nothing reads: find them in a composed configuration, and name what was probably meant.

A setting is read if the package's own conf/ has it, if the class that its `_target_` names takes it, or if another
setting refers to it as `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..errors import ConfigError
from ..util import conf
from ..util.build import parameters

PLAIN = ("data", "trainer", "logger")  # groups that the training run reads itself
GLOBAL = "# @package _global_"  # the first line of files that change the whole configuration
Unread = tuple[str, Any, frozenset[str]]  # a name, its value, and the names that are read in its place
_REFERENCE = re.compile(r"\$\{([^${}]*)")


def check(held: Mapping[str, Any], program: str, known: Mapping[str, Iterable[str]]) -> None:
    """Raise an error for a setting that `program`, "train" or "compare", does not read.

    `held` is the whole configuration as it was composed, with references as they were written. `known` has the
    settings of nodes that others read, such as "hydra.job.".
    """
    own = {name: value for name, value in held.items() if name != "hydra"}
    read = set(references(held, ()))
    for name, value, siblings in (*_unread(own, program), *_unread_of_others(held, known)):
        whole = name.partition(".")[0] if name.partition(".")[0] in PLAIN else name
        if not any(one in (name, whole) or one.startswith(f"{name}.") for one in read):
            raise ConfigError(f"{name}={value}: nothing reads this setting{meant(name, siblings)}")


def explained(message: str) -> str:
    """Return Hydra's message, but if it is about a name that does not exist, one that says what was meant."""
    found = re.match(r"Could not (override|delete from config\.) '([^']*)'", message)
    if found is None or "No match in the defaults list" in message:
        return message
    name = found[2]
    return f"there is no setting {name}{meant(name)}"


def meant(name: str, siblings: Iterable[str] = ()) -> str:
    """Return what to write instead of an unknown name: the nearest one, else all that could stand in its place."""
    parent, _, last = name.rpartition(".")
    known = known_names()
    beside = {one.rpartition(".")[2] for one in known if one.rpartition(".")[0] == parent}
    siblings = {*(siblings or beside), *(() if parent else ("experiment", "systems"))} - {last}
    prefix = f"{parent}." if parent else ""
    for close in get_close_matches(last, siblings, 1, 0.5):
        return f"; did you mean {prefix}{close}?"
    for close in get_close_matches(name, [one for one in known if not name.startswith(one)], 1, 0.8):
        return f"; did you mean {close}?"
    elsewhere = sorted(one for one in known if one.endswith(f".{last}"))
    if elsewhere:
        return f"; did you mean {min(elsewhere, key=len)}?"
    for close in get_close_matches(last, siblings, 1, 0.0):
        every = ", ".join(prefix + one for one in sorted(siblings))
        return f"; the nearest name is {prefix}{close}, and there are {every}"
    return ""


def references(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield the names that `${...}` of a configuration refer to; `path` is where `value` stands."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from references(one, (*path, str(key)))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from references(one, (*path, str(number)))
    elif isinstance(value, str):
        for text in _REFERENCE.findall(value):
            for name in re.split(r"[:,\s]+", text):
                yield _absolute(name.replace("[", ".").replace("]", ""), path)


def _absolute(name: str, path: Sequence[str]) -> str:
    """Return a name that may begin with dots, for the node it stands in and those above it, from the root."""
    rest = name.lstrip(".")
    above = len(name) - len(rest)
    return ".".join([*path[: len(path) - above], rest]) if above else rest


def _unread(held: Mapping[str, Any], program: str) -> Iterator[Unread]:
    """Yield the settings that neither the program nor a class reads."""
    yield from _besides(held, "", _top(program))
    for group in PLAIN:
        known = {name.partition(".")[2] for name in _names_of(group)}
        yield from _besides(held.get(group), f"{group}.", known)
    families = _mapping(held.get("features"))
    inline = [name for name, value in families.items() if "_target_" in _mapping(value)]
    yield from _besides(families, "features.", {*conf.paths("features"), *inline})
    for group in ("annotate", "features", "symmetrize"):
        yield from _not_taken(held.get(group), f"{group}.")
    for name, value, siblings in _not_taken(held.get("aligner"), "aligner."):
        if name not in known_names():  # else another aligner takes it, and building this one says what is wrong
            yield name, value, siblings


def _unread_of_others(held: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> Iterator[Unread]:
    for prefix, names in known.items():
        part: Any = held
        for key in prefix.rstrip(".").split("."):
            part = _mapping(part).get(key)
        yield from _besides(part, prefix, set(names))


def _not_taken(value: Any, prefix: str) -> Iterator[Unread]:
    """Yield what stands beside a `_target_` and is no argument of it, here and below."""
    taken = parameters(_mapping(value).get("_target_"))
    if taken is not None:
        yield from _besides(value, prefix, {*taken, "_target_", "_partial_"})
    for key, one in _mapping(value).items():
        yield from _not_taken(one, f"{prefix}{key}.")


def _besides(value: Any, prefix: str, known: Iterable[str]) -> Iterator[Unread]:
    siblings = frozenset(name for name in known if not name.startswith("_"))
    for key, one in _mapping(value).items():
        if key not in known:
            yield f"{prefix}{key}", one, siblings


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@cache
def _top(program: str) -> frozenset[str]:
    """The settings and groups of a program's YAML file; `compare` has those of `train` too."""
    names: set[str] = set()
    for name in {"train", program}:
        held = conf.read(conf.conf_directory() / f"{name}.yaml")
        names |= held.keys() - {"defaults", "hydra"}
        for item in held["defaults"]:
            if isinstance(item, Mapping):
                names |= {key for key in item if " " not in key}  # not `override hydra/...`
    return frozenset(names - {"experiment", "systems"})  # these groups change others, and leave nothing


@cache
def known_names() -> frozenset[str]:
    """The dotted names of all settings in the package's conf/."""
    groups = (path.name for path in conf.conf_directory().iterdir() if path.is_dir())
    return frozenset({"experiment", "systems", *_top("compare")}).union(*map(_names_of, groups))


@cache
def _names_of(group: str) -> frozenset[str]:
    """The dotted names of the settings of a group, in any of the package's files."""
    names: set[str] = set()
    for path in (conf.conf_directory() / group).glob("*.yaml"):
        if not path.read_text(encoding="utf-8").startswith(GLOBAL):
            names.update(_dotted(conf.read(path), f"{group}."))
    return frozenset(names)


def _dotted(value: Any, prefix: str) -> Iterator[str]:
    for key, one in _mapping(value).items():
        if key != "defaults" and not str(key).startswith("_"):
            yield f"{prefix}{key}"
            yield from _dotted(one, f"{prefix}{key}.")
