"""The ``posrag`` command."""
