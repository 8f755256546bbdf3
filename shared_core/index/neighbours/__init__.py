"""Which passages are next to each other in their documents."""
