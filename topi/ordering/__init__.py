"""Operators that put elements in order, and that look for values in ordered ones."""

from topi.ordering.search import searchsorted, unique
from topi.ordering.sort import argsort, sort, topk

__all__ = ["argsort", "searchsorted", "sort", "topk", "unique"]
