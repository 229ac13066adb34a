"""The implementation of `ir/evaluate.py`: arithmetic (values), source (the writer), expr, stmt (one emitter per node)."""
