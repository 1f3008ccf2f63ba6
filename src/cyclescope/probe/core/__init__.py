"""Questions about the front end and the renamer."""
