"""A comparison for a person: in Markdown, and as an HTML page."""
