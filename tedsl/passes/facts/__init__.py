"""What passes ask about a program: its guards, what depends on what, which places are the same, what stays in range."""
