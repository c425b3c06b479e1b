"""The only Hydra entry point: `python -m jacana_torch.cli.hydra ...` is `jacana-torch train ...`.

It composes conf/ and the overrides of the command line, and passes plain data to `train.run.train`, once per job.
A sweep maximises the score of its jobs. `jacana-torch compare ...` composes one configuration per system.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.conf import HydraConf, JobConf
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from ..errors import ConfigError, JacanaError
from ..util import conf
from . import unread

if TYPE_CHECKING:
    from ..compare import Entry

log = logging.getLogger(__name__)

# The settings that Hydra reads itself.
HYDRAS_OWN = {
    "hydra.": {"env", *map(attrgetter("name"), fields(HydraConf))},
    "hydra.job.": {"env", *map(attrgetter("name"), fields(JobConf))},
}


class _OwnFolders(SearchPathPlugin):
    """Lets Hydra find what is in the folders of JACANA_CONF."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in conf.own_directories():
            search_path.append(provider=conf.VARIABLE, path=f"file://{folder.resolve()}")


Plugins.instance().register(_OwnFolders)


@dataclass
class _Job:
    """One run of a command line; a sweep has several. `error` keeps what Hydra would report in its own way."""

    cfg: DictConfig
    overrides: list[str]
    directory: Path
    score: float | None = None
    error: Exception | None = None


def train(arguments: Sequence[str]) -> list[float]:
    """Train with Hydra's command line; return the score of each job: one, or several of a sweep.

    A mistake in a configuration is a ConfigError. An error of a job is raised as it is, after the other jobs of a
    sweep.
    """
    scores = []
    if any(item.startswith("resume=") for item in arguments):
        from . import resuming

        arguments = resuming.completed(arguments)
    for job in _run("train", _train, arguments):
        if job.score is not None:
            scores.append(job.score)
    return scores


def compare(arguments: Sequence[str]) -> None:
    """Compare systems with Hydra's command line, and write the table to `output` or stdout."""
    if {"-m", "--multirun"} & set(arguments):
        raise ConfigError("a comparison cannot be a sweep: name all systems in aligners=[...]")
    _run("compare", _compare, arguments)


def _run(name: str, work: Callable[[_Job], float | None], arguments: Sequence[str]) -> list[_Job]:
    """Have Hydra compose the configuration of that name, and do the work of each job."""
    jobs: list[_Job] = []

    def task(cfg: DictConfig) -> float | None:
        hydra_cfg = HydraConfig.get()
        job = _Job(cfg, list(hydra_cfg.overrides.task), Path(hydra_cfg.runtime.output_dir))
        jobs.append(job)
        try:
            if not _all_ours(job.overrides):
                unread.check(_written(cfg), name, HYDRAS_OWN)
            job.score = work(job)
        except (JacanaError, OSError) as error:
            job.error = error
            if hydra_cfg.mode == RunMode.MULTIRUN:
                log.error("%s failed: %s", " ".join(job.overrides), error)
        except (HydraException, OmegaConfBaseException) as error:
            job.error = ConfigError(short(error))
        return job.score

    entry = hydra.main(version_base="1.3", config_path=str(conf.conf_directory()), config_name=name)(task)
    with _command_line(name, arguments):
        try:
            entry()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(short(error)) from None
        except (JacanaError, OSError):
            raise
        except Exception as error:
            if jobs:
                raise
            # before a job begins, all errors are mistakes in configurations and overrides
            raise ConfigError(short(error)) from error
    if len(jobs) > 1:
        log.info("%s", _ranking(jobs))
    for job in jobs:
        if job.error is not None:
            raise job.error
    return jobs


def _train(job: _Job) -> float:
    from ..train.run import train

    if found := _unused(job):
        log.warning("this aligner does not read %s", ", ".join(found))
    return train(plain(job.cfg), job.directory, _families(job.cfg), job.overrides, _write_line)


