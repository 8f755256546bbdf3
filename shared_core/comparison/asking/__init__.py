"""The model is asked about every arrangement of the passages, and may fail on some."""
