"""Reference pages made from the program: `<!-- generated:NAME -->` in a page is replaced by what NAME returns.

The command line comes from its parsers, the configuration from conf/, features from the families and their
titles, and models from their cards. A page is read anew in every build.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jacana_torch.cli import COMMANDS, command
from jacana_torch.cli.parser import LISTS, Help, command_parser, named
from jacana_torch.features import titles
from jacana_torch.model import card, persist
from jacana_torch.resources import catalogue
from jacana_torch.util import build, conf

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"^<!-- generated:(\w+) -->$", re.MULTILINE)
FILES = (
    "CONTRIBUTING",
    "SECURITY",
    "CHANGELOG",
    "CODE_OF_CONDUCT",
)  # of the checkout, which are pages of the site


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("autodoc-process-signature", short)
    app.connect("env-get-outdated", lambda app, env, *_: [name for name in env.all_docs if made(app, name)])
    return {"parallel_read_safe": True}


def fill(app: Sphinx, name: str, source: list[str]) -> None:
    """Make what a page asks for, and lead its links to pages of the site instead of files of the checkout."""
    source[0] = MARK.sub(lambda mark: PAGES[mark[1]](), source[0])
    up = "../" * name.count("/")
    for file in FILES:
        pattern = rf"\]\((?:\.\./)*{file}\.md(#[\w-]+)?\)"
        source[0] = re.sub(pattern, rf"]({up}{file.lower()}.md\1)", source[0])


def made(app: Sphinx, name: str) -> bool:
    return MARK.search(Path(app.env.doc2path(name)).read_text(encoding="utf-8")) is not None


def escaped(text: str) -> str:
    """Text that Markdown would read as markup, as plain text in a table."""
    return re.sub(r"([\\*_{}\[\]<>|~$#])", r"\\\1", " ".join(text.split()))


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def of_checkout(file: str) -> str:
    """The text of a file beside docs/."""
    return (ROOT / f"{file}.md").read_text(encoding="utf-8").replace("](docs/", "](")


# Docstrings: code is marked as in Markdown (`default_role`), and so are tables


def as_rst(app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]) -> None:
    """Rewrite a docstring's tables, and its lists of names and what they mean, which stand in columns."""
    rows = [re.split(r"\s*\|\s*", line.strip().strip("|").strip()) for line in lines if line.startswith("|")]
    done = []
    for line in lines:
        if line.startswith("|"):
            if rows:
                done += _list_table([row for row in rows if not set("".join(row)) <= set("-:")])
            rows = []
        elif term := re.match(r"(`\w+`(?:, `\w+`)*) {2,}(.+)", line):
            done += ["", term[1], f"    {term[2]}"]
        else:
            done.append(re.sub(r"^ {6,}(?=\S)", "    ", line) if done and done[-1].startswith("    ") else line)
    lines[:] = done


def short(
    app: Sphinx, what: str, name: str, found: object, options: object, given: str | None, result: str | None
) -> tuple[str, str] | None:
    """Leave modules out of the types in a signature, and what the program alone passes."""
    if given is None:
        return None
    if what == "class" and ("'internal'" in given or len(given) > 300):
        return "", ""  # its attributes are listed below it
    given, result = (
        re.sub(r"TypeAliasForwardRef\('(\w+)'\)|~?\b(?:[a-z_]\w*\.)+(?=[A-Z])", r"\1", text or "")
        for text in (given, result)
    )
    return given, result


