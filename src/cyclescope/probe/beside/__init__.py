"""Probes of what CPUs do to each other."""
