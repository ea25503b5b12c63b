"""``trace_start``, ``trace_stop`` and ``tracing``: which part of a program `fathom run --trace` traces.

Both are the agent's. Where nothing is traced they do nothing, so a program may keep them.
"""

try:
    from fathom._agent import trace_start, trace_stop
except ImportError:

    def trace_start():
        """There is no agent for this Python: nothing is traced."""
        return False

    def trace_stop():
        """There is no agent for this Python: nothing is traced."""
        return False


class tracing:
    """``with fathom.tracing():`` traces a block, ``@fathom.tracing()`` each call of a function; one inside of another
    changes nothing. Calls of a decorated function may overlap: the trace ends with the last of them."""

    __slots__ = ("_others",)

    def __init__(self):
        self._others = []  # who came when it was on already; append and pop are atomic, a count is not

    def __enter__(self):
        if not trace_start():
            self._others.append(None)
        return self

    def __exit__(self, *exception):
        try:
            self._others.pop()
        except IndexError:
            trace_stop()
        return None

    def __call__(self, function):
        if not callable(function):
            raise TypeError(f"tracing() decorates functions, not {type(function).__name__}")
        from fathom._wrapped import wrapped

        return wrapped(self, function)
