"""Alignment systems of the literature, behind the protocols of `aligners.base`."""
