"""The parts of an explanation: why guards are there, how much memory there is, how expressions are written."""
