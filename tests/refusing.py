"""What is refused: by which error, in which words."""

import pytest

from tedsl.errors import TedslError


def refused(call, *words, error=TedslError, match=None):
    """The error with which `call` is refused: of class `error`, with all `words` in its text, and the pattern `match`."""
    with pytest.raises(error, match=match) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, f"{word!r} is missing in:\n{text}"
    return caught.value
