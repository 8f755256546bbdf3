"""Readable assertions inside the contract kit."""

import pytest

pytest.register_assert_rewrite(f"{__package__}.checks", f"{__package__}.contract")
