"""Sultan et al.'s aligner (2014): a pipeline that links words which are alike and stand in like contexts."""
