"""Counting events of processes that run."""
