"""uops.info's files: its XML, and its table as CSV."""
