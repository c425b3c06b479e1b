"""`jacana-torch train`: train a model, by Hydra."""

from __future__ import annotations

import argparse
import os

from . import ending_on_sigterm

ABOUT = "Train a model."
EXAMPLES = """
Everything after `train` goes to Hydra: overrides such as features.pos=null, --multirun, --cfg job,
--hydra-help, ... The last line of stdout is the model's directory. Folders of your own configuration:
--config-dir, or JACANA_CONF.

A run keeps a checkpoint. If it was killed, or its machine lost power, resume=FOLDER goes on from there: with the
same settings, which need not be repeated, and to the same weights. Ctrl-C also keeps the best weights so far, and
exits with 130.

start=MODEL fine-tunes a trained model on other pairs; resume= continues an interrupted run. An existing model is
replaced with overwrite=true alone.

`torchrun --nproc-per-node N -m jacana_torch train ...` trains one model by several processes or devices.

examples:
  jacana-torch train data.train=$PWD/my.jsonl data.dev=$PWD/my-dev.jsonl output=my-model
  jacana-torch train start=standard data.train=$PWD/my.jsonl output=my-model     fine-tune
  jacana-torch train experiment=msr data.root=~/corpora cv=5          cross-validate
  jacana-torch train -m experiment=msr cv=5 +sweep=l2                 one run for each value; see conf/sweep
  jacana-torch train experiment=msr 'features=[string,pos]'           choose feature families
  jacana-torch train resume=runs/msr/...                              resume an interrupted run or sweep
  jacana-torch train --cfg job                                        show the whole configuration and stop"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="Hydra overrides and options")


def run(arguments: argparse.Namespace) -> int:
    with ending_on_sigterm():
        if os.environ.get("WORLD_SIZE", "1") != "1" and "MASTER_ADDR" in os.environ:  # torchrun sets these
            from . import together

            return together.train(arguments.overrides)
        from . import hydra

        hydra.train(arguments.overrides)
    return 0
