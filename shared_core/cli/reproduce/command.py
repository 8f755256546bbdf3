"""The ``reproduce`` subcommand: one experiment a paper."""

from __future__ import annotations

from shared_core.cli.options import Subparsers
from shared_core.cli.reproduce import caus_command, good_positions_command, positional_bias_command


def add_parser(subcommands: Subparsers, purpose: str) -> None:
    """Add ``reproduce`` and its experiments."""
    parser = subcommands.add_parser(
        "reproduce",
        help=purpose,
        description="Run the experiments of a paper, and show its figures next to yours.",
    )
    experiments = parser.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    caus_command.add_parser(experiments)
    positional_bias_command.add_parser(experiments)
    good_positions_command.add_parser(experiments)
