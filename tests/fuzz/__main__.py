"""Mutate documents of every format and sidecar, read them, and print what became of them.

    python -m tests.fuzz                                   # 500 inputs each, as in the tests
    JACANA_FUZZ=10000 python -m tests.fuzz                 # 10,000 each
    python -m tests.fuzz --only jsonl mst                  # some targets
    python -m tests.fuzz --only jsonl --input 1234         # print that input, and check it alone

The exit code is 1 if a property does not hold. Such inputs are reported by their numbers. Keep an input in
`fuzz_found.py` when its fault is mended.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import fuzz_checks

MOST_SHOWN = 5  # failures of a target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = fuzz_checks.targets()
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=known, help=f"some of: {', '.join(known)}")
    parser.add_argument("--input", type=int, metavar="N", help="one input, by its number")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="number of the first input (0)")
    options = parser.parse_args()
    names = options.only or list(known)
    inputs = int(os.environ.get("JACANA_FUZZ", "500"))
    numbers = range(options.start, options.start + inputs) if options.input is None else [options.input]
    tallies, begun = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            target = known[name]
            tallies[name] = fuzz_checks.run(target, numbers, Path(folder))
            if options.input is not None:
                print(repr(fuzz_checks.input_of(target, options.input)))
            for number, kind, message in tallies[name].failures[:MOST_SHOWN]:
                print(f"{name} {number}: {kind}: {message}\n", file=sys.stderr)
    print(fuzz_checks.table(tallies))
    total = sum(tally.inputs for tally in tallies.values())
    failures = sum(len(tally.failures) for tally in tallies.values())
    print(f"\n{total:,} inputs in {time.monotonic() - begun:.0f} s; {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
