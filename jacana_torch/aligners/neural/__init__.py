"""A neural network over the grid of two sentences, with or without a pretrained encoder."""
