"""OSACA's machine models."""
