"""Fixtures that several modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared_core.native import kernels


@pytest.fixture(scope="module", params=["compiled", "numpy"])
def either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Search with the compiled kernels, and then with what stands in for them."""
    compiled = request.param == "compiled"
    if compiled and not kernels.built:
        pytest.skip("the kernels are not built here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "built", compiled)
        yield
