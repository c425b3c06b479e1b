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
from functools import cache, partial
from itertools import chain
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
from hydra.experimental.callback import Callback
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from .. import cli
from ..errors import ConfigError, JacanaError, did_you_mean
from ..symmetrize import name_of
from ..util import conf
from . import unread

if TYPE_CHECKING:
    from ..compare import Entry
    from . import sweeps

log = logging.getLogger(__name__)
_write_line = partial(print, flush=True)

# The settings that Hydra reads itself.
HYDRAS_OWN = {
    "hydra.": {"env", *map(attrgetter("name"), fields(HydraConf))},
    "hydra.job.": {"env", *map(attrgetter("name"), fields(JobConf))},
}


@cache
def _search_own_folders() -> None:
    """Let Hydra find what is in the folders of JACANA_CONF, from now on."""

    class OwnFolders(SearchPathPlugin):
        def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
            for folder in conf.own_directories():
                search_path.append(provider=conf.VARIABLE, path=f"file://{folder.resolve()}")

    Plugins.instance().register(OwnFolders)


class Sweep(Callback):
    """Notes the folder of a sweep, which no other part of Hydra gives to the process that begins one."""

    folder: Path | None = None

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        from . import sweeps

        Sweep.folder = folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        sweeps.begin(folder)
        OmegaConf.save(config, folder / "multirun.yaml")  # resume=FOLDER reads it; not all sweepers write it


@dataclass
class _Job:
    """One run of a command line; a sweep has several. `error` keeps what Hydra would report in its own way."""

    cfg: DictConfig
    overrides: list[str]
    directory: Path
    score: float | None = None
    error: Exception | None = None
    written: list[str] | None = None  # what it writes to stdout, if that of this process is not the command's


def train(arguments: Sequence[str]) -> list[float]:
    """Train with Hydra's command line; return the score of each job: one, or several of a sweep.

    A mistake in a configuration is a ConfigError. An error of a job is raised as it is, after the other jobs of a
    sweep.
    """
    scores = []
    for item in arguments:
        if item.startswith("resume="):
            from . import resuming

            arguments = resuming.completed(arguments)
            break
    for job in _run("train", _train, arguments):
        if job.score is not None:
            scores.append(job.score)
    return scores


def compare(arguments: Sequence[str]) -> None:
    """Compare systems with Hydra's command line, and write the table to `output` or stdout."""
    if {"-m", "--multirun"} & set(arguments):
        raise ConfigError("a comparison cannot be a sweep: name all systems in aligners=[...]")
    _run("compare", _compare, arguments)


def _run(
    name: str, work: Callable[[_Job], float | None], arguments: Sequence[str]
) -> Sequence[_Job | sweeps.Outcome]:
    """Have Hydra compose the configuration of that name, and do the work of each job."""
    jobs: list[_Job] = []
    here = os.getpid()

    def task(cfg: DictConfig) -> float | None:
        hydra_cfg = HydraConfig.get()
        job = _Job(cfg, list(hydra_cfg.overrides.task), Path(hydra_cfg.runtime.output_dir))
        jobs.append(job)
        job.written = None if os.getpid() == here else []
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
        if hydra_cfg.mode == RunMode.MULTIRUN:
            from . import sweeps

            error_text = None if job.error is None else str(job.error)
            outcome = sweeps.Outcome(hydra_cfg.job.num, job.overrides, job.score, error_text, job.written)
            outcome.write(job.directory)
        return job.score

    Sweep.folder = None
    entry = hydra.main(version_base="1.3", config_path=str(conf.conf_directory()), config_name=name)(task)
    with _command_line(name, arguments):
        if os.environ[conf.VARIABLE]:
            _search_own_folders()
        try:
            entry()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(short(error)) from None
        except (JacanaError, OSError):
            raise
        except Exception as error:
            found = () if Sweep.folder is None else _report(Sweep.folder)
            for job in jobs:  # what a sweeper makes of a job that failed is a consequence
                if job.error is not None:
                    raise job.error from None
            if jobs:
                raise
            if found:
                raise JacanaError(f"a job of the sweep {Sweep.folder} was lost: {short(error)}") from error
            # before a job begins, all errors are mistakes in configurations and overrides
            raise ConfigError(short(error)) from error
    found = () if Sweep.folder is None else _report(Sweep.folder)
    for job in jobs:
        if job.error is not None:
            raise job.error
    return jobs if jobs or Sweep.folder is None else _elsewhere(found)


