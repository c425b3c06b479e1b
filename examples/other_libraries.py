"""Alignments in the values of NLTK, spaCy and ERRANT. Needs spaCy (extra `spacy`).

python examples/other_libraries.py
"""

import spacy

import jacana_torch as jt
import jacana_torch.interop.spacy  # the component
from jacana_torch.interop import nltk

OLD, NEW = "The committee approved the new budget.", "The panel approved a big new budget."


def main() -> None:
    (alignment,) = jt.load("standard").align([(OLD, NEW)])
    aligned = nltk.to_aligned_sent(alignment)
    print("NLTK  ", aligned.alignment, nltk.from_aligned_sent(aligned) == alignment)

    nlp = spacy.blank("en")
    nlp.add_pipe("jacana", config={"model": "standard"})
    doc = nlp.make_doc(OLD)
    doc._.reference = NEW
    print("spaCy ", nlp(doc)._.alignment)

    print("ERRANT")
    print(jt.diff(OLD, NEW, "standard").to_m2().strip())


if __name__ == "__main__":
    main()
