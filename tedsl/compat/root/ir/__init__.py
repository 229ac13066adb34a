"""Modules that TVM has in `tvm.ir`, and that stand elsewhere here; the end of `tedsl/ir/__init__.py` adds this folder."""
