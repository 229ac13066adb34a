"""The parts of `s.explain()`: the reasons of guards, the sizes of memory, the notation of expressions."""
