"""Modules that leave the process: what they are made of, the files they are written to, and how they come back.

    protocol    what a module of others must do
    image       the compiled functions of a module as data
    container   files of named pieces that tell when they are damaged
    files       export and load by the suffix of the file
"""
