"""MANLI: phrases aligned by edits. Pairs in, the best-scoring set of edits out, by annealing or exactly."""
