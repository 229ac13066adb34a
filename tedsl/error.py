"""Errors by the name of the module in programs written for TVM: `tedsl.error.TVMError`."""

from typing import Any

from tedsl.errors import (
    AccessError,
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ExpressionError,
    InternalError,
    LoweringError,
    OptionError,
    ScheduleError,
    ShapeError,
    TedslError,
)
from tedsl.errors import TedslError as TVMError


class OpError(TedslError):
    """Base of the errors of importers of networks."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator that an importer does not have."""


class OpAttributeRequired(OpError, AttributeError):
    """An attribute that an operator needs, and that is not given."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator that has a wrong value."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator that an importer does not have."""


class DiagnosticError(TedslError):
    """A mistake that was shown in detail before."""


class RPCError(TedslError):
    """A failure of a remote server."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A remote server that did not answer in time."""


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Returns a class of errors as it is: errors of callbacks keep their classes. Also a decorator, with or without a name."""
    if callable(func_name):
        return func_name
    return cls if cls is not None else lambda given: given


__all__ = ["AccessError", "ArgumentError", "ArgumentTypeError", "DTypeError", "DiagnosticError", "ExpressionError",
           "InternalError", "LoweringError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented", "OpError",
           "OpNotImplemented", "OptionError", "RPCError", "RPCSessionTimeoutError", "ScheduleError", "ShapeError", "TVMError",
           "TedslError", "register_error"]
