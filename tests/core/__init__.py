"""The framework-free core."""
