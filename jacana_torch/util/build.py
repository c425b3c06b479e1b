"""Build objects from plain configs: a mapping with a `_target_` becomes an instance of the class it names.

The whole config is checked before anything is built. A config can name feature families, aligners, annotators and
symmetrizers, of this package or of a package that the user trusts (trust.py). Each must be named by the module
that defines it, and fit the annotation of the argument that takes it. Settings must have the types of their
annotations, and be within the bounds that are declared there: `window: Annotated[int, Within(1, 100)]`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import numbers
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any

from ..errors import ConfigError, did_you_mean
from . import trust

OnFile = Callable[[str], None]

# Where the parts of models are. Nothing else of this package can be named, so nothing else is imported.
PARTS = ("aligners", "systems", "annotate", "features.families", "symmetrize", "model.model", "train.augment")
_OUR_PARTS = tuple(map("jacana_torch.{}.".format, PARTS))
DEEPEST = 40  # levels of a config; those of our models have ten
_SYMMETRIZER = ["Alignment"] * 3  # the annotations of a function that is one
_making: ContextVar[Any] = ContextVar("_making", default=None)  # the class that `assemble` calls
_PLAIN = (type(None), bool, int, float, str, list, tuple, Mapping)  # what files of JSON and YAML hold


# Declarations in annotations of settings


@dataclass(frozen=True)
class Within:
    """Bounds of a number: `least` and `most` are allowed, `above` and `below` are not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True)
class Items:
    """How many entries a list has."""

    least: int = 0
    most: int = 1000


@dataclass(frozen=True)
class OneOf:
    """The words to choose from."""

    choices: tuple[str, ...]


@dataclass(frozen=True)
class OnDisk:
    """Marks the name of a file or folder, unless something installed is `known` by that name."""

    known: Callable[[str], bool] = frozenset[str]().__contains__


Count = Annotated[int, Within(1, 10**9)]
Cells = Annotated[int, Within(1, 10**8)]  # that are computed at once
Seed = Annotated[int, Within(0, 2**62)]
Positive = Annotated[float, Within(above=0)]
NotNegative = Annotated[float, Within(0)]
Share = Annotated[float, Within(0, 1)]
Inside = Annotated[float, Within(above=0, below=1)]  # between 0 and 1, neither of them
INTERNAL = "internal"  # marks an argument that no config sets


# Settings


@dataclass(frozen=True)
class Option:
    """One kind of value that an argument takes, called `name`: its entries are `items`, its limits `bounds`."""

    kind: Any  # a plain type, `list`, `Mapping`, `Any`, or the class or protocol of a part
    name: str
    items: tuple[Option, ...] = ()
    bounds: tuple[Any, ...] = ()


ANYTHING = (Option(Any, "anything"),)
_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}


