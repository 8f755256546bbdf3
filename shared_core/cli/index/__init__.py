"""``posrag index``: documents into a collection of a database."""
