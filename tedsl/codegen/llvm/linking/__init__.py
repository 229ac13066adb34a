"""Machine code enters the process: objects are read, linked and become functions."""
