"""Our own speed and accuracy: programs that print the numbers this project promises.

Each is a module with a `main`: `python -m benchmarks.ROOM.NAME --help` from the checkout, with the package
installed or `PYTHONPATH=src`. They only read results and start `cyclescope`; nothing they find out
enters the product. What several share is in `lib`.
"""
