"""How much of a reference two answers express, and which words are missing or have no support.

python examples/coverage.py
"""

import jacana_torch as jt

REFERENCE = "Plants take in carbon dioxide and water. In sunlight, they make sugar and release oxygen."
ANSWERS = [
    "With sunlight, plants turn water and carbon dioxide into sugar, and give off oxygen.",
    "Plants need water and soil. They release nitrogen at night.",
]


def main() -> None:
    for answer in ANSWERS:
        found = jt.coverage(REFERENCE, answer, "standard")
        print(f"coverage {found.value:.2f}, support {found.support:.2f}")
        print("  not covered:", ", ".join(word.text for word in found.uncovered) or "-")
        print("  not supported:", ", ".join(word.text for word in found.unsupported) or "-")
    both = jt.corpus_coverage([(REFERENCE, answer) for answer in ANSWERS], "standard")
    low, high = both.interval
    print(f"mean {both.value:.2f} ({low:.2f}-{high:.2f})")


if __name__ == "__main__":
    main()
