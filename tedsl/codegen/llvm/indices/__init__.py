"""Index arithmetic: expressions over loop variables and sizes, evaluated in 64 bits."""
