"""The only Hydra entry point: `jacana-torch train ...` and `python -m jacana_torch.run ...` are the same thing.

Composes conf/ and the command line's overrides, and hands plain data to `training.train`, once a job. The score of
a job is what sweeps maximise.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import ConfigError, JacanaError

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Run with Hydra's command line (sys.argv's, if None): the score of each job, one unless it is a sweep.

    What is wrong with a config is a ConfigError, and what a job raises comes through as it is; the other jobs of
    a sweep are done first.
    """
    jobs: list[_Job] = []

    def task(cfg: DictConfig) -> float | None:
        jobs.append(_Job(cfg))
        return jobs[-1].run()

    entry = hydra.main(version_base="1.3", config_path=str(conf_directory()), config_name="train")(task)
    with _command_line(sys.argv[1:] if arguments is None else arguments):
        try:
            entry()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(short(error)) from None
        except (JacanaError, OSError):
            raise
        except Exception as error:
            if jobs:
                raise
            # before a job has begun it is all Hydra's reading of configs and overrides
            raise ConfigError(short(error)) from error
    if len(jobs) > 1:
        log.info("%s", _comparison(jobs))
    for job in jobs:
        if job.error is not None:
            raise job.error
    return [job.score for job in jobs if job.score is not None]


class _Job:
    """One run of a command line; a sweep has several."""

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg = cfg
        self.overrides = list(HydraConfig.get().overrides.task)
        self.score: float | None = None
        self.error: Exception | None = None

    def run(self) -> float | None:
        """The job's score, None where it failed: Hydra would tell an error in its own way, and end a sweep."""
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
        from .training import train

        families = {*GlobalHydra.instance().config_loader().get_group_options("features"), *self.cfg.features}
        directory = Path(HydraConfig.get().runtime.output_dir)
        return train(plain(self.cfg), directory, sorted(families), self.overrides, _write_line)


def conf_directory() -> Path:
    """conf/ stands beside the package in a checkout and inside it once installed."""
    inside, beside = Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf"
    return inside if inside.is_dir() else beside


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The config as dictionaries and lists, every reference resolved."""
    try:
        return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {short(error)}") from None


def short(error: Exception) -> str:
    """Hydra's message without the places where it looked, and with what there is to choose from."""
    message = str(error).split("\nConfig search path:")[0].strip()
    group = str(getattr(error, "missing_cfg_file", None) or "").rpartition("/")[0]
    if group and "Available options" not in message and (conf_directory() / group).is_dir():
        names = sorted(path.stem for path in (conf_directory() / group).glob("*.yaml"))
        message += f" There are {', '.join(names)}."
    return message


def _comparison(jobs: Sequence[_Job]) -> str:
    """The jobs of a sweep, the best first, by what tells them apart."""
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
def _command_line(arguments: Sequence[str]) -> Iterator[None]:
    """Hydra reads sys.argv, and prints errors itself unless told to let them through."""
    argv, full = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # Its parser takes no more overrides after an option among them, so the one that sweeps need goes first.
    first = sorted(arguments, key=lambda argument: argument not in ("-m", "--multirun"))
    # A shell expands ~ at the beginning of a word alone, and Hydra's grammar has no place for it in a value.
    expanded = [argument.replace("=~/", f"={Path.home()}/", 1) for argument in first]
    sys.argv, os.environ["HYDRA_FULL_ERROR"] = ["jacana-torch train", *expanded], "1"
    try:
        yield
    finally:
        sys.argv = argv
        if full is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full


if __name__ == "__main__":
    from .cli import main as command_line

    sys.exit(command_line(["train", *sys.argv[1:]]))
