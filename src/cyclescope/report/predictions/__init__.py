"""Predictions as text, JSON, Markdown, HTML and drawings."""
