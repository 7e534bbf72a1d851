"""``stagewire logs``: JSON lines in, answers and pictures out (LG-1 to LG-7)."""
