"""`tag_scope`: a tag for every compute that is declared inside it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.ir.wellformed import check_name

_CURRENT: ContextVar[str | None] = ContextVar("tag", default=None)


class TagScope:
    """A `with` block, or a decorator, that gives its tag to the computes inside. Scopes do not nest."""

    def __init__(self, tag: str) -> None:
        check_name(tag, "a tag, of tag_scope")
        self.tag = tag
        self._token: Token[str | None] | None = None

    def __enter__(self) -> TagScope:
        outer = _CURRENT.get()
        if outer is not None:
            raise ArgumentError(f"tag_scope({self.tag!r}) inside tag_scope({outer!r}): tag scopes do not nest",
                                hint="close the outer scope first; a compute has one tag")
        self._token = _CURRENT.set(self.tag)
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)
        self._token = None

    @staticmethod
    def get_current() -> TagScope | None:
        """The scope that is open, None if none is."""
        tag = _CURRENT.get()
        return None if tag is None else TagScope(tag)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def tagged(*args: Any, **kwargs: Any) -> Any:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """A context manager or decorator that gives its tag to every `te.compute` declared inside."""
    return TagScope(tag)


def current_tag(tag: str, where: str) -> str:
    """The tag for a compute that asked for `tag`: that of the enclosing tag scope if there is one."""
    check_name(tag, f"a tag, of {where}")
    scope = _CURRENT.get()
    if scope is None:
        return tag
    if tag:
        raise ArgumentError(f"{where}: tag={tag!r} inside tag_scope({scope!r}): a compute has one tag",
                            hint="leave the argument tag out, or declare it outside the scope")
    return scope


def scope_tag() -> str | None:
    """The tag of the scope that is open now, or None."""
    return _CURRENT.get()
