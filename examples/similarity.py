"""How similar two sentences are, by their alignment; and a classifier on features of alignments.

python examples/similarity.py
"""

import jacana_torch as jt
from jacana_torch.tasks import features, scores

PAIRS = [
    ("The committee approved the new budget on Monday.", "On Monday the panel passed the new budget."),
    ("The committee approved the new budget on Monday.", "The committee did not approve the budget."),
    ("The committee approved the new budget on Monday.", "Heavy rain closed the road to the harbour."),
]


def main() -> None:
    print("similarity  coverage  negated once  unaligned in the second")
    for alignment in jt.load("standard").align(PAIRS):
        pair = alignment.pair
        found = features.features(pair, alignment)
        words = [pair.target.tokens[k] for k in features.sides_of(pair, alignment)[1].unaligned]
        similarity, coverage = scores.similarity(pair, alignment), scores.coverage(pair, alignment)
        print(f"{similarity:10.2f} {coverage:9.2f} {found['negated once']:13.0f}  {' '.join(words) or '-'}")


if __name__ == "__main__":
    main()
