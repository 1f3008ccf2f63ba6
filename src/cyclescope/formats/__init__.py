"""Other tools' files: one module per format, from and to machine models.

A module has `write(model) -> Exported`, `read(file, request) -> Imported`, or both. What a format cannot
express is named in what `write` returns, and what is not believed in what `read` returns; nothing is
dropped in silence.
"""
