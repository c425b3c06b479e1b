"""A network over the grid of two sentences, with or without a pretrained encoder that learns along."""
