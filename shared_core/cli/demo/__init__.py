"""``posrag demo``: ask the PyTorch API a question and see why its passages are placed so."""
