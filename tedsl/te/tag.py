"""Tags of computes by the module name that TVM's programs use: `te.tag.tag_scope`."""

from tedsl.errors import entries
from tedsl.lang.scope import TagScope, tag_scope

__all__ = ["TagScope", "tag_scope"]

entries(globals())
