"""Mathematical functions as formulas over floats, written once for every backend: `table.py` lists them.

`language.py` has what they are written in: a backend's subclass of `FunctionBody` writes each operation as its text.
"""
