"""`tedsl.topi` is the package `topi` under the name that programs written for TVM use: the same modules, not copies.

Importing it registers every module of `topi` under both names, so that `from tedsl.topi.nn.softmax import softmax` finds the
classes and tables of `topi.nn.softmax`. The stubs in this folder tell type checkers the same.
"""

import pkgutil
import sys
from importlib import import_module

import topi
from tedsl.absent import answer_in
from topi import *

for module in pkgutil.walk_packages(topi.__path__, "topi."):
    sys.modules[f"tedsl.{module.name}"] = import_module(module.name)
for name in ("tensor", *topi._OTHER_NAMES):
    sys.modules[f"tedsl.topi.{name}"] = sys.modules[f"topi.{name}"]
sys.modules[__name__] = topi
answer_in(vars(topi))
