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
    """``with fathom.tracing():`` traces a block; one inside of another changes nothing."""

    __slots__ = ("_began",)

    def __enter__(self):
        self._began = trace_start()
        return self

    def __exit__(self, *exception):
        if self._began:
            trace_stop()
        return None
