"""Write the checksums of their training pairs into the signatures of shipped models, without training them again.

    JACANA_DATA=CORPORA python scripts/training_checksums.py            # all shipped models
    JACANA_DATA=CORPORA python scripts/training_checksums.py --check    # only compare; exit code 1 if one differs

The corpora are those of the experiments that trained each model. Training writes the checksums by itself; this is
for models that were trained before it did.
"""

from __future__ import annotations

import argparse
import json
import sys

from hydra import compose, initialize_config_dir
from outcome import outcome

from jacana_torch.cli.hydra import plain
from jacana_torch.model import persist
from jacana_torch.train import data
from jacana_torch.train.run import CHECKSUM
from jacana_torch.util import conf

# Experiments that trained each model.
TRAINED_BY = {
    "core": ["shipped_core"],
    "standard": ["shipped_standard"],
    "syntactic": ["shipped_syntactic"],
}


def pairs_of(experiment: str) -> frozenset[int]:
    """The checksums of the pairs that an experiment trains on."""
    with initialize_config_dir(str(conf.conf_directory()), version_base="1.3"):
        cfg = plain(compose("train", [f"experiment={experiment}"]))
    return frozenset(map(CHECKSUM, data.load({**cfg["data"], "dev": []}, cfg["links"]).train))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check, different = parser.parse_args().check, 0
    for model in persist.names():
        if model not in TRAINED_BY:
            print(f"{model:12}{len(persist.trained_on(model)):6} distinct pairs  as its training wrote")
            continue
        directory = persist.locate(model)
        seen = frozenset().union(*map(pairs_of, TRAINED_BY[model]))
        same = persist.trained_on(directory) == seen
        different += not same
        print(f"{model:12}{len(seen):6} distinct pairs  {'as written' if same else 'differs'}")
        if not (same or check):
            signature = {**persist.read_signature(directory), **persist.signed(seen)}
            path = directory / persist.SIGNATURE
            path.write_text(json.dumps(signature, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if check and different:
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(outcome(main))
