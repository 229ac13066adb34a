"""Displays for people: differences of texts, pictures of graphs, pages. Knows nothing of compilers.

    difference  two texts line by line
    terminal    differences in a terminal, with colour where that is wanted
    code        programs with their words in colour
    text        texts that a console prints as they are
    notebook    whether this is one, and what is shown there
    markup      HTML and SVG elements, everything escaped
    graph       a directed graph in layers, as SVG
    facts       a value above a table of what is known about it
    page        steps side by side on one page that needs nothing else
    style       what the page looks like, and its keys
"""
