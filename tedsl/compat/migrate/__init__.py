"""Programs of TVM rewritten for tedsl: imports, and the spellings of older versions.

`names.py` says what a name of TVM is here; `rewrite.py` changes the text of a program, with libcst, so that comments and layout
stay; `files.py` reads and writes scripts and notebooks.
"""

from tedsl.compat.migrate.files import Migrated, migrate_file
from tedsl.compat.migrate.names import Note
from tedsl.compat.migrate.rewrite import migrate

__all__ = ["Migrated", "Note", "migrate", "migrate_file"]
