"""``posrag probe``: measure a model's position sensitivity."""
