"""Which passages stand next to each other in their documents."""
