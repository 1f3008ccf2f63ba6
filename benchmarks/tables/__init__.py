"""Shipped tables, models and kernels without this machine's times: what holds, and what they cover."""
