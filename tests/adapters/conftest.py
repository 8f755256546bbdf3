"""The two sides of the contract."""

import pytest

from .drivers import Adapter, LangChain, LlamaIndex


@pytest.fixture(params=[0, 1], ids=["LangChain", "LlamaIndex"])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """A driver of each framework in turn, of the module's own `DRIVERS` if it has some."""
    drivers = getattr(request.module, "DRIVERS", (LangChain, LlamaIndex))
    made: Adapter = drivers[request.param]()
    return made
