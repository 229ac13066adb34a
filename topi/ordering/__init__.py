"""Operators that sort elements, and that search for values in sorted ones."""

from tedsl.target.generic import give_implementations
from topi.ordering.search import binary_search, searchsorted, unique
from topi.ordering.sort import argsort, sort, topk

__all__ = ["argsort", "binary_search", "searchsorted", "sort", "topk", "unique"]

give_implementations(globals())
