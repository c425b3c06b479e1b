"""One module a feature family; `featureset` batches them."""
