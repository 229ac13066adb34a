"""Types of programs by the module name that TVM's programs use: dtypes that compute by functions that the program registers."""

from tedsl.errors import entries
from tedsl.ir.calls.datatypes import (
    create_lower_func,
    create_min_lower_func,
    get_type_code,
    get_type_name,
    get_type_registered,
    lower_call_pure_extern,
    lower_ite,
    register,
    register_min_func,
    register_op,
)

__all__ = ["create_lower_func", "create_min_lower_func", "get_type_code", "get_type_name", "get_type_registered",
           "lower_call_pure_extern", "lower_ite", "register", "register_min_func", "register_op"]

entries(globals())
