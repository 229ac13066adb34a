"""The compiler "ccompiler": functions in C, with no library but that of C.

kernels    operators as C: a macro for each shape, or a function
visitor    a graph as C, a method for each kind of node; what a compiler of your own begins with
wrapper    functions that take DLPack's DLTensor, check it, and return a status
module     CSourceModule: the text, compiled when it is first called
codegen    what graph.compile calls
"""

from tedsl.errors import entries
from tedsl.graph.byoc.ccompiler.codegen import codegen, supports
from tedsl.graph.byoc.ccompiler.module import CSourceModule
from tedsl.graph.byoc.ccompiler.visitor import CFunction, CVisitor

__all__ = ["CFunction", "CSourceModule", "CVisitor", "codegen", "supports"]

entries(globals())
