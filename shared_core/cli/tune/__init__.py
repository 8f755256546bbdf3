"""``posrag tune``: the fusion weight that labelled questions choose."""
