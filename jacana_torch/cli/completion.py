"""`jacana-torch completion`: scripts that let a shell complete commands, options, models, formats and files.

They are generated from the parsers: what an option may be followed by is what its help lists. A script holds all
names, so completing a word starts no program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

ABOUT = "Print a script that completes commands, options and names in a shell."
EXAMPLES = """
examples:
  jacana-torch completion bash > ~/.local/share/bash-completion/completions/jacana-torch
  jacana-torch completion zsh > ~/.zfunc/_jacana-torch             # where ~/.zfunc is in fpath, before compinit
  jacana-torch completion fish > ~/.config/fish/completions/jacana-torch.fish

Run it again after an update of the package. It completes in new shells."""

SHELLS = ("bash", "zsh", "fish")
FILES = None  # of values: any file


@dataclass(frozen=True)
class Option:
    """What a shell knows of an option, or of the words without one: then `strings` is empty."""

    strings: tuple[str, ...]
    about: str
    takes: bool  # whether a value follows
    values: tuple[str, ...] | None  # what may follow; None: files
    files: bool = False  # files may follow besides


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell]
    sys.stdout.write("\n".join([*write(described()), ""]))
    return 0


def described() -> dict[str, tuple[str, list[Option]]]:
    """Return what each command does, and its options."""
    from . import COMMANDS, command
    from .parser import command_parser

    found: dict[str, tuple[str, list[Option]]] = {}
    for name in COMMANDS:
        options = [_option(action) for action in command_parser(name)._actions if action.help != argparse.SUPPRESS]
        found[name] = command(name).ABOUT.partition(":")[0].rstrip("."), options
    return found


def _option(action: argparse.Action) -> Option:
    from .parser import LISTS, named

    about = action.help or ""
    values: Sequence[str] | None = FILES
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    lists = named(about)
    for name in lists:
        about = about.replace(name, "").replace(": (", " (").strip(" :")
    if action.choices is not None:
        values = [str(one) for one in action.choices]
    elif lists:
        values = LISTS[lists[0]]()
    elif metavar.startswith("NAME"):
        values = _names(action)
    elif metavar and not any(word in metavar for word in ("FILE", "PAGE", "DIR", "IN", "OUT", "SPANS", "GOLD")):
        values = ()  # a number or a text
    takes = action.nargs != 0 if action.option_strings else True
    return Option(
        tuple(action.option_strings), about, takes, None if values is FILES else tuple(values), "DIR" in metavar
    )


def _names(action: argparse.Action) -> Sequence[str]:
    """Return the models, or the resources, that an option called NAME takes."""
    from ..resources.catalogue import CATALOGUE

    if action.dest == "names":
        return list(CATALOGUE)
    if action.dest not in ("model", "models"):
        return ()
    from ..model import persist, untrained

    return [*persist.names(), *untrained.names()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _bash(commands: dict[str, tuple[str, list[Option]]]) -> list[str]:
    lines = [
        "# bash completion of jacana-torch",
        "_jacana_torch() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" name="" k',
        "  COMPREPLY=()",
        "  for ((k = 1; k < COMP_CWORD; k++)); do",
        '    [[ "${COMP_WORDS[k]}" == -* ]] || { name="${COMP_WORDS[k]}"; break; }',
        "  done",
        '  case "$name $before" in',
    ]
    for name, (_, options) in commands.items():
        for option in options:
            if option.strings and option.takes:
                case = "|".join(f"{_quoted(f'{name} {string}')}" for string in option.strings)
                lines.append(f"    {case}) {_bash_values(option)}; return ;;")
    lines += ["  esac", '  case "$name" in']
    lines.append(f"    '') {_bash_words([*commands, '--help', '--version'])} ;;")
    for name, (_, options) in commands.items():
        strings = [string for option in options for string in option.strings]
        words = [value for option in options if not option.strings for value in option.values or ()]
        files = any(not option.strings and (option.values is FILES or option.files) for option in options)
        rest = _bash_words(words) if words else ":"
        rest += '; COMPREPLY+=($(compgen -f -- "$word"))' if files else ""
        lines.append(f'    {name}) if [[ "$word" == -* ]]; then {_bash_words(strings)}; else {rest}; fi ;;')
    return [*lines, "  esac", "}", "complete -o filenames -F _jacana_torch jacana-torch"]


def _bash_words(words: Sequence[str]) -> str:
    return f'COMPREPLY=($(compgen -W {_quoted(" ".join(words))} -- "$word"))'


def _bash_values(option: Option) -> str:
    if option.values is FILES:
        return 'COMPREPLY=($(compgen -f -- "$word"))'
    files = '; COMPREPLY+=($(compgen -d -- "$word"))' if option.files else ""
    return (_bash_words(option.values) if option.values else ":") + files


def _zsh(commands: dict[str, tuple[str, list[Option]]]) -> list[str]:
    lines = ["#compdef jacana-torch", "_jacana-torch() {", "  local -a commands", "  commands=("]
    lines += [f"    {_quoted(f'{name}:{about}')}" for name, (about, _) in commands.items()]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
        "  local name=${words[2]}",
        "  shift words; (( CURRENT-- ))",
        "  case $name in",
    ]
    for name, (_, options) in commands.items():
        lines.append(f"    {name}) _arguments -S \\")
        for option in options:
            values = _zsh_values(option)
            if not option.strings:
                lines.append(f"      {_quoted(f'*:{_zsh_text(option.about)}:{values}')} \\")
            for string in option.strings:
                value = f":value:{values}" if option.takes else ""
                lines.append(f"      {_quoted(f'*{string}[{_zsh_text(option.about)}]{value}')} \\")
        lines.append("      && return ;;")
    return [*lines, "  esac", "}", '_jacana-torch "$@"']


def _zsh_text(text: str) -> str:
    for letter in "\\[]:":
        text = text.replace(letter, f"\\{letter}")
    return text


def _zsh_values(option: Option) -> str:
    if option.values is FILES:
        return "_files"
    if option.files:
        return f'{{_alternative "names\\:name\\:({" ".join(option.values)})" "files\\:folder\\:_files -/"}}'
    return f"({' '.join(option.values)})" if option.values else " "


def _fish(commands: dict[str, tuple[str, list[Option]]]) -> list[str]:
    lines = ["# fish completion of jacana-torch", "complete -c jacana-torch -f"]
    for name, (about, options) in commands.items():
        lines.append(f"complete -c jacana-torch -n __fish_use_subcommand -a {name} -d {_fish_text(about)}")
        for option in options:
            line = f"complete -c jacana-torch -n '__fish_seen_subcommand_from {name}'"
            for string in option.strings:
                line += f" -{'l' if string.startswith('--') else 's'} {string.lstrip('-')}"
            if option.strings and option.takes:
                line += " -r"
            if option.takes and option.values:
                line += f" -a {_fish_text(' '.join(option.values))}"
            if option.takes and (option.values is FILES or option.files):
                line += " -F"
            about = _fish_text(option.about)
            lines.append(f"{line} -d {about}" if option.strings or option.values else line)
    return lines


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
