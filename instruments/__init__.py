"""Two small trained language models that read a prompt: one position-biased, one not."""
