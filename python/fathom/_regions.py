"""``region``, a named phase of the program: ``with fathom.region("assembly"):`` or a decorator.

Entering and leaving are the agent's; here is what stands around a decorated function. Where nothing is
recorded a decorated function is the very function it was.
"""

try:
    from fathom._agent import Region as _Region
except ImportError:  # no agent for this Python: programs with regions still run

    class _Region:
        def __init__(self, name):
            if not isinstance(name, str):
                raise TypeError(f"region() argument 1 must be str, not {type(name).__name__}")
            self.name = name

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return False

        def __repr__(self):
            return f"fathom.region({self.name!r})"

        @staticmethod
        def recorded():
            return False


class region(_Region):
    """A named phase of the program: how often it was entered, how long it took, and its memory.

        with fathom.region("assembly"):
            ...

        @fathom.region("solve")
        def solve(): ...

    Regions nest, in each thread for itself. ``fathom run`` records them with --memory, --calls or
    --lines; otherwise nothing happens. Of functions of all kinds, generators and coroutines included,
    the time until they are done is in the region, and what they do themselves to the heap.
    """

    __slots__ = ()

    def __call__(self, function):
        if not callable(function):
            raise TypeError(f"region() decorates functions, not {type(function).__name__}")
        return _wrapped(self, function) if self.recorded() else function


def _wrapped(entered, function):
    import contextlib
    import functools
    import inspect

    if inspect.iscoroutinefunction(function):

        async def call(*args, **keywords):
            with entered:
                return await function(*args, **keywords)

    elif inspect.isasyncgenfunction(function):

        async def call(*args, **keywords):
            with entered:
                items = function(*args, **keywords)
                async with contextlib.aclosing(items):
                    step = items.__anext__()
                    while True:
                        try:
                            item = await step
                        except StopAsyncIteration:
                            return
                        step = None  # what was thrown, and what its traceback holds, may go
                        try:
                            sent = yield item
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            step = items.athrow(error)
                        else:
                            step = items.asend(sent)

    elif inspect.isgeneratorfunction(function):

        def call(*args, **keywords):
            with entered:
                return (yield from function(*args, **keywords))

    else:

        def call(*args, **keywords):
            with entered:
                return function(*args, **keywords)

    return functools.update_wrapper(call, function)
