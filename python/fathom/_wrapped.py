"""What stands around a decorated function: each call of it is in a ``with`` of one object, from begin to end. A coroutine or
generator is in it while it waits, too."""

import contextlib
import functools
import inspect


def wrapped(entered, function):
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
