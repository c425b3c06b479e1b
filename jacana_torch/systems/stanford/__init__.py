"""The token-based aligner of the Stanford RTE system: one source token at most for each target token, and back."""