def _elsewhere(found: Sequence[sweeps.Outcome]) -> Sequence[sweeps.Outcome]:
    """Do for jobs in other processes what they would have done in this one: write to stdout, raise errors."""
    for line in chain.from_iterable(outcome.written or () for outcome in found):
        _write_line(line)
    for outcome in found:
        if outcome.error is not None:
            raise JacanaError(f"{' '.join(outcome.overrides)}: {outcome.error}")
    return found


def _report(folder: Path) -> list[sweeps.Outcome]:
    """Write and log the table of a sweep."""
    from . import sweeps

    found = sweeps.outcomes(folder)
    if len(found) > 1:
        log.info("%s", sweeps.ranking(found))
        sweeps.write_table(folder, found)
        sweeps.show_columns(folder, found)
        log.info("%s", folder / sweeps.TABLE)
    return found


def _train(job: _Job) -> float:
    from ..train.run import train

    text, unread_ones = OmegaConf.to_yaml(job.cfg, resolve=False), []
    for item in job.overrides:
        name = item.lstrip("+~").partition("=")[0]
        referred = "symmetrize" if name.startswith("symmetrize") else name
        if (
            name.startswith(("trainer.", "symmetrize"))
            and f"${{{referred}}}" not in text
            and name not in ("trainer.threads", "trainer.checkpoint_seconds")
        ):
            unread_ones.append(name)
    if unread_ones and not job.cfg.get("start"):  # else the start's configuration counts
        log.warning("this aligner does not read %s", ", ".join(unread_ones))
    config = plain(job.cfg)
    config["logger"]["sweep"] = HydraConfig.get().mode == RunMode.MULTIRUN
    announce = _write_line if job.written is None else job.written.append
    return train(config, job.directory, _families(job.cfg), job.overrides, announce)


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
        _write_line(text)
        return
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
    ours = {"", "hydra.conf", "pkg://hydra.conf", "structured://", str(conf.conf_directory())}
    for source in held.runtime.config_sources:
        if source.path.removeprefix("file://") not in ours:
            return False
    for item in (*overrides, *held.overrides.hydra):
        if not re.match(r"[A-Za-z][^+~{=]*=[^{]*$", item):
            return False
    return True


def _written(cfg: DictConfig) -> dict[str, Any]:
    """Return a job's configuration and Hydra's, with references as they were written."""
    hydras: Any = HydraConfig.instance().cfg
    own: dict[str, Any] = OmegaConf.to_container(cfg, resolve=False)  # type: ignore[assignment]
    return {**own, "hydra": None if hydras is None else OmegaConf.to_container(hydras.hydra, resolve=False)}


def short(error: Exception) -> str:
    """Return Hydra's message without its search path, but with the names to choose from."""
    text = str(error) or str(error.__cause__ or type(error).__name__)  # some leave the message to their cause
    message, _, options = text.split("\nConfig search path:")[0].strip().partition("\n\nAvailable options in ")
    if isinstance(error, MissingConfigException):
        from . import sweeps

        if needed := sweeps.lacking(str(error.missing_cfg_file)):
            return needed
    names = options.split("\n\t")[1:]
    if not names and isinstance(error, MissingConfigException):
        names = list(conf.paths(str(error.missing_cfg_file or "").rpartition("/")[0] or "no group"))
    if names:
        missing = re.search(r"Could not find '[^']*?([^/']*)'", message)
        return f"{message.removesuffix('.')}{did_you_mean(missing[1] if missing else '', names)}"
    return unread.explained(message)


@contextmanager
def _command_line(command: str, arguments: Sequence[str]) -> Iterator[None]:
    """Set what Hydra reads: sys.argv, and the variable that lets errors through.

    JACANA_CONF gets the folder of --config-dir, so that its names are known everywhere.
    """
    # A shell expands ~ only at the beginning of a word, and Hydra's grammar does not allow it in a value.
    expanded = []
    for argument in arguments:
        expanded.append(argument.replace("=~/", f"={Path.home()}/", 1))
        if re.fullmatch(r"symmetrize=[\w,-]+", argument):  # aliases, and hyphens as other commands take them
            expanded[-1] = f"symmetrize={','.join(map(name_of, argument[11:].split(',')))}"
    if cli.quiet:
        expanded.append("hydra.job_logging.root.level=WARNING")
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
