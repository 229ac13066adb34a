"""The compiler "examplejson": sub-graphs as text, and a module that runs them.

program    sub-graphs in memory, and their text
parser     reads the text; refuses what is wrong with the number of its line
module     ExampleJsonModule, which runs sub-graphs; ConstantsModule, which adds constants to calls
codegen    what graph.compile calls

    subgraph_0
      input 0 10 10
      input 1 10 10
      add 2 inputs: 0 1 shape: 10 10

Importing this registers `module.examplejson_module_create`, `module.loadbinary_examplejson`, `module.loadfile_examplejson`.
"""

from tedsl.errors import entries
from tedsl.graph.byoc.examplejson.codegen import codegen, supports
from tedsl.graph.byoc.examplejson.module import ConstantsModule, ExampleJsonModule
from tedsl.graph.byoc.examplejson.parser import parse
from tedsl.graph.byoc.examplejson.program import Program, Statement, SubGraph

__all__ = ["ConstantsModule", "ExampleJsonModule", "Program", "Statement", "SubGraph", "codegen", "parse", "supports"]

entries(globals())
