"""Dependencies in C (native/bounds): the results of Python, in less time, where the library was built."""
