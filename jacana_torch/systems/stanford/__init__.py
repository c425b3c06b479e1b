"""The token-based aligner of the Stanford RTE system: injective maps scored by features of links and of edges."""