def _list_table(rows: list[list[str]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "")
    for row in rows:
        yield from (f"   {'* -' if number == 0 else '  -'} {cell}" for number, cell in enumerate(row))


# The command line


def commands() -> str:
    return "\n".join(line for name in COMMANDS for line in _command(name))


def _command(name: str) -> Iterator[str]:
    module = command(name)
    parser = command_parser(name)
    parser.formatter_class = lambda prog: Help(prog, width=90)  # type: ignore[assignment]
    yield f"(cli-{name})=\n## {name}\n\n{module.ABOUT}\n\n```text\n{parser.format_usage().strip()}\n```\n"
    for group in parser._action_groups:
        rows = [_option(action, parser) for action in group._group_actions if action.help != argparse.SUPPRESS]
        rows = [row for row in rows if "`-h`" not in row[0]]
        if rows:
            yield table(["option" if rows[0][0].startswith("`-") else "argument", ""], rows)
    notes, _, examples = module.EXAMPLES.strip("\n").partition("examples:\n")
    first, _, after = examples.partition("\n\n")
    for text in (notes, after):
        if text.strip():
            yield f"```text\n{inspect.cleandoc(text)}\n```\n"
    if first:
        yield f"```text\n{inspect.cleandoc(first)}\n```\n"


def _option(action: argparse.Action, parser: argparse.ArgumentParser) -> list[str]:
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"
    value = action.metavar if action.option_strings and action.nargs != 0 else None
    if action.option_strings and action.nargs != 0:
        value = " ".join(value) if isinstance(value, tuple) else value or action.dest.upper()
        value = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else value
        names += f" `{value}`".replace("|", "\\|")
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    for name in named(text):
        text = text.replace(name, ", ".join(LISTS[name]()))
    return [names, escaped(text)]


# The configuration


def configuration() -> str:
    root = conf.conf_directory()
    groups = sorted({path.parent.relative_to(root) for path in root.rglob("*.yaml")} - {Path()})
    parts = [_yaml(root / name, "##", name.removesuffix(".yaml")) for name in ("train.yaml", "compare.yaml")]
    for group in groups:
        if group.parts[0] != "hydra":
            parts.append(f"(conf-{'-'.join(group.parts)})=\n## `{group}=`\n")
            for path in sorted((root / group).glob("*.yaml")):
                parts.append(_yaml(path, "###", f"{group}={path.stem}"))
    return "\n".join(parts)


def _yaml(path: Path, level: str, title: str) -> str:
    lines = path.read_text(encoding="utf-8").rstrip().splitlines()
    lines = [line for line in lines if not line.startswith("# @package")]
    about = lines.pop(0).removeprefix("# ") if lines[0].startswith("# ") else ""
    text = "\n".join(lines).strip("\n")
    return f"{level} `{title}`\n\n{escaped(about)}\n" + (f"\n```yaml\n{text}\n```\n" if text else "")


# Features


def features() -> str:
    families = {name: conf.read(path)[name] for name, path in conf.paths("features").items()}
    about = {
        name: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        for name, path in conf.paths("features").items()
    }
    made = {name: build.build(settings) for name, settings in families.items()}
    rows = [
        [f"[`{name}`](#family-{name})", about[name], _listed(one, "requires"), _listed(one, "resources")]
        for name, one in made.items()
    ]
    parts = [table(["family", "evidence", "layers", "resources"], rows)]
    for name, settings in families.items():
        parts.append(f"(family-{name})=\n## {name}\n\n{about[name]}\n")
        parts += _family(name, settings, made[name])
    return "\n".join(parts)


def _listed(made: object, what: str) -> str:
    return ", ".join(f"`{one}`" for one in getattr(made, what, ()))


def _family(name: str, settings: dict[str, object], made: object) -> Iterator[str]:
    yield f"Class: `{settings['_target_']}`.\n"
    given = [[f"`{name}.{key}`", f"`{value}`"] for key, value in settings.items() if key != "_target_"]
    if given:
        yield table(["setting", "default"], given)
    file = Path(inspect.getfile(type(made))).with_suffix(".titles")
    if file.is_file():
        yield from _columns(titles.written(file))


def _columns(lines: tuple[tuple[str, titles.Title], ...]) -> Iterator[str]:
    for group in dict.fromkeys(title.group for _, title in lines):
        rows = [[f"`{left}`", escaped(title.text)] for left, title in lines if title.group == group]
        yield f"**Evidence of {escaped(group)}**\n\n{table(['column', 'what it says'], rows)}"


# Models and resources


def models() -> str:
    parts = []
    for info in persist.shipped():
        text = card.text(info, card.read(info.path))
        text = "\n".join(line for line in text.splitlines() if not line.startswith("  at: "))
        parts.append(f"(model-{info.name})=\n## {info.name}\n\n```text\n{text}\n```\n")
    rows = [[f"`{info.name}`", escaped(info.description)] for info in persist.untrained()]
    parts.append("## Systems that need no training\n\n" + table(["`--model`", ""], rows))
    return "\n".join(parts)


def linguistic() -> str:
    rows = [
        [f"`{one.name}`", escaped(one.title), str(one.size_mb), escaped(one.needed_by), escaped(one.licence)]
        for one in catalogue.CATALOGUE.values()
    ]
    return table(["name", "content", "MB", "used by", "licence"], rows)


PAGES = {
    "commands": commands,
    "configuration": configuration,
    "features": features,
    "models": models,
    "resources": linguistic,
    **{name.lower(): partial(of_checkout, name) for name in FILES},
}
