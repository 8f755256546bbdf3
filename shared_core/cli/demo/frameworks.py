"""How the frameworks that are installed take part in the demo."""

from __future__ import annotations

from importlib.metadata import entry_points

from shared_core import MissingExtraError
from shared_core.demo import GROUP, DemoTask, FrameworkOrder

TITLES = {"langchain": "LangChain", "llamaindex": "LlamaIndex"}


def framework_orders(task: DemoTask) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Ask every registered framework.

    Returns
    -------
    orders
        title -> ids in the order of the prompt.
    absent
        title -> what is missing, for the frameworks that are not installed.
    """
    orders: dict[str, list[str]] = {}
    absent: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        title = TITLES.get(point.name, point.name)
        try:
            order: FrameworkOrder = point.load()
        except MissingExtraError as error:
            absent[title] = str(error)
            continue
        except ImportError as error:
            absent[title] = f"{error}; run: pip install 'posrag[{point.name}]'"
            continue
        orders[title] = order(task)
    return orders, absent
