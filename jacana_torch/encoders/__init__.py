"""Pretrained encoders: open a local checkpoint, read sentence pairs with it, and take the vectors of its layers.

Nothing is imported or loaded before its first use. `transformers` comes with the extra `neural`.
"""
