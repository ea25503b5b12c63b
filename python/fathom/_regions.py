"""``region`` and what belongs to it: named phases of the program.

Entering and leaving are the agent's, in C. Here are decorators, and what takes the agent's place on a
Python for which there is none: programs with regions still run there.
"""

import os

try:
    from fathom._agent import counter, instant, region, region_begin, region_end, regions_join_run

    regions_join_run()
except ImportError:

    class region:
        """A named phase of the program. There is no agent for this Python: nothing is recorded."""

        __slots__ = ("name",)

        def __init__(self, name, **values):
            if not isinstance(name, str):
                raise TypeError(f"region() argument 1 must be str, not {type(name).__name__}")
            self.name = name

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return None

        def __call__(self, function):
            return decorated(self, function)

        def __repr__(self):
            return f"fathom.region({self.name!r})"

        @staticmethod
        def recorded():
            return False

    def region_begin(name, **values):
        """A region that may end in another thread or task: nothing, here."""

    def region_end(token):
        """The region of that token ends."""

    def counter(name, value):
        """A number that changes over time."""

    def instant(name, **values):
        """Something happened now."""


def timed(function_or_name):
    """``@fathom.timed``, or ``@fathom.timed("name")``: the function is a region, of its own name unless one is given."""
    if isinstance(function_or_name, str):
        return region(function_or_name)
    if not callable(function_or_name):
        raise TypeError(f"timed() decorates functions, not {type(function_or_name).__name__}")
    name = getattr(function_or_name, "__qualname__", None)
    return decorated(region(name if isinstance(name, str) else type(function_or_name).__qualname__), function_or_name)


def decorated(entered, function):
    """The function in its region; where nothing is recorded, the very function."""
    if not callable(function):
        raise TypeError(f"region() decorates functions, not {type(function).__name__}")
    if not entered.recorded():
        return function
    from fathom._wrapped import wrapped

    return wrapped(entered, function)


if "FATHOM_SUMMARY" in os.environ:
    from fathom._summary import begin_if_asked

    begin_if_asked()
