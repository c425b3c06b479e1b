"""Pretrained encoders: a checkpoint and words in, the vectors that its layers give to these words out.

Nothing is imported or loaded before it is asked for; `transformers` is the extra `neural`.
"""
