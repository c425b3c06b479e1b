"""Tree edit distance between dependency trees, and the alignment that it implies."""
