"""Walking, rebuilding and comparing expressions and statements, however deep they are."""
