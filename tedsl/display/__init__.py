"""Output for people: differences of texts, drawings of graphs, HTML pages. Knows nothing of compilers.

difference  two texts line by line
terminal    differences in a terminal, in colour if wanted
code        programs with their words in colour
text        texts that a console prints as they are
notebook    whether the program runs in a notebook, and display there
markup      HTML and SVG elements, everything escaped
graph       a directed graph in layers, as SVG
facts       a value above a table of its properties
page        steps side by side on one self-contained page
style       the style sheet of the page, and its keys
"""
