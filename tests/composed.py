"""The configs of conf/ as Hydra composes them, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import open_dict

from jacana_torch.cli.hydra import plain
from jacana_torch.util.conf import conf_directory

CONF = Path(conf_directory())


def composed(*overrides: str) -> dict[str, Any]:
    """Compose a training config into plain data, with every reference resolved."""
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        cfg = compose("train", list(overrides), return_hydra_config=True)
    HydraConfig.instance().set_config(cfg)
    try:
        with open_dict(cfg):
            del cfg["hydra"]
        return plain(cfg)
    finally:
        HydraConfig.instance().cfg = None


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))
