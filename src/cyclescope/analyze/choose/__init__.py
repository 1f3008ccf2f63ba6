"""The block of a program that is analysed: loops, markers, and how far one pass gets."""
