"""Errors by the name of the module in programs written for TVM: `tedsl.error.TVMError`."""

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

__all__ = ["AccessError", "ArgumentError", "ArgumentTypeError", "DTypeError", "ExpressionError", "InternalError",
           "LoweringError", "OptionError", "ScheduleError", "ShapeError", "TVMError", "TedslError"]
