"""``posrag engine``: what a collection of a database holds."""
