"""Building the package."""
