"""Bring your own codegen: parts of a graph whose code others make.

    part = graph.partition(graph.merge_regions(graph.annotate(g, "ccompiler", ["add", "subtract"])))
    network = graph.compile(part)

annotate.py: which nodes a compiler takes. merge.py: regions of them. partition.py: regions as functions.
codegens.py: the compilers by name. library.py: modules that run functions of a library. ccompiler/: C. examplejson/:
text that a small interpreter runs.
"""

from tedsl.errors import entries
from tedsl.graph.byoc.annotate import Annotation, Part, Region, annotate
from tedsl.graph.byoc.codegens import codegen_named, codegen_names, register_codegen
from tedsl.graph.byoc.library import LibraryModule
from tedsl.graph.byoc.merge import merge_regions
from tedsl.graph.byoc.partition import partition

__all__ = ["Annotation", "LibraryModule", "Part", "Region", "annotate", "codegen_named", "codegen_names", "merge_regions",
           "partition", "register_codegen"]

entries(globals())
