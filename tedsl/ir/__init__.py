"""What a program is: dtypes, expressions, statements, functions, and the tools to walk, rebuild, print and run them.

    dtype -> node -> expr (what everything means) -> build (making expressions) -> iters, buffer -> stmt -> func
    visitor, rewriter, substitute: walk and rebuild      equal, text, verify, evaluate: compare, print, check, run
"""
