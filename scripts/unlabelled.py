"""Print the pairs of corpora without links that a model may be trained on, as JSON lines.

    JACANA_DATA=CORPORA python scripts/unlabelled.py [FILE...] > pairs.jsonl
    jacana-torch align --model neural pairs.jsonl --to jsonl --output labelled.jsonl

Left out are the pairs whose ids `leaks/drop_from_*.txt` lists, those that share a sentence with --apart (corpora
that models are trained, tuned or scored on), those of equal sentences, and those of more than --longest tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from outcome import outcome
from shared_sentences import sentences

from jacana_torch import corpora
from jacana_torch.errors import ConfigError
from jacana_torch.types import Example

FILES = [f"extrinsic/{name}.jsonl" for name in ("msrp.train", "rte1.dev", "rte3.dev", "sts2012.SMTeuroparl.train")]
APART = [
    "msr/dev.jsonl",
    "edinburgh/train.jsonl",
    "extrinsic/sts2012.MSRpar.jsonl",
    "extrinsic/sts2012.OnWN.jsonl",
]
SHORTEST = 3  # tokens of a side


def kept(root: Path, files: Sequence[str], apart: Sequence[str], longest: int) -> Iterator[Example]:
    """Yield the pairs that may be trained on."""
    dropped = set[str]()
    for path in (root / "leaks").glob("drop_from_*.txt"):
        dropped.update(path.read_text(encoding="utf-8").split())
    if not dropped:
        raise ConfigError(f"{root / 'leaks'} has no drop_from_*.txt: set JACANA_DATA to the folder of the corpora")
    known = {
        text for name in apart for example in corpora.read(str(root / name)) for text in sentences(example.pair)
    }
    for name in files:
        for example in corpora.read(str(root / name)):
            pair = example.pair
            sizes = len(pair.source), len(pair.target)
            if pair.id in dropped or min(sizes) < SHORTEST or max(sizes) > longest:
                continue
            if pair.source.tokens != pair.target.tokens and known.isdisjoint(sentences(pair)):
                yield example


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", default=FILES, help="relative to JACANA_DATA")
    parser.add_argument("--apart", nargs="*", metavar="FILE", default=APART, help="relative to JACANA_DATA")
    parser.add_argument("--longest", type=int, default=60, help="tokens of a side (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    options = parser.parse_args(arguments)

    def script() -> None:
        root = Path(os.environ.get("JACANA_DATA", "."))
        found = list(kept(root, options.files, options.apart, options.longest))
        random.Random(options.seed).shuffle(found)
        for example in found:
            pair = example.pair
            row = {"id": pair.id, "source": pair.source.tokens, "target": pair.target.tokens}
            print(json.dumps(row, ensure_ascii=False))

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
