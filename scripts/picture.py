"""Draw an alignment as SVG: python scripts/picture.py "source" "target" [--model NAME] > picture.svg"""

from __future__ import annotations

import argparse
import sys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--model", default="standard")
    arguments = parser.parse_args()
    import jacana_torch as jt
    from jacana_torch.view import kinds, svg

    (alignment,) = jt.load(arguments.model).align([(arguments.source, arguments.target)])
    source, target = alignment.pair.source.tokens, alignment.pair.target.tokens
    sys.stdout.write(svg(source, target, kinds(alignment), alignment.confidence, background="#ffffff"))


if __name__ == "__main__":
    main()
