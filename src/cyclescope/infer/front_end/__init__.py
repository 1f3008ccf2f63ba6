"""The front end: its width, slots of forms, limits by the length of encodings."""
