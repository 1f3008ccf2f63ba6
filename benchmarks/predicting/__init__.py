"""Predictions beside measurements and other tools, and what other tools' inputs are read as."""
