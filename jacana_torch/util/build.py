"""Objects from plain configs: a mapping with a `_target_` in, an instance of that class out.

Only classes of this package, or of packages that the user names in the environment variable JACANA_TRUST, are ever
built, and only by the name under which their own module defines them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import types
import typing
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError


def trusted(target: str) -> bool:
    """Whether a config may build this class: our own packages, and those that JACANA_TRUST lists."""
    extra = [name for name in os.environ.get("JACANA_TRUST", "").replace(",", " ").split() if name]
    return any(target.startswith(f"{package}.") for package in ["jacana_torch", *extra])


def build(config: Any, **given: Any) -> Any:
    """Instantiate a plain config: every mapping with a `_target_` becomes that object, from the inside out.

    `given` are arguments that every class which takes them gets, whatever the config says (`device="cuda"`).
    """
    if isinstance(config, Mapping):
        special = ("_target_", "_partial_")
        arguments = {key: build(value, **given) for key, value in config.items() if key not in special}
        if "_target_" not in config:
            return arguments
        made = _find(config["_target_"], types.FunctionType if config.get("_partial_") else type)
        if config.get("_partial_"):
            return functools.partial(made, **arguments)
        taken = inspect.signature(made).parameters
        return _call(made, arguments | {name: value for name, value in given.items() if name in taken})
    if isinstance(config, (list, tuple)):
        return [build(value, **given) for value in config]
    return config


def _find(target: Any, kind: type) -> Any:
    """The class (for `_partial_`, the function) of that dotted name, if the module that it names defines it."""
    if not isinstance(target, str) or not trusted(target):
        raise ConfigError(
            f"the config names {target!r}, which is not of this package; if you trust it, set "
            f"JACANA_TRUST={str(target).split('.')[0]}"
        )
    module_name, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a module that a user wrote may fail in any way
        what = f"{type(error).__name__}: {error}"
        raise ConfigError(f"the config names {target!r}, which cannot be imported ({what})") from error
    if not isinstance(found, kind) or found.__module__ != module_name:
        raise ConfigError(f"the config names {target!r}, which is not a {kind.__name__} of {module_name}")
    return found


def _call(made: Any, arguments: dict[str, Any]) -> Any:
    """`made(**arguments)`; arguments that do not fit are the config's fault and told as such."""
    name = f"{made.__module__}.{made.__name__}"
    try:
        inspect.signature(made).bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None
    simple = _simple_types(made)
    for argument, value in arguments.items():
        expected = simple.get(argument, ())
        fits = type(value) in expected or (type(value) is int and float in expected)
        if expected and not fits:
            kinds = " or ".join("null" if kind is type(None) else kind.__name__ for kind in expected)
            raise ConfigError(f"{name}: {argument}={value!r} should be {kinds}")
    try:
        return made(**arguments)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{name} cannot be made of {', '.join(arguments) or 'nothing'}: {error}") from error


def _simple_types(made: Any) -> dict[str, tuple[type, ...]]:
    """What each argument may be, where its annotation says int, float, bool, str or None, or one of several."""
    try:
        hints = typing.get_type_hints(made.__init__)
    except (NameError, TypeError, AttributeError):  # annotations for type checkers alone
        return {}
    simple = {}
    for argument, hint in hints.items():
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        if all(kind in (int, float, bool, str, type(None)) for kind in kinds):
            simple[argument] = tuple(kinds)
    return simple
