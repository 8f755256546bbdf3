"""The two sides of the contract."""

import pytest

from .drivers import Adapter, LangChain, LlamaIndex


@pytest.fixture(params=[LangChain, LlamaIndex], ids=lambda side: str(side.__name__))
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """A driver of each framework in turn."""
    made: Adapter = request.param()
    return made
