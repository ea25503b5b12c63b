"""Fathom from inside a program: a thin package over the C agent.

    import fathom

    with fathom.profile("out.fathom"):      # or @fathom.profile("out.fathom")
        work()

    with fathom.Profile() as pr:            # drops in for cProfile.Profile
        work()
    pr.print_stats("cumulative")

    @fathom.lines                           # its lines are recorded by `fathom run --lines`
    def work(): ...

    profiler = fathom.LineProfiler(work)    # drops in for line_profiler.LineProfiler
    profiler.runcall(work)
    profiler.print_stats()

    fathom.start("out.fathom")              # sample this program from outside, until stop()
    fathom.snapshot("so-far.fathom")
    fathom.stop()

    before = fathom.memory_snapshot()       # what is alive now, under `fathom run --memory`
    work()
    print(fathom.memory_snapshot() - before)

    with fathom.region("assembly"):         # a named phase, in every recording of `fathom run`
        work()

    with fathom.tracing():                  # this part alone, under `fathom run --trace --paused`
        work()

    with fathom.memory("out.fathom"):       # the memory of a block, without `fathom run`
        work()

    fathom.memory_usage((work, ()))         # memory_profiler's, measured from outside

Names are loaded when first used: importing the package costs a program next to nothing.
"""

__all__ = ["LineProfiler", "LineStats", "Profile", "SamplingError", "counter", "get_include", "instant", "lines", "memory",
           "memory_lines", "memory_snapshot", "memory_usage", "notify_library", "profile", "region", "region_begin", "region_end", "run",
           "runctx", "sample", "snapshot", "start", "stop", "summarize", "summary", "timed", "timing", "trace_start",
           "trace_stop", "tracing"]
__version__ = "0.1.0"

_HOMES = {
    "LineProfiler": "fathom._line_profiler",
    "LineStats": "fathom._line_stats",
    "Profile": "fathom._profile",
    "SamplingError": "fathom._sampling",
    "counter": "fathom._regions",
    "instant": "fathom._regions",
    "lines": "fathom._lines",
    "memory": "fathom._memory_block",
    "memory_lines": "fathom._lines",
    "memory_snapshot": "fathom._memory_snapshot",
    "memory_usage": "fathom._memory",
    "profile": "fathom._profile",
    "region": "fathom._regions",
    "region_begin": "fathom._regions",
    "region_end": "fathom._regions",
    "run": "fathom._profile",
    "runctx": "fathom._profile",
    "sample": "fathom._sampling",
    "snapshot": "fathom._sampling",
    "start": "fathom._sampling",
    "stop": "fathom._sampling",
    "summarize": "fathom._summary",
    "summary": "fathom._summary",
    "timed": "fathom._regions",
    "timing": "fathom._summary",
    "trace_start": "fathom._trace",
    "trace_stop": "fathom._trace",
    "tracing": "fathom._trace",
}


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fathom' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def get_include():
    """The folder of ``fathom.h``, for C, C++, Cython and Fortran code that has regions."""
    from os.path import abspath, dirname, join

    return join(dirname(abspath(__file__)), "include")


def notify_library():
    """The library that NVTX_INJECTION64_PATH and INTEL_LIBITTNOTIFY64 name, so that annotations of NVTX and ITT are
    regions."""
    from os.path import abspath, dirname, join

    return join(dirname(abspath(__file__)), "libfathom_notify.so")


def __dir__():
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(shell):
    """``%load_ext fathom``: the magics ``%lprun``, ``%prun``, ``%memit``, ``%mprun`` and ``%%fathom``."""
    from fathom._ipython import load

    load(shell)


def unload_ipython_extension(shell):
    """``%unload_ext fathom``: the magics are as they were before."""
    from fathom._ipython import unload

    unload(shell)
