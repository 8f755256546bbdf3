"""``posrag attention``: where a local model looks."""
