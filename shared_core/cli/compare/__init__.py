"""``posrag compare``: strategies of arrangement on one's own questions."""
