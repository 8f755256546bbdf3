"""Which passages each question is answered from, and how good the rankings are."""
