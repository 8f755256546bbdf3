"""Where the readers look: how the training of the control counts it."""

from __future__ import annotations

import torch

from instruments.looking import in_tenths


def test_tenths_share_out_every_token_but_the_head() -> None:
    """25 tokens of documents are 2.5 a tenth, 10 are one each."""
    parts = in_tenths([26, 11], 30)
    assert parts[0, 0].sum() == parts[0, 26:].sum() == 0
    assert torch.allclose(parts[0].sum(dim=0), torch.full((10,), 2.5))
    assert torch.equal(parts[1, 1:11], torch.eye(10))
