"""Whether the index of vectors finds what an exact scan finds."""