def _compare(job: _Job) -> None:
    from ..compare import compare, table
    from ..corpora import write_chunks

    config = plain(job.cfg)
    for item in job.overrides:
        if item.startswith("aligner="):
            raise ConfigError(f"{item}: a comparison takes a list, aligners=[{item.partition('=')[2]},...]")
        _check_compared(item)
    systems = [_system(item) for item in _listed(config["aligners"])]
    entries = [_entry(job, *system) for system in systems]  # report all mistakes before any work
    form = table.format_of(config["format"], config["output"])
    try:
        made = compare(config, entries, job.directory, _families(job.cfg))
    except KeyboardInterrupt:
        again = [item for item in job.overrides if not item.startswith("resume=")]
        folder = config["resume"] or job.directory
        command = shlex.join(["jacana-torch", "compare", *again, f"resume={folder}"])
        log.warning("interrupted: the results so far are kept; to resume: %s", command)
        raise
    text = table.FORMATS[form](made)
    if not config["output"]:
        return _write_line(text)
    output = Path(config["output"]).expanduser()
    output.parent.mkdir(parents=True, exist_ok=True)
    write_chunks([f"{text}\n"], output)


def _check_compared(override: str) -> None:
    if override.lstrip("+").startswith(("start=", "overwrite=")):
        raise ConfigError(
            f"{override}: a setting of train; a comparison names trained models in aligners=[DIR,...]"
        )


def _entry(job: _Job, name: str, settings: Sequence[str], label: str) -> Entry:
    """Compose the configuration of that system's training, or name the directory of a saved model."""
    from ..compare import Entry

    loader = GlobalHydra.instance().config_loader()
    known = loader.get_group_options("aligner")
    if name not in known:
        from ..model import persist

        if name not in persist.names() and not Path(name).expanduser().is_dir():
            raise ConfigError(
                f"aligners: there is no system {name!r}: choose one of {', '.join(known)}, the models "
                f"{', '.join(persist.names())}, or the directory of a model"
            )
        if settings:
            raise ConfigError(f"aligners: {name} is a saved model and takes no settings ({settings[0]})")
        return Entry(label, plain(job.cfg), saved=str(Path(name).expanduser()))
    for item in settings:
        _check_compared(item)
    own = {item.lstrip("+~").split("=", 1)[0] for item in settings}
    shared = [item for item in job.overrides if item.lstrip("+~").split("=", 1)[0] not in own]
    given = [*shared, f"aligner={name}", *settings]
    cfg = loader.load_configuration("compare", given, run_mode=RunMode.RUN)
    HydraConfig.instance().set_config(cfg)
    with open_dict(cfg):
        del cfg["hydra"]
    unread.check(_written(cfg), "compare", HYDRAS_OWN)
    return Entry(label, plain(cfg))


def _listed(aligners: Any) -> list[Any]:
    if not isinstance(aligners, list) or not aligners:
        raise ConfigError(f"aligners={aligners!r}: give a list of the systems to compare, aligners=[NAME,...]")
    if aligners == ["all"]:
        return sorted(GlobalHydra.instance().config_loader().get_group_options("aligner"))
    return aligners


def _system(item: Any) -> tuple[str, list[str], str]:
    """Split `name`, `name setting=value ...` or {label: either} into name, settings and label."""
    text, label = item, item
    if isinstance(item, dict) and len(item) == 1:
        ((label, text),) = item.items()
    try:
        name, *settings = shlex.split(text if isinstance(text, str) else "")
    except ValueError:
        raise ConfigError(
            f"aligners: {item!r} does not name a system: write NAME, or 'NAME setting=value'"
        ) from None
    if any("=" not in setting for setting in settings):
        raise ConfigError(f"aligners: {item!r} has a setting without =: write NAME=VALUE")
    return name, settings, str(label)


def _families(cfg: DictConfig) -> list[str]:
    """List the feature families that `drop` may name."""
    return sorted({*GlobalHydra.instance().config_loader().get_group_options("features"), *cfg.features})


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Return the configuration as dictionaries and lists, with references resolved."""
    try:
        return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {short(error)}") from None


def _all_ours(overrides: Sequence[str]) -> bool:
    """Whether all settings are known: the package's own files make them, and no override adds one."""
    held = HydraConfig.get()
    paths = {source.path.removeprefix("file://") for source in held.runtime.config_sources}
    ours = {"", "hydra.conf", "pkg://hydra.conf", "structured://", str(conf.conf_directory())}
    given = [*overrides, *held.overrides.hydra]
    return paths <= ours and all(re.match(r"[A-Za-z][^+~{=]*=[^{]*$", item) for item in given)


