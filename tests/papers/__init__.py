"""Golden cases: what the papers print, and what follows from their formulas by hand."""
