"""Fathom from inside a program: a thin package over the C agent.

    import fathom

    with fathom.profile("out.fathom"):      # or @fathom.profile("out.fathom")
        work()

    with fathom.Profile() as pr:            # drops in for cProfile.Profile
        work()
    pr.print_stats("cumulative")
"""

from fathom._profile import Profile, profile, run, runctx

__all__ = ["Profile", "profile", "run", "runctx"]
__version__ = "0.1.0"
