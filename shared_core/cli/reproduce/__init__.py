"""``posrag reproduce``: the experiments of the papers."""
