"""Which block of a program is analysed: loops, markers, and how far one pass moves its pointer."""
