"""The only Hydra entry point: `python -m jacana_torch.cli.hydra ...` is `jacana-torch train ...`.

It composes conf/ and the overrides of the command line, and passes plain data to `train.run.train`, once per job.
A sweep maximises the score of its jobs. `jacana-torch compare ...` composes one configuration per system.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from ..errors import ConfigError, JacanaError
from ..util import conf
from ..util.conf import conf_directory

log = logging.getLogger(__name__)


class _OwnFolders(SearchPathPlugin):
    """Lets Hydra find what is in the folders of JACANA_CONF."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in conf.own_directories():
            search_path.append(provider=conf.VARIABLE, path=f"file://{folder.resolve()}")


Plugins.instance().register(_OwnFolders)


def train(arguments: Sequence[str]) -> list[float]:
    """Train with Hydra's command line; return the score of each job: one, or several of a sweep.

    A mistake in a configuration is a ConfigError. An error of a job is raised as it is, after the other jobs of a
    sweep.
    """
    jobs: list[_Job] = []

    def task(cfg: DictConfig) -> float | None:
        jobs.append(_Job(cfg))
        return jobs[-1].run()

    _enter("train", task, arguments, lambda: bool(jobs))
    if len(jobs) > 1:
        log.info("%s", _comparison(jobs))
    for job in jobs:
        if job.error is not None:
            raise job.error
    return [job.score for job in jobs if job.score is not None]


def _enter(
    name: str, task: Callable[[DictConfig], Any], arguments: Sequence[str], begun: Callable[[], bool]
) -> None:
    """Have Hydra call `task` with the configuration of that name."""
    entry = hydra.main(version_base="1.3", config_path=str(conf_directory()), config_name=name)(task)
    with _command_line(name, arguments):
        try:
            entry()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(short(error)) from None
        except (JacanaError, OSError):
            raise
        except Exception as error:
            if begun():
                raise
            # before a job begins, all errors are mistakes in configurations and overrides
            raise ConfigError(short(error)) from error


def compare(arguments: Sequence[str]) -> None:
    """Compare systems with Hydra's command line, and write the table to `output` or stdout."""
    comparisons: list[_Comparison] = []

    def task(cfg: DictConfig) -> None:
        comparisons.append(_Comparison(cfg))
        comparisons[-1].run()

    if {"-m", "--multirun"} & set(arguments):
        raise ConfigError("a comparison cannot be a sweep: name all systems in aligners=[...]")
    _enter("compare", task, arguments, lambda: bool(comparisons))
    for comparison in comparisons:
        if comparison.error is not None:
            raise comparison.error


class _Job:
    """One run of a command line; a sweep has several."""

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg = cfg
        self.overrides = list(HydraConfig.get().overrides.task)
        self.score: float | None = None
        self.error: Exception | None = None

    def run(self) -> float | None:
        """Return the job's score, None if it failed: Hydra would report the error itself, and end a sweep."""
        try:
            self.score = self._train()
        except (JacanaError, OSError) as error:
            self.error = error
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("%s failed: %s", " ".join(self.overrides), error)
        except (HydraException, OmegaConfBaseException) as error:
            self.error = ConfigError(short(error))
        return self.score

    def _train(self) -> float:
        from ..train.run import train

        directory = Path(HydraConfig.get().runtime.output_dir)
        return train(plain(self.cfg), directory, _families(self.cfg), self.overrides, _write_line)


