"""MSR's dev pairs with the layers that come beside them, for tests that compare figures with the papers'."""

from __future__ import annotations

from pathlib import Path

from composed import composed

from jacana_torch.model import persist
from jacana_torch.train import data as dataset
from jacana_torch.types import Example


def examples(root: Path) -> list[Example]:
    config = composed("data=msr", "annotate=given")
    layers = {**config["annotate"], "path": str(root / config["data"]["sidecar"][0])}
    data = {**config["data"], "root": str(root)}
    return dataset.load(
        data, "sure", [layers["path"]], lambda path: persist.build({**layers, "path": str(path)})
    ).train
