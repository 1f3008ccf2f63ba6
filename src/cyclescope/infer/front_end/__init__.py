"""What the front end passes: its width, slots of forms, limits by the length of encodings."""
