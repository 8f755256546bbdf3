"""What two papers print in the tables that are reproduced, in percent."""

from __future__ import annotations

from typing import TypeAlias

PaperRows: TypeAlias = dict[str, tuple[float, ...]]
"""Name of a row -> its figures, column by column."""

SLOTS: PaperRows = {
    "None": (80.80, 79.00, 79.20, 79.93, 82.73),
    "Position 3": (75.13, 73.80, float("nan"), 72.40, 76.73),
    "Position 5": (72.87, 71.53, 71.60, 73.20, float("nan")),
}
"""PositionalBias, Table 1: slots 1 to 5, of Qwen 2.5 7B."""

STRATEGIES = {
    "sequential": "Sequential",
    "inverse": "Inverse",
    "shuffle": "Shuffle",
    "max_relevance": "MaxRel",
    "min_distraction": "MinDist",
}
"""Our names of the columns of the next two tables, and theirs."""

BY_MODEL: PaperRows = {
    "Q7B": (68.53, 71.33, 71.00, 71.73, 70.80),
    "L3B": (65.80, 68.00, 66.73, 67.33, 66.20),
    "L8B": (69.13, 69.60, 69.87, 69.60, 69.27),
    "L70B": (74.33, 74.40, 74.60, 74.33, 75.47),
}
"""PositionalBias, Table 2: BGE+RR, k = 5."""

BY_RETRIEVER: PaperRows = {
    "BGE": (68.00, 69.00, 68.40, 68.80, 67.47),
    "BGE+RR": (68.53, 71.33, 71.00, 71.73, 70.80),
    "BM25": (51.20, 51.27, 51.00, 51.00, 51.00),
    "BM25+RR": (59.27, 60.20, 59.80, 59.80, 58.80),
}
"""PositionalBias, Table 3: Qwen 2.5 7B, k = 5."""

DEPTHS = (5, 10, 15, 20, 25)

WITH_HARD: PaperRows = {
    "BGE+RR": (52.73, 65.53, 72.33, 74.53, 76.07),
    "BGE": (49.80, 62.80, 68.80, 73.93, 76.07),
    "BM25+RR": (49.27, 59.60, 63.93, 65.80, 66.53),
    "BM25": (37.13, 50.53, 58.20, 62.87, 66.53),
}
"""PositionalBias, Table 4: averages over the benchmarks, at `DEPTHS`."""

MODELS = ("Vicuna-7b", "Llama-3.1-8b", "Qwen2.5-7b", "Qwen2.5-7b-ins")
"""GoodPositions: its models; of each HotpotQA, Musique and 2WikiMHQA in Tables 2 and 3."""

METHODS: dict[str, PaperRows] = {
    "Unordered": {
        "Vanilla": (39.2, 23.8, 45.2, 29.2, 19.2, 35.0, 37.6, 29.8, 39.0, 46.8, 45.8, 48.0),
        "RankGPT": (40.1, 22.0, 46.0, 27.8, 19.6, 33.4, 37.2, 34.3, 40.2, 46.6, 51.0, 52.6),
        "AttentionSort": (38.6, 29.1, 48.4, 29.6, 21.6, 33.6, 39.8, 37.5, 40.0, 46.2, 49.5, 48.4),
        "ICR": (42.1, 30.5, 49.8, 29.8, 23.7, 36.8, 37.9, 38.5, 38.4, 46.9, 51.1, 52.2),
        "SELFELICIT": (37.8, 25.7, 46.2, 30.8, 22.9, 35.9, 39.3, 29.8, 43.0, 41.7, 31.1, 38.2),
        "Our": (41.4, 31.0, 50.6, 30.2, 24.5, 37.2, 40.2, 39.3, 43.4, 48.2, 51.3, 53.6),
    },
    "Ordered": {
        "Vanilla": (40.0, 31.2, 48.2, 30.2, 23.8, 35.8, 40.8, 34.2, 41.0, 47.2, 50.0, 52.6),
        "RankGPT": (40.3, 28.0, 50.2, 28.4, 21.0, 34.2, 39.1, 35.8, 41.6, 49.3, 51.6, 53.0),
        "AttentionSort": (40.4, 30.0, 47.4, 29.4, 21.8, 34.2, 40.8, 38.5, 43.2, 49.2, 48.5, 51.8),
        "ICR": (41.3, 30.7, 51.2, 30.1, 25.4, 35.3, 40.6, 37.8, 40.0, 48.7, 53.7, 50.4),
        "SELFELICIT": (39.3, 31.4, 48.2, 31.4, 26.1, 37.2, 41.1, 34.2, 43.2, 41.7, 44.7, 37.2),
        "Our": (42.6, 31.5, 51.0, 30.4, 26.7, 37.8, 41.2, 40.1, 43.6, 49.5, 55.5, 54.2),
    },
}
"""GoodPositions, Table 2."""

PLACED: PaperRows = {
    "Default, original": (40.0, 31.2, 48.2, 30.2, 23.8, 35.8, 40.8, 34.2, 41.0, 47.2, 50.0, 52.6),
    "Default, reverse": (37.8, 24.0, 46.4, 28.0, 20.0, 34.8, 37.0, 32.3, 39.0, 45.6, 47.7, 50.0),
    "U-shaped, original": (39.7, 31.4, 52.4, 31.0, 25.2, 37.6, 41.6, 36.9, 41.4, 48.6, 50.9, 52.2),
    "U-shaped, reverse": (36.7, 21.6, 44.6, 26.8, 18.6, 33.8, 36.8, 30.0, 39.0, 45.4, 43.5, 47.6),
}
"""GoodPositions, Table 3."""

NUMBERS: dict[str, PaperRows] = {
    "Unordered": {
        "Vanilla + Default": (28.6, 29.6, 45.2, 31.6, 33.4, 48.0),
        "Vanilla + U-shaped": (33.4, 35.0, 48.0, 34.0, 35.8, 50.1),
        "Our Ranking + Default": (34.4, 35.8, 47.4, 34.2, 35.0, 51.0),
        "Our Ranking + U-shaped": (35.6, 37.4, 50.6, 35.0, 36.0, 53.6),
    },
    "Ordered": {
        "Vanilla + Default": (38.0, 42.4, 48.2, 36.6, 42.8, 52.6),
        "Vanilla + U-shaped": (39.8, 47.0, 52.4, 37.0, 46.4, 52.2),
        "Our Ranking + Default": (39.0, 45.6, 49.4, 37.6, 44.4, 53.0),
        "Our Ranking + U-shaped": (40.1, 46.3, 51.0, 39.4, 46.6, 54.2),
    },
}
"""GoodPositions, Table 5: 3, 5 and 10 documents of 2WikiMHQA, Vicuna-7b and Qwen2.5-7b-ins."""
