"""Build objects from plain configs: a mapping with a `_target_` becomes an instance of the class it names.

A config can name classes of this package, and of packages that the environment variable JACANA_TRUST lists. A
class must be named by the module that defines it, so that a config cannot reach what a module merely imports.
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


def build(config: Any, **overrides: Any) -> Any:
    """Instantiate a config from the inside out; values without a `_target_` stay as they are.

    With `_partial_: true`, `_target_` names a function, which is returned with its arguments bound. Each class
    that takes an argument of a name in `overrides` gets that value, whatever the config says (`device="cuda"`).
    """
    if isinstance(config, (list, tuple)):
        return list(map(functools.partial(build, **overrides), config))
    if not isinstance(config, Mapping):
        return config
    arguments: dict[str, Any] = {}
    for name, value in config.items():
        arguments[name] = build(value, **overrides)
    if "_target_" not in config:
        return arguments
    target, partial = arguments.pop("_target_"), arguments.pop("_partial_", False)
    if partial:
        return functools.partial(_find(target, types.FunctionType), **arguments)
    return _instance(_find(target, type), arguments, overrides)


def trusted(target: str) -> bool:
    """Whether a dotted name is of this package, or of a package that JACANA_TRUST lists."""
    for package in ("jacana_torch", *os.environ.get("JACANA_TRUST", "").replace(",", " ").split()):
        if target.startswith(f"{package}."):
            return True
    return False


def _find(target: Any, kind: type) -> Any:
    """The class or function of a dotted name, if it is ours or of a package that JACANA_TRUST lists."""
    if not isinstance(target, str) or not trusted(target):
        raise ConfigError(
            f"the config names {target!r}, which is not part of this package; if you trust it, set "
            f"JACANA_TRUST={str(target).split('.')[0]}"
        )
    module_name, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a user's module can fail in any way
        what = f"{type(error).__name__}: {error}"
        raise ConfigError(f"the config names {target!r}, which cannot be imported ({what})") from error
    if not isinstance(found, kind) or found.__module__ != module_name:
        raise ConfigError(f"the config names {target!r}, which is not a {kind.__name__} of {module_name}")
    return found


def _instance(made: type, arguments: dict[str, Any], overrides: Mapping[str, Any]) -> Any:
    """`made(**arguments)`, with a ConfigError for arguments that do not fit."""
    name = f"{made.__module__}.{made.__name__}"
    signature = inspect.signature(made)  # to report a wrong argument before the constructor does any work
    for argument in overrides.keys() & signature.parameters.keys():
        arguments[argument] = overrides[argument]
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None
    for argument, expected in _simple_types(made).items():
        if argument not in arguments:
            continue
        value = arguments[argument]
        if type(value) not in expected and not (type(value) is int and float in expected):
            names = " or ".join("null" if one is type(None) else one.__name__ for one in expected)
            raise ConfigError(f"{name}: {argument}={value!r} should be {names}")
    try:
        return made(**arguments)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{name} cannot be made of {', '.join(arguments) or 'nothing'}: {error}") from error


def _simple_types(made: Any) -> dict[str, tuple[type, ...]]:
    """The types of the arguments that are annotated as int, float, bool, str or None, or a union of these."""
    simple: dict[str, tuple[type, ...]] = {}
    try:
        for argument, hint in typing.get_type_hints(made.__init__).items():
            expected = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
            if {int, float, bool, str, type(None)}.issuperset(expected):
                simple[argument] = tuple(expected)
    except (NameError, TypeError, AttributeError):  # annotations that only a type checker can resolve
        return {}
    return simple


def parameters(target: Any) -> frozenset[str] | None:
    """The names of the arguments of a class or function, or None if it takes any or is not to be imported."""
    if not isinstance(target, str) or not trusted(target):
        return None
    module_name, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name)
        taken = inspect.signature(found).parameters.values()
    except Exception:  # `build` reports it, if the class is needed
        return None
    if getattr(found.__init__, "__module__", None) == "typing":  # a protocol's class without arguments
        return frozenset()
    if any(one.kind is one.VAR_KEYWORD for one in taken):
        return None
    return frozenset(one.name for one in taken)
