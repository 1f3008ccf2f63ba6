"""A hundred times the chain of chain.h, which a library has, in a region of this program."""

import ctypes
import sys

import cyclescope

library = ctypes.PyDLL(sys.argv[1])
busy, nothing, empty = (cyclescope.region(name) for name in ("chain", "call", "empty"))
for _ in range(200):
    with busy:
        library.chains(3, 100)
    with nothing:
        library.chains(3, 0)
    with empty:
        pass
for one in (busy, nothing, empty):
    sys.stdout.write(one.json() + "\n")
