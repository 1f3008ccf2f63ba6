"""HTML: the one skeleton that every page has, and what makes templates into pages."""
