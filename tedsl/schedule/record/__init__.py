"""The directives of a schedule as data, and what is done with them: undo, journals, replay, blame.

directive      a directive as data; the names of all directives
term           its arguments as data: the language of journals
formula        expressions in that language
recorder       the directives of a schedule, and the names that it gave
writing        values of a program in that language
grammar        the Python of a directive read as data, never run
evaluate       what its terms mean on a schedule
replay         a journal applied to another schedule
journal_json   a journal in a file
symbols        the sizes that names in a journal stand for
history        the states of a schedule after each directive: for undo and blame
"""
