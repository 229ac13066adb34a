"""Facts that passes ask about a program: guards, dependences, equal indices, bounds of memory."""
