"""`tedsl.topi` is the package `topi`, where programs written for TVM look for it: the same modules, not copies.

Importing it enters every module of `topi` under both names, so that `from tedsl.topi.nn.softmax import softmax` finds the
classes and tables of `topi.nn.softmax`. The stubs beside this file tell type checkers the same.
"""

import pkgutil
import sys
from importlib import import_module

import topi
from topi import *

for module in pkgutil.walk_packages(topi.__path__, "topi."):
    sys.modules[f"tedsl.{module.name}"] = import_module(module.name)
sys.modules[__name__] = topi
