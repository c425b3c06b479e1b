"""Print the ids of pairs that share a sentence with other corpora, for `data.drop_ids`.

    python scripts/shared_sentences.py CORPUS OTHER... > ids.txt

Drop these pairs from the training data before you score a model on the other corpora. Sentences are the same if
their letters and digits are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from outcome import outcome

from jacana_torch import corpora
from jacana_torch.types import SentencePair


def sentences(pair: SentencePair) -> Iterator[str]:
    for side in (pair.source, pair.target):
        yield re.sub(r"[\W_]", "", "".join(side.tokens).lower())


def main(corpus: str, *others: str) -> None:
    known = {text for other in others for example in corpora.read(other) for text in sentences(example.pair)}
    for example in corpora.read(corpus):
        if not known.isdisjoint(sentences(example.pair)):
            print(example.pair.id)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(outcome(lambda: main(*sys.argv[1:])))
