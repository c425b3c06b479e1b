"""Alignments in the values of other libraries: NLTK and spaCy, each imported only by its module."""
