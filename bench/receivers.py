"""The interpreter's events delivered to a C function of floor.c that does nothing, or reads a clock."""

import sys


class Floor:
    PYTHON = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND")
    C = ("CALL", "C_RETURN", "C_RAISE")
    TOOL = 4

    def __init__(self, builtins, what, more=()):
        """`what`: 0 nothing, 1 reads the clock and keeps it, 2 only reads it; `more`: other events."""
        import fathom_floor

        self.floor, self.builtins, self.what = fathom_floor, builtins, int(what)
        self.names = self.PYTHON + tuple(more) + (self.C if builtins else ())

    def start(self):
        if not hasattr(sys, "monitoring"):
            self.floor.start(self.builtins, self.what)
            return
        mon, events = sys.monitoring, 0
        mon.use_tool_id(self.TOOL, "floor")
        for name in self.names:
            event = getattr(mon.events, name)
            mon.register_callback(self.TOOL, event, self.floor.callback(self.what))
            if name not in ("C_RETURN", "C_RAISE"):
                events |= event
        mon.set_events(self.TOOL, events)

    def stop(self):
        if not hasattr(sys, "monitoring"):
            self.floor.stop()
            return
        mon = sys.monitoring
        mon.set_events(self.TOOL, 0)
        for name in self.names:
            mon.register_callback(self.TOOL, getattr(mon.events, name), None)
        mon.free_tool_id(self.TOOL)

    def calls(self):
        return None
