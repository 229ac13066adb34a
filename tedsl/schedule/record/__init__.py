"""What a schedule remembers, and how that is used again.

    history        what it was after each directive: to take back and to blame
    spelling       arguments of directives as Python
    grammar        that Python read again, never run
    symbols        the sizes that names in a journal stand for
    replay         a journal applied to another schedule
    journal_json   a journal in a file
"""
