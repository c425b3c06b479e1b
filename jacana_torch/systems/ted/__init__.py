"""Alignment by tree edit distance between dependency trees."""