def options_of(hint: Any, bounds: tuple[Any, ...] = ()) -> tuple[Option, ...]:
    """The kinds of values that an annotation allows."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return options_of(inner[0], (*bounds, *inner[1:]))
    if origin in (typing.Union, types.UnionType):
        kinds: list[Option] = []
        for one in inner:
            kinds += options_of(one, bounds)
        return tuple(kinds)
    if hint in _NAMES:
        name = _NAMES[hint]
        for bound in bounds:
            if isinstance(bound, OneOf):
                name = f"one of {', '.join(bound.choices)}"
        return (Option(hint, name, (), () if hint is type(None) else bounds),)
    if origin is Callable:
        return (Option(hint, "a function", (), bounds),)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return (Option(Mapping, "a mapping", options_of(inner[-1]), bounds),)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        entries: list[Option] = []
        for one in inner:
            entries += options_of(one) if one is not ... else ()
        return (Option(list, "a list", tuple(entries), bounds),)
    known = isinstance(hint, type) and hint not in (object, list, tuple, dict)
    return (Option(hint, f"a {hint.__name__}", (), bounds),) if known else ANYTHING


@dataclass(frozen=True)
class Settings:
    """The arguments of a class, by name: what each takes, which there must be, and which no config sets."""

    options: Mapping[str, tuple[Option, ...]]
    required: frozenset[str] = frozenset()
    internal: frozenset[str] = frozenset()
    others: bool = False  # whether it takes any other name as well


@functools.cache
def settings_of(made: Any) -> Settings:
    """The settings of a class or function."""
    if getattr(made.__init__, "__module__", None) == "typing":  # a protocol's class without arguments
        return Settings({})
    try:
        hints = typing.get_type_hints(made if is_dataclass(made) else made.__init__, include_extras=True)
    except (NameError, TypeError, AttributeError):  # annotations that only a type checker can resolve
        hints = {}
    options, required, internal, others = {}, set(), set(), False
    for name, parameter in inspect.signature(made).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            others |= parameter.kind is parameter.VAR_KEYWORD
            continue
        options[name] = options_of(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.add(name)
        for option in options[name]:
            if INTERNAL in option.bounds:
                internal.add(name)
    return Settings(options, frozenset(required), frozenset(internal), others)


def parameters(target: Any) -> frozenset[str] | None:
    """The names of the arguments of a class or function, or None if it takes any or is not to be imported."""
    try:
        settings = settings_of(_find(target, object))
    except (ConfigError, TypeError, ValueError):  # `build` reports it, if the class is needed
        return None
    return None if settings.others else frozenset(settings.options)


def check_bounds(made: type, values: Mapping[str, Any]) -> None:
    """Raise a ConfigError if an argument of a class is not of its type or not within its bounds.

    Constructors call this. Arguments that come from a config were checked with it.
    """
    if _making.get() is made:
        return
    settings = settings_of(made)
    for name, options in settings.options.items():
        if name in values and name not in settings.internal:
            _check_value(name, values[name], options, None)


def _names_of(options: Iterable[Option]) -> str:
    return " or ".join(dict.fromkeys(option.name for option in options))


def _shown(value: Any, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 4]} ..."


# Checking configs


def build(config: Any, kind: Any = Any, on_file: OnFile = trust.add_file, **overrides: Any) -> Any:
    """Instantiate a config from the inside out; values without a `_target_` stay as they are.

    `kind` is the class or protocol that the config must make. `on_file` is called with each file or folder that it
    names; by default these are trusted. With `_partial_: true`, `_target_` names a symmetrizer, which is returned
    with its arguments bound. Each class that takes an argument of a name in `overrides` gets that value, whatever
    the config says (`device="cuda"`).
    """
    check(config, kind, on_file)
    return assemble(config, **overrides)


def check(config: Any, kind: Any = Any, on_file: OnFile = trust.add_file) -> None:
    """Raise a ConfigError if a part or a setting of a config is not allowed. Nothing is built."""
    level = [config]
    for _ in range(DEEPEST):
        outer, level = level, []
        for value in outer:
            if isinstance(value, Mapping):
                level += value.values()
            elif isinstance(value, (list, tuple)):
                level += value
    if level:
        raise ConfigError(f"the config is nested more than {DEEPEST} levels deep")
    _check_value("the config", config, options_of(kind), on_file)


def _check_value(name: str, value: Any, options: Sequence[Option], on_file: OnFile | None) -> None:
    """Raise a ConfigError if a value, or anything inside it, is none of the options."""
    fitting: list[Option] = []
    for option in options:
        if _fits(value, option.kind):
            fitting.append(option)
    if not fitting:
        raise ConfigError(f"{name}={_shown(value)} should be {_names_of(options)}")
    wrong = _problem(value, fitting[0])
    if wrong:
        raise ConfigError(f"{name}={_shown(value)}: {wrong}")
    entries = fitting[0].items or ANYTHING
    if isinstance(value, Mapping) and "_target_" in value:
        _check_part(name, value, fitting, on_file)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _check_value(f"{name}[{key!r:.60}]", inner, entries, on_file)
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            _check_value(f"{name}[{place}]", inner, entries, on_file)
    elif on_file is not None:
        for bound in fitting[0].bounds:
            if isinstance(bound, OnDisk) and not bound.known(value):
                on_file(value)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind. That of a config with a `_target_` can be any class or protocol."""
    if isinstance(value, Mapping) and "_target_" in value:
        return kind not in (*_NAMES, list, Mapping)
    if kind in _NAMES:
        numeric = numbers.Integral if kind is int else numbers.Real if kind is float else kind
        return type(value) is kind or (isinstance(value, numeric) and type(value) is not bool)
    if kind is list:
        return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))
    if kind is Mapping:
        return isinstance(value, Mapping)
    return kind is Any or not isinstance(value, _PLAIN)


def _problem(value: Any, option: Option) -> str:
    """What is wrong with a value of the option's kind; empty if nothing is."""
    if option.kind is float and not abs(value) <= sys.float_info.max:
        return "must be finite"
    for bound in option.bounds:
        if isinstance(bound, OneOf) and value not in bound.choices:
            return f"choose one of {', '.join(bound.choices)}"
        if isinstance(bound, Items) and not bound.least <= len(value) <= bound.most:
            each = f", each {_names_of(option.items)}" if option.kind is list else ""
            return f"has {len(value)} entries, and needs {bound.least} to {bound.most}{each}"
        if isinstance(bound, Within):
            limits = (
                ("above", bound.above, operator.gt), ("at least", bound.least, operator.ge),
                ("at most", bound.most, operator.le), ("below", bound.below, operator.lt),
            )  # fmt: skip
            wanted, fine = [], True
            for name, limit, fulfils in limits:
                if limit is not None:
                    wanted.append("positive" if (name, limit) == ("above", 0) else f"{name} {limit:,}")
                    fine = fine and fulfils(value, limit)
            if not fine:
                return f"must be {' and '.join(wanted)}"
    return ""


