"""Operators that sort elements, and that search for values in sorted ones."""

from topi.ordering.search import searchsorted, unique
from topi.ordering.sort import argsort, sort, topk

__all__ = ["argsort", "searchsorted", "sort", "topk", "unique"]
