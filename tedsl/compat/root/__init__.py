"""Modules that TVM has at its root, and that stand elsewhere here: `from tedsl.datatype import register`.

The end of `tedsl/__init__.py` adds this folder to the `__path__` of `tedsl`; each file puts the module that it stands for into
its own place. As an attribute of `tedsl` each is found without it. `ir/` is the same for `tedsl.ir`.
"""
