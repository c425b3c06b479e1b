"""Cross-validation for scripts, as `jacana-torch train OVERRIDES` would do it, with the held-out alignments."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from hydra import compose, initialize_config_dir  # noqa: E402

from jacana_torch.cli.hydra import plain  # noqa: E402
from jacana_torch.model import persist  # noqa: E402
from jacana_torch.train import loop as experiment  # noqa: E402
from jacana_torch.train import run as training  # noqa: E402
from jacana_torch.train.cross_validation import cross_validate  # noqa: E402
from jacana_torch.train.side_by_side import workers_of  # noqa: E402
from jacana_torch.types import Alignment, Example  # noqa: E402
from jacana_torch.util.conf import conf_directory  # noqa: E402

FOLDS = 5  # if the overrides set none


@dataclass
class Validation:
    """The annotated examples of an experiment. Call it to cross-validate, optionally without some families."""

    overrides: Sequence[str]

    def __post_init__(self) -> None:
        with initialize_config_dir(version_base="1.3", config_dir=str(conf_directory())):
            config = plain(compose("train", list(self.overrides)))
        self.families = [name for name, family in config["features"].items() if family is not None]
        self.run = training.Run(training.checked(config, self.families), Path("."), list(self.overrides))
        data = training.annotated(self.run.model, self.run.load(), self.run.sidecar)
        self.examples: list[Example] = data.train

    @property
    def links(self) -> str:
        return self.run.cfg["links"]

    def __call__(self, drop: Iterable[str] = ()) -> dict[str, list[Alignment]]:
        """Held-out alignments of all examples for each direction and symmetrizer, the best first."""
        cfg = self.run.cfg
        without = replace(self.run, cfg={**cfg, "drop": [*cfg["drop"], *drop]})
        config = without.model_config["aligner"]
        scores, found = cross_validate(
            partial(persist.build, config),
            self.examples,
            cfg["cv"] or FOLDS,
            cfg["seed"],
            self.links,
            augment=self.run.augment,
            workers=workers_of(cfg),
        )
        logging.info("%s\n%s", " ".join(drop) or "all families", experiment.table(scores))
        return {name: found[name] for name in sorted(found, key=lambda name: -scores[name].f1)}
