"""Options of CAUS as JSON and back."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from shared_core import CAUS, NeighbourSpans, PositionProfile
from shared_core.index import ChunkKeys
from shared_core.options import (
    CAUSArguments,
    decode_caus,
    decode_options,
    encode_caus,
    encode_options,
)
from shared_core.placement import Shuffle, UShapeBestLast

PROFILE = PositionProfile(model="m", accuracy=(0.6, 0.5, 0.9), distraction=(0.3, 0.2, 0.1))


@pytest.mark.parametrize(
    "caus",
    [
        CAUS(alpha=np.float32(0.5), psi=np.int64(2)),  # type: ignore[arg-type]
        CAUS(
            placement=Shuffle(seed=7),
            psi=PROFILE,
            rule="psi",
            hit_rates=(0.5, 0.2),
            expand=NeighbourSpans(window="auto", order=UShapeBestLast()),
            chunk_keys=ChunkKeys(document="file", heading=("title",)),
        ),
    ],
    ids=["numbers of numpy", "spans"],
)
def test_every_option_survives_json(caus: CAUS) -> None:
    """Whatever an index was used with, it is loaded with; JSON knows no numbers of numpy."""
    encoded = encode_caus(caus)
    assert json.loads(json.dumps(encoded)) == encoded
    assert decode_caus(encoded) == caus


def test_a_name_is_kept_where_it_means_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of published profiles do; one that was saved here is kept whole."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    file = PROFILE.save()
    kept = [encode_caus(CAUS(psi=psi)) for psi in (PROFILE.model, file, str(file))]
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "elsewhere"))
    file.unlink()
    assert [decode_caus(each).profile for each in kept] == [PROFILE] * 3
    assert encode_options({"psi": "deepseek-chat"}) == {"psi": "deepseek-chat"}


def test_some_options_alone_are_decoded_and_others_left() -> None:
    """What a caller keeps beside them is none of its business."""
    kept = {"placement": UShapeBestLast(), "include_scores": False}
    assert decode_options(encode_options(kept)) == kept


def test_an_option_that_json_does_not_know_is_refused() -> None:
    """With its value, before anything is written."""
    with pytest.raises(ValueError, match=r"\{'k': \{3\}\} cannot be saved as JSON"):
        encode_options({"k": {3}})


def test_the_arguments_are_those_of_caus() -> None:
    """Of which a type checker knows no better."""
    hints, real = get_type_hints(CAUSArguments), get_type_hints(CAUS)
    assert hints == {field.name: real[field.name] for field in fields(CAUS)}


def test_an_option_that_is_unknown_is_named() -> None:
    """By hand, or by another version; one that is given stands for it."""
    saved = {"placement": {"name": "sequential", "best_at": "end"}}
    with pytest.raises(ValueError, match=r"'best_at'.*; give placement= again"):
        decode_caus(saved)
    assert decode_caus({**saved, "placement": "u_shape"}) == CAUS(placement="u_shape")
    with pytest.raises(ValueError, match=r"unknown options \['kk'\]"):
        decode_caus({"kk": 9})


def test_a_counter_of_tokens_has_to_be_given_again() -> None:
    """A function is in no file."""
    saved = encode_caus(CAUS(expand=NeighbourSpans(count_tokens=len)))
    with pytest.raises(ValueError, match=r"custom count_tokens, .* give expand= again"):
        decode_caus(saved)