class _Comparison:
    """One table; `error` keeps what Hydra would report in its own way."""

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg = cfg
        self.overrides = list(HydraConfig.get().overrides.task)
        self.directory = Path(HydraConfig.get().runtime.output_dir)
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._compare()
        except (JacanaError, OSError) as error:
            self.error = error
        except (HydraException, OmegaConfBaseException) as error:
            self.error = ConfigError(short(error))

    def _compare(self) -> None:
        config = plain(self.cfg)
        for item in self.overrides:
            if item.startswith("aligner="):
                raise ConfigError(f"{item}: a comparison takes a list, aligners=[{item.partition('=')[2]},...]")
        systems = [_system(item) for item in _listed(config["aligners"])]
        composed = [self._composed(*system) for system in systems]  # report all mistakes before any work

        from ..compare import compare, table

        form = table.format_of(config["format"], config["output"])
        rows: list[Any] = []
        try:
            made = compare(
                config, composed, self.directory, _families(self.cfg), lambda done: rows.append(done[-1])
            )
        except KeyboardInterrupt:
            again = [item for item in self.overrides if not item.startswith("resume=")]
            folder = config["resume"] or self.directory
            command = shlex.join(["jacana-torch", "compare", *again, f"resume={folder}"])
            log.warning("interrupted: the results so far are kept; to resume: %s", command)
            raise
        text = table.FORMATS[form](made)
        if config["output"]:
            _write_file(Path(config["output"]).expanduser(), f"{text}\n")
        else:
            _write_line(text)

    def _composed(self, name: str, settings: Sequence[str], label: str) -> Any:
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
            return Entry(label, plain(self.cfg), saved=str(Path(name).expanduser()))
        own = {item.lstrip("+~").split("=", 1)[0] for item in settings}
        shared = [item for item in self.overrides if item.lstrip("+~").split("=", 1)[0] not in own]
        given = [*shared, f"aligner={name}", *settings]
        cfg = loader.load_configuration("compare", given, run_mode=RunMode.RUN)
        HydraConfig.instance().set_config(cfg)
        with open_dict(cfg):
            del cfg["hydra"]
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


def short(error: Exception) -> str:
    """Return Hydra's message without its search path, but with the names to choose from."""
    said = str(error) or str(
        error.__cause__ or type(error).__name__
    )  # some errors leave the message to their cause
    message, _, options = said.split("\nConfig search path:")[0].strip().partition("\n\nAvailable options in ")
    group = str(getattr(error, "missing_cfg_file", None) or "").rpartition("/")[0]
    names = options.split("\n\t")[1:]
    if group and not names and (conf_directory() / group).is_dir():
        names = sorted(path.stem for path in (conf_directory() / group).glob("*.yaml"))
    return f"{message.removesuffix('.')}. There are {', '.join(names)}." if names else message


def _comparison(jobs: Sequence[_Job]) -> str:
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


def _write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


@contextmanager
def _command_line(command: str, arguments: Sequence[str]) -> Iterator[None]:
    """Set up what Hydra reads: sys.argv, and the variable that lets errors through."""
    argv, environment = sys.argv, dict(os.environ)
    # Its parser takes no overrides after an option among them, so the option of sweeps goes first.
    first = sorted(arguments, key=lambda argument: argument not in ("-m", "--multirun"))
    # A shell expands ~ only at the beginning of a word, and Hydra's grammar does not allow it in a value.
    expanded = [argument.replace("=~/", f"={Path.home()}/", 1) for argument in first]
    sys.argv = [f"jacana-torch {command}", *expanded]
    os.environ |= {"HYDRA_FULL_ERROR": "1", conf.VARIABLE: _own_folders(expanded)}
    try:
        yield
    finally:
        sys.argv = argv
        for name in ("HYDRA_FULL_ERROR", conf.VARIABLE):
            os.environ.pop(name)
            if name in environment:
                os.environ[name] = environment[name]


def _own_folders(arguments: Sequence[str]) -> str:
    """Return JACANA_CONF with the folder of --config-dir: its names should be known everywhere."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", type=Path)
    given = parser.parse_known_args(arguments)[0].config_dir
    folders = [given.resolve()] if given is not None and given.is_dir() else []
    return os.pathsep.join(map(str, [*folders, *conf.own_directories()]))


if __name__ == "__main__":
    from . import main as command_line

    sys.exit(command_line(["train", *sys.argv[1:]]))
