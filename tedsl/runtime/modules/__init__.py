"""Modules outside of the process: their data, the files they are written to, and how these are loaded.

protocol    the interface of modules of other packages
image       the compiled functions of a module as data
container   files of named pieces, with checks for damage
files       export and load by the suffix of the file
"""
