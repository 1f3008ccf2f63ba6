"""Generators, run by developers."""
