"""The dense leg: vectors, and the scans that find the nearest of them."""
