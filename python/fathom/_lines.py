"""``lines``, the decorator that chooses functions for ``fathom run --lines``.

Choosing is by code object: the function is marked in the recording's own collector and returned as it
is, without a wrapper, so a decorated function is exactly as fast as before when nobody records. What
is found inside callables of all kinds is decided here, for ``lines`` and ``LineProfiler`` alike.
"""

import functools
import types

try:
    from fathom._agent import mark_lines as _mark
    from fathom._agent import mark_memory_lines as _mark_memory
except ImportError:  # no agent for this Python: decorated programs still run

    def _mark(code):
        return False

    _mark_memory = _mark


def lines(obj, /):
    """Record the lines of this function under ``fathom run --lines``; otherwise do nothing.

    Takes functions of all kinds, methods, properties, partials and whole classes, and returns the
    very same object. Functions defined inside a marked one are marked too. A function written in C
    has no lines and is let through.
    """
    return _marked(obj, _mark)


def memory_lines(obj, /):
    """Record what the lines of this function do to the heap under ``fathom run --memory``; otherwise do nothing.

    As ``lines`` in everything else.
    """
    return _marked(obj, _mark_memory)


def _marked(obj, mark):
    for function in functions_in(obj):
        if not mark(innermost(function).__code__):
            break
    return obj


def innermost(function):
    """The function that decorators made with functools.wraps were put around."""
    seen = {id(function)}
    while True:
        inner = getattr(function, "__wrapped__", None)
        if not isinstance(inner, types.FunctionType) or id(inner) in seen:
            return function
        seen.add(id(inner))
        function = inner


def functions_in(obj):
    """The Python functions that a callable, a descriptor or a class consists of; none if it is C."""
    if isinstance(obj, types.FunctionType):
        return [obj]
    if isinstance(obj, (classmethod, staticmethod, types.MethodType)):
        return functions_in(obj.__func__)
    if isinstance(obj, (functools.partial, functools.partialmethod, functools.cached_property)):
        return functions_in(obj.func)
    if isinstance(obj, property):
        parts = [part for part in (obj.fget, obj.fset, obj.fdel) if part is not None]
        return [function for part in parts for function in functions_in(part)]
    if isinstance(obj, type):
        return functions_of_class(obj)
    wrapped = getattr(obj, "__wrapped__", None)  # functools.lru_cache and its like
    if callable(wrapped) and wrapped is not obj:
        return functions_in(wrapped)
    call = getattr(type(obj), "__call__", None)
    return [call] if isinstance(call, types.FunctionType) else []


def functions_of_class(cls):
    """The functions defined in the body of a class, and in classes nested in it."""

    def belongs(thing):
        return thing.__module__ == cls.__module__ and thing.__qualname__.startswith(
            cls.__qualname__ + "."
        )

    found = []
    for member in list(vars(cls).values()):
        if isinstance(member, type) and not belongs(member):
            continue
        found += [f for f in functions_in(member) if f not in found and belongs(innermost(f))]
    return found
