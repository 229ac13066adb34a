"""The targets for which tests run. The only device here is the CPU: tests that need another one are skipped.

pytest is imported by the functions that mark tests.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tedsl.runtime.devices.device import Device, device
from tedsl.runtime.objects import enabled


def device_enabled(target: Any) -> bool:
    """Tells whether programs built for `target` run here."""
    return enabled(target)


def enabled_targets() -> list[tuple[str, Device]]:
    """Returns the targets that run here, each with its device."""
    return [("llvm", device("llvm"))]


def uses_gpu(*test: Any) -> Any:
    """Marks a test that uses a GPU if there is one, by pytest's mark `gpu`; it runs in any case."""
    import pytest

    return pytest.mark.gpu(test[0]) if test else pytest.mark.gpu


def main() -> NoReturn:
    """Runs the tests of the file that calls it, with the arguments of the command line, and ends the program."""
    import pytest

    sys.exit(pytest.main([sys._getframe(1).f_code.co_filename, *sys.argv[1:]]))


def exclude_targets(*args: Any) -> Any:
    """Skips the runs of a test for these targets, or for their kinds. A decorator with targets."""
    return _at_targets(args, lambda pytest, name: pytest.skip(f"the test leaves {name} out"))


def known_failing_targets(*args: Any) -> Any:
    """Expects the runs of a test for these targets, or for their kinds, to fail, and does not begin them. A decorator."""
    return _at_targets(args, lambda pytest, name: pytest.xfail(f"the test is known to fail for {name}"))


def _at_targets(targets: Sequence[Any], end: Callable[[Any, str], object]) -> Any:
    """Returns the decorator of tests whose parameter `target` is looked at first: `end` for one of `targets`."""
    named = {str(target) for target in targets}

    def mark(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            import pytest

            name = str(kwargs.get("target", ""))
            if name in named or name.split(" ")[0] in named:
                end(pytest, name)
            return test(*args, **kwargs)

        return run

    return mark


def parametrize_targets(*targets: Any) -> Any:
    """Runs a test, which takes `target` and optionally `dev`, for each target; without targets, for all that run here.

    A target that does not run here is skipped, by name. A decorator, with targets or without.
    """
    import pytest

    if len(targets) == 1 and callable(targets[0]):
        return parametrize_targets()(targets[0])
    wanted = list(targets) or [name for name, _ in enabled_targets()]

    def mark(test: Any) -> Any:
        with_device = "dev" in inspect.signature(test).parameters
        cases = [pytest.param(*([name, device(str(name).split()[0])] if with_device else [name]), id=str(name))
                 if device_enabled(name) else
                 pytest.param(*([name, None] if with_device else [name]), id=str(name),
                              marks=pytest.mark.skip(reason=f"programs for {name} do not run here")) for name in wanted]
        return pytest.mark.parametrize("target, dev" if with_device else "target", cases)(test)

    return mark
