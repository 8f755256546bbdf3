"""Writing an index into a folder, and reading it back."""
