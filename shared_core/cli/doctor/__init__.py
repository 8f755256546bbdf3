"""``posrag doctor``: what is installed, and whether what was saved can be read."""
