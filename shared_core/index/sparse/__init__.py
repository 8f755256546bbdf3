"""The sparse leg: BM25 over postings."""
