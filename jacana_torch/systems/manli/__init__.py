"""MANLI: alignment as the best-scoring set of phrase edits, found by annealing or exactly."""
