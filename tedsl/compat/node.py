"""tvm.node of TVM 0.6, and tvm._ffi.node: the base of all objects, for `isinstance`, and classes of a program's own."""

from tedsl.compat.make import register_node
from tedsl.errors import entries
from tedsl.ir import load_json, save_json, structural_equal
from tedsl.runtime.objects import Object, convert

NodeBase = Node = NodeGeneric = Object
convert_to_node = convert

__all__ = ["Node", "NodeBase", "NodeGeneric", "Object", "convert", "convert_to_node", "load_json", "register_node", "save_json",
           "structural_equal"]

entries(globals())
