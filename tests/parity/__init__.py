"""Both adapters against the core: the same input gives the same order."""
