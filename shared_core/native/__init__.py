"""The inner loops of a search in C, and how they are called."""
