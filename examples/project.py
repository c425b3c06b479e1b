"""Where the labels of one sentence belong in another.

python examples/project.py
"""

import jacana_torch as jt

SOURCE = "Regina Schueller works for La Repubblica in Italy."
TARGET = "In Italy, the newspaper La Repubblica employs the reporter Schueller."
SPANS = [(0, 16, "PERSON"), (27, 40, "ORG"), (44, 49, "PLACE"), (17, 49, "CLAIM")]


def main() -> None:
    (alignment,) = jt.load("standard").align([(SOURCE, TARGET)])
    for found in alignment.project(SPANS, characters=True):
        there = " ... ".join(TARGET[start:end] for start, end in found.parts) or "-"
        print(f"{found.label:7} {SOURCE[slice(*found.origin)]} -> {there}  ({found.confidence:.2f})")


if __name__ == "__main__":
    main()