def _unused(job: _Job) -> list[str]:
    """List the overrides of the trainer and the symmetrizer that this aligner does not read."""
    text, found = OmegaConf.to_yaml(job.cfg, resolve=False), []
    if job.cfg.get("start"):  # then the start's configuration counts
        return []
    for item in job.overrides:
        name = item.lstrip("+~").partition("=")[0]
        referred = "symmetrize" if name.startswith("symmetrize") else name
        if (
            name.startswith(("trainer.", "symmetrize"))
            and f"${{{referred}}}" not in text
            and name not in ("trainer.threads", "trainer.checkpoint_seconds")
        ):
            found.append(name)
    return found


def _written(cfg: DictConfig) -> dict[str, Any]:
    """Return a job's configuration and Hydra's, with references as they were written."""
    hydras: Any = HydraConfig.instance().cfg
    own: dict[str, Any] = OmegaConf.to_container(cfg, resolve=False)  # type: ignore[assignment]
    return {**own, "hydra": None if hydras is None else OmegaConf.to_container(hydras.hydra, resolve=False)}


def short(error: Exception) -> str:
    """Return Hydra's message without its search path, but with the names to choose from."""
    text = str(error) or str(error.__cause__ or type(error).__name__)  # some leave the message to their cause
    message, _, options = text.split("\nConfig search path:")[0].strip().partition("\n\nAvailable options in ")
    names = options.split("\n\t")[1:]
    if not names and isinstance(error, MissingConfigException):
        names = list(conf.paths(str(error.missing_cfg_file or "").rpartition("/")[0] or "no group"))
    if names:
        return f"{message.removesuffix('.')}. There are {', '.join(names)}."
    return unread.explained(message)


def _ranking(jobs: Sequence[_Job]) -> str:
    """List the jobs of a sweep, the best first, by the overrides in which they differ."""
    shared = set.intersection(*(set(job.overrides) for job in jobs))
    ranked = sorted(jobs, key=lambda job: -1.0 if job.score is None else job.score, reverse=True)
    rows = []
    for job in ranked:
        figure = " failed" if job.score is None else f"{100 * job.score:7.2f}"
        rows.append(f"{figure}  {' '.join(item for item in job.overrides if item not in shared)}")
    return "\n".join(["     F1", *rows])


def _write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _command_line(command: str, arguments: Sequence[str]) -> Iterator[None]:
    """Set what Hydra reads: sys.argv, and the variable that lets errors through.

    JACANA_CONF gets the folder of --config-dir, so that its names are known everywhere.
    """
    # A shell expands ~ only at the beginning of a word, and Hydra's grammar does not allow it in a value.
    expanded = []
    for argument in arguments:
        expanded.append(argument.replace("=~/", f"={Path.home()}/", 1))
    # Hydra's parser takes no overrides after an option among them, so the option of sweeps goes first.
    expanded.sort(key=("-m", "--multirun").__contains__, reverse=True)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", type=Path)
    given = parser.parse_known_args(expanded)[0].config_dir
    folders = [given.resolve()] if given is not None and given.is_dir() else []
    changed = {
        "HYDRA_FULL_ERROR": "1",
        conf.VARIABLE: os.pathsep.join(map(str, [*folders, *conf.own_directories()])),
    }
    argv, before = sys.argv, dict(os.environ)
    sys.argv = [f"jacana-torch {command}", *expanded]
    os.environ |= changed
    try:
        yield
    finally:
        sys.argv = argv
        for name in changed:
            del os.environ[name]
            if name in before:
                os.environ[name] = before[name]


if __name__ == "__main__":
    from . import main as command_line

    sys.exit(command_line(["train", *sys.argv[1:]]))