def _check_part(name: str, config: Mapping[str, Any], roles: Sequence[Option], on_file: OnFile | None) -> None:
    """Raise a ConfigError if what a config with a `_target_` names has none of the roles, or a wrong setting."""
    target, partial = config["_target_"], config.get("_partial_", False)
    if type(partial) is not bool:
        raise ConfigError(f"{name}: _partial_={_shown(partial)} should be true or false")
    found = _find(target, types.FunctionType if partial else type)
    for role in roles:
        if _fulfils(found, role.kind):
            break
    else:
        raise ConfigError(f"{name}: {target} is not {_names_of(roles)}")
    arguments, settings = {**config}, settings_of(found)
    for key in ("_target_", "_partial_"):
        arguments.pop(key, None)
    if partial:
        try:
            inspect.signature(found).bind(None, None, **arguments)  # the two alignments come first
        except TypeError as error:
            raise ConfigError(f"{target}: {error}") from None
    elif not settings.required <= arguments.keys() or not (
        settings.others or arguments.keys() <= settings.options.keys()
    ):
        raise ConfigError(f"{target}: {_misnamed(settings, arguments)}")
    for key, value in arguments.items():
        if key in settings.internal:
            raise ConfigError(f"{target}: {key}={_shown(value)}: is not a setting")
        _check_value(f"{target}: {key}", value, settings.options.get(key, ANYTHING), on_file)


def _misnamed(settings: Settings, arguments: Mapping[str, Any]) -> str:
    unknown = [name for name in arguments if name not in settings.options]
    if not unknown or settings.others:
        return f"lacks the settings {', '.join(sorted(settings.required - arguments.keys()))}"
    return f"has no setting {_shown(unknown[0])}{did_you_mean(unknown[0], settings.options)}"


def trusted(target: str) -> bool:
    """Whether a dotted name is of this package, or of a package that the user trusts."""
    return target.startswith("jacana_torch.") or trust.is_trusted_package(target)


def _find(target: Any, kind: type) -> Any:
    """The class or function of a dotted name, if it can be a part of a model."""
    ours = isinstance(target, str) and target.startswith("jacana_torch.")
    if not (ours or (isinstance(target, str) and trust.is_trusted_package(target))):
        package = _shown(target)[1:-1].split(".")[0]
        raise ConfigError(
            f"the config names {_shown(target)}, which is not part of this package; if you trust it, set "
            f"{trust.VARIABLE}={package}"
        )
    module, _, name = target.rpartition(".")
    kinds = f"a {kind.__name__} of {module[:200]}"
    if ours and not f"{module}.".startswith(_OUR_PARTS):
        raise ConfigError(
            f"the config names {_shown(target)}, which cannot be imported by a config: not {kinds} that models "
            "consist of (feature families, aligners, annotators, symmetrizers)"
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's module can fail in any way
        what = f"{type(error).__name__}: {error}"[:200]
        raise ConfigError(f"the config names {_shown(target)}, which cannot be imported ({what})") from error
    if not isinstance(found, kind) or found.__module__ != module:
        raise ConfigError(f"the config names {_shown(target)}, which is not {kinds}")
    if ours and isinstance(found, types.FunctionType) and [*found.__annotations__.values()] != _SYMMETRIZER:
        raise ConfigError(f"the config names {target}, which is not a symmetrizer: _partial_ takes only these")
    return found


def _fulfils(found: Any, role: Any) -> bool:
    """Whether a class or a function can have a role: a class, a protocol, a type of functions, or `Any`."""
    ours, is_function = found.__module__.startswith("jacana_torch."), isinstance(found, types.FunctionType)
    if role is Any:
        return True
    if typing.get_origin(role) is not None:  # a type of functions; instances of your classes may be callable
        return len(typing.get_args(role)[0]) == 2 if is_function else not ours  # of two alignments: a symmetrizer
    is_protocol = "_is_protocol"  # set by `typing` for every class that is a protocol or is derived from one
    if is_function or inspect.isabstract(found) or getattr(found, is_protocol, False):
        return False
    if not getattr(role, is_protocol, False):
        return issubclass(found, role)
    return not ours or _members(role) <= _members(found)


@functools.cache
def _members(made: type) -> frozenset[str]:
    """The public members that a class or protocol and its bases declare in their bodies."""
    names: set[str] = set()
    for base in made.__mro__[:-1]:
        for name in (*vars(base), *base.__dict__.get("__annotations__", ())):
            if not name.startswith("_") or name == "__call__":
                names.add(name)
    return frozenset(names)


# Building


def assemble(config: Any, **overrides: Any) -> Any:
    """Instantiate a config that was checked; see `build`."""
    if isinstance(config, (list, tuple)):
        values = []
        for value in config:
            values.append(assemble(value, **overrides))
        return values
    if not isinstance(config, Mapping):
        return config
    arguments: dict[str, Any] = {}
    for name, value in config.items():
        arguments[name] = assemble(value, **overrides)
    if "_target_" not in config:
        return arguments
    target, partial = arguments.pop("_target_"), arguments.pop("_partial_", False)
    found = _find(target, types.FunctionType if partial else type)
    if partial:
        return functools.partial(found, **arguments)
    for argument in overrides.keys() & inspect.signature(found).parameters.keys():
        arguments[argument] = overrides[argument]
    before = _making.set(found)
    try:
        return found(**arguments)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(f"{target} cannot be made of {', '.join(arguments) or 'nothing'}: {error}") from error
    finally:
        _making.reset(before)
