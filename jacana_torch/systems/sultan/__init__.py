"""The aligner of Sultan et al. (2014): a pipeline that links similar words in similar contexts."""
