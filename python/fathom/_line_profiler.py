"""``LineProfiler``, which drops in for ``line_profiler.LineProfiler``.

Recording is done in C (``fathom._agent``); this module gives it the shape that users of line_profiler
know: adding functions, wrapping them so that only calls through the wrapper are recorded, counting how
often recording was asked for, and turning the result into ``LineStats``.

Threads: one lock guards the count of all profilers; recording itself covers every thread.
"""

import functools
import inspect
import os
import sys
import sysconfig
import threading
import types
import warnings

from fathom._lines import functions_in
from fathom._line_stats import LineStats, from_pickle

try:
    from fathom import _agent
except ImportError as error:
    raise ImportError(
        "fathom was installed without an agent for this Python "
        f"({sys.version.split()[0]}, {sysconfig.get_config_var('SOABI')})"
    ) from error

_MARKER = "__fathom_line_profiler__"
_lock = threading.RLock()


def _renew_lock():
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


class LineProfiler:
    """Records the lines of the functions it was given, while it is enabled.

    Use it as a decorator, around a block (``with profiler: …``), or with ``runcall`` and ``runctx``.
    All threads are recorded. ``wrap_trace`` and ``set_frame_local_trace`` are taken for
    compatibility and mean nothing here: Fathom does not use ``sys.settrace``.
    """

    timer_unit = 1e-9

    def __init__(self, *functions, wrap_trace=None, set_frame_local_trace=None):
        self._collector = _agent.Collector(None, 0.0, False, False, "")
        self._codes = {}  # id(code): code, in order of adding
        self.functions = []
        self.enable_count = 0
        for function in functions:
            self.add_function(function)

    # ---- choosing

    def add_function(self, func):
        """Record the lines of this function, and of those defined inside it should they run."""
        if hasattr(func, "__wrapped__"):
            warnings.warn("Adding a function with a `.__wrapped__` attribute. You may want to profile "
                          f"the wrapped function by adding `{func.__name__}.__wrapped__` instead.",
                          stacklevel=2)
        code = getattr(func, "__code__", None) or getattr(
            getattr(func, "__func__", None), "__code__", None)
        if not isinstance(code, types.CodeType):
            warnings.warn(f"Could not extract a code object for the object {func!r}", stacklevel=2)
            return
        self._add_code(code)
        self.functions.append(func)

    def _add_code(self, code):
        if id(code) not in self._codes:
            self._codes[id(code)] = code  # which keeps it alive, and so its id
            self._collector.mark_lines(code)

    def add_callable(self, func, guard=None, name=None):
        """Add the functions of a method, property, partial, class …; 1 if there was any, else 0."""
        guard = self._already_a_wrapper if guard is None else guard
        added = 0
        for function in _functions_or_type_error(func):
            if guard(function):
                continue
            owner, inner = getattr(function, _MARKER, (None, function))
            self.add_function(inner)
            added = 1
        return added

    def add_class(self, cls, *, scoping_policy=None, wrap=False):
        """Add what is defined in a class; returns the number of members added.

        ``scoping_policy`` says which members count: "exact", "children", "descendants",
        "siblings" or "none", or a dictionary with one of these for "func", "class" and "module".
        With ``wrap``, members are replaced by wrappers that enable this profiler.
        """
        return self._add_namespace(cls, _policies(scoping_policy), wrap, set())

    def add_module(self, mod, *, scoping_policy=None, wrap=False):
        """Add what is defined in a module; see ``add_class``."""
        return self._add_namespace(mod, _policies(scoping_policy), wrap, set())

    def add_imported_function_or_module(self, item, *, scoping_policy=None, wrap=False):
        """Add a function, class or module, and enable recording if there was something to add."""
        if isinstance(item, (type, types.ModuleType)):
            added = self._add_namespace(item, _policies(scoping_policy), wrap, set())
        else:
            try:
                added = self.add_callable(item)
            except TypeError:
                added = 0
        if added:
            self.enable_by_count()
        return 1 if added else 0

    def _add_namespace(self, namespace, policies, wrap, seen):
        count, wrapped = 0, {}

        def guard(function):
            return self._already_a_wrapper(function) or not _in_scope(
                policies["func"], namespace, function, "func")

        for name, value in list(vars(namespace).items()):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, (type, types.ModuleType)):
                kind = "class" if isinstance(value, type) else "module"
                if _in_scope(policies[kind], namespace, value, kind):
                    count += 1 if self._add_namespace(value, policies, wrap, seen) else 0
                continue
            try:
                added = self.add_callable(value, guard)
            except TypeError:
                continue
            if added:
                count += 1
                wrapped[name] = value
        if wrap:
            self._wrap_members(namespace, wrapped)
        return count

    # ---- wrapping

    def __call__(self, func):
        """Decorate: calls through the result are recorded."""
        self.add_callable(func)
        return self.wrap_callable(func)

    def wrap_callable(self, func):
        """A callable or descriptor of the same kind that enables this profiler while it runs."""
        if isinstance(func, (classmethod, staticmethod)):
            return type(func)(self.wrap_callable(func.__func__))
        if isinstance(func, types.MethodType):
            return types.MethodType(self.wrap_callable(func.__func__), func.__self__)
        if isinstance(func, (functools.partial, functools.partialmethod)):
            return _copy_dict(func, type(func)(self.wrap_callable(func.func), *func.args,
                                               **func.keywords))
        if isinstance(func, property):
            return self._wrap_property(func)
        if isinstance(func, functools.cached_property):
            wrapper = type(func)(self.wrap_callable(func.func))
            wrapper.attrname = func.attrname
            return wrapper
        if isinstance(func, type):
            self._wrap_members(func, {
                name: member for name, member in vars(func).items()
                if _members_of(func, member)})
            return func
        if isinstance(func, _C_CALLABLES) or self._already_a_wrapper(func):
            return func
        if not callable(func):
            raise TypeError(f"func = {func!r}: does not look like a callable or callable wrapper")
        return self._wrap_function(func)

    def _wrap_property(self, prop):
        parts = [part and self.wrap_callable(part) for part in (prop.fget, prop.fset, prop.fdel)]
        wrapper = type(prop)(*parts, doc=prop.__doc__)
        if hasattr(prop, "__name__") and not hasattr(wrapper, "__name__"):
            wrapper.__name__ = prop.__name__
        return wrapper

    def _wrap_function(self, func):
        if inspect.isasyncgenfunction(func):
            wrapper = _wrap_async_generator(self, func)
        elif inspect.iscoroutinefunction(func):
            wrapper = _wrap_coroutine(self, func)
        elif inspect.isgeneratorfunction(func):
            wrapper = _wrap_generator(self, func)
        else:
            wrapper = _wrap_plain(self, func)
        inner = getattr(func, _MARKER, (None, func))[1]
        setattr(wrapper, _MARKER, (id(self), inner))
        return wrapper

    def _wrap_members(self, namespace, members):
        failed = {}
        for name, member in members.items():
            wrapper = self.wrap_callable(member)
            try:
                if wrapper is not member:
                    setattr(namespace, name, wrapper)
            except (TypeError, AttributeError):
                failed[name] = member
        if failed:
            warnings.warn(f"cannot wrap {len(failed)} attribute(s) of {namespace!r} "
                          f"(`{{attr: value}}`): {failed!r}", stacklevel=3)

    def _already_a_wrapper(self, func):
        return getattr(func, _MARKER, (None,))[0] == id(self)

    # ---- recording

    def enable(self):
        """Start recording."""
        self._collector.enable(False)

    def disable(self):
        """Stop recording. Lines that are still open end now."""
        self._collector.disable()

    def enable_by_count(self):
        """Start recording unless it is on; each call needs a ``disable_by_count()``."""
        with _lock:
            if self.enable_count == 0:
                self.enable()
            self.enable_count += 1

    def disable_by_count(self):
        """Take back one ``enable_by_count()``; the last one stops recording."""
        with _lock:
            if self.enable_count > 0:
                self.enable_count -= 1
                if self.enable_count == 0:
                    self.disable()

    def __enter__(self):
        self.enable_by_count()
        return self

    def __exit__(self, *exc_info):
        self.disable_by_count()

    def run(self, cmd):
        """Record a statement in the namespace of ``__main__``."""
        import __main__

        return self.runctx(cmd, __main__.__dict__, __main__.__dict__)

    def runctx(self, cmd, globals, locals):
        """Record a statement in the given namespaces."""
        with self:
            exec(cmd, globals, locals)
        return self

    def runcall(self, func, /, *args, **kw):
        """Record one call and return its result."""
        with self:
            return func(*args, **kw)

    # ---- results

    def get_stats(self):
        """The line times so far, as ``LineStats``; functions that never ran have no lines."""
        timings = {_label(code): [] for code in self._codes.values()}
        snapshots = self._collector.snapshots()
        try:
            recorded = snapshots and from_pickle(_agent.convert(snapshots, "lprof"))
        except ValueError as error:
            if "no lines" not in str(error):
                raise
            recorded = None
        if recorded:  # nested functions come along; what is part of a line stays there
            timings.update((key, rows) for key, rows in recorded.timings.items()
                           if key in timings or not key[2].endswith(_PARTS_OF_LINES))
        return LineStats(timings, recorded.unit if recorded else self.timer_unit)

    def dump_stats(self, filename):
        """Write the result: ``x.fathom`` becomes a recording, any other name a .lprof file."""
        if os.fspath(filename).endswith(".fathom"):
            _agent.save(self._collector.snapshots(), filename, True)
        else:
            self.get_stats().to_file(filename)

    def print_stats(self, stream=None, output_unit=None, stripzeros=False, details=True,
                    summarize=False, sort=False, rich=False, *, config=None):
        """Print the table of line_profiler."""
        self.get_stats().print(stream, output_unit, stripzeros, details, summarize, sort, rich,
                               config=config)

    @property
    def code_map(self):
        """{code: {line: {"lineno", "nhits", "total_time"}}}"""
        timings = self.get_stats().timings
        return {code: {line: {"lineno": line, "nhits": hits, "total_time": time}
                       for line, hits, time in timings[_label(code)]}
                for code in self._codes.values()}


# ---- wrappers


def _wrap_plain(profiler, func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        profiler.enable_by_count()
        try:
            return func(*args, **kwargs)
        finally:
            profiler.disable_by_count()

    return wrapper


def _wrap_coroutine(profiler, func):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        profiler.enable_by_count()
        try:
            return await func(*args, **kwargs)
        finally:
            profiler.disable_by_count()

    return wrapper


def _wrap_generator(profiler, func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        generator = func(*args, **kwargs)
        go_on, value = generator.send, None
        while True:
            try:
                with profiler:
                    item = go_on(value)
            except StopIteration as end:
                return end.value
            try:
                go_on, value = generator.send, (yield item)
            except GeneratorExit:
                with profiler:
                    generator.close()
                raise
            except BaseException as error:
                go_on, value = generator.throw, error

    return wrapper


def _wrap_async_generator(profiler, func):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        generator = func(*args, **kwargs)
        go_on, value = generator.asend, None
        while True:
            try:
                with profiler:
                    item = await go_on(value)
            except StopAsyncIteration:
                return
            try:
                go_on, value = generator.asend, (yield item)
            except GeneratorExit:
                with profiler:
                    await generator.aclose()
                raise
            except BaseException as error:
                go_on, value = generator.athrow, error

    return wrapper


# ---- what belongs to what

_C_CALLABLES = (
    types.BuiltinFunctionType,
    types.ClassMethodDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
)

_PARTS_OF_LINES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

_POLICIES = ("exact", "children", "descendants", "siblings", "none")
_DEFAULT_POLICIES = {"func": "siblings", "class": "siblings", "module": "exact"}


def _label(code):
    return (code.co_filename, code.co_firstlineno, code.co_qualname)


def _copy_dict(old, new):
    for name, value in getattr(old, "__dict__", {}).items():
        new.__dict__.setdefault(name, value)
    return new


def _functions_or_type_error(obj):
    if not callable(obj) and not isinstance(
            obj, (classmethod, staticmethod, property, functools.partialmethod,
                  functools.cached_property)):
        raise TypeError(f"func = {obj!r}: cannot get functions from {type(obj)} objects")
    return functions_in(obj)


def _members_of(cls, member):
    """Is this member of a class something to wrap: functions of its own, or a class inside it?"""
    if isinstance(member, type):
        return _in_scope("children", cls, member, "class")
    try:
        functions = _functions_or_type_error(member)
    except TypeError:
        return False
    return any(_in_scope("children", cls, function, "func") for function in functions)


def _policies(policy):
    if policy is None:
        policy = _DEFAULT_POLICIES
    if isinstance(policy, str):
        policy = dict.fromkeys(("func", "class", "module"), policy)
    policy = {kind: str(getattr(policy[kind], "value", policy[kind])).lower()
              for kind in ("func", "class", "module")}
    for value in policy.values():
        if value not in _POLICIES:
            raise ValueError(f"{value!r} is not a scoping policy; there are {', '.join(_POLICIES)}")
    return policy


def _below(name, parent):
    return name == parent or name.startswith(parent + ".")


def _in_scope(policy, namespace, thing, kind):
    """Does a function, class or module found in a class or module belong to it?"""
    if policy == "none":
        return not (kind == "module" and isinstance(namespace, type))
    if policy == "exact" and kind != "func":
        return False
    if isinstance(namespace, type):
        if kind == "module" or thing.__module__ != namespace.__module__:
            return False
        inside = namespace.__qualname__ + "."
        if policy == "siblings":
            return True
        if policy == "descendants":
            return thing.__qualname__.startswith(inside)
        return thing.__qualname__ == inside + thing.__name__
    parent = namespace.__name__.rpartition(".")[0]
    if kind == "module":
        if policy == "children":
            return thing.__name__.rpartition(".")[0] == namespace.__name__
        above = parent if policy == "siblings" else namespace.__name__
        return bool(above) and thing.__name__.startswith(above + ".")
    module = thing.__module__ or ""
    if policy in ("exact", "children"):
        return module == namespace.__name__
    if policy == "siblings" and parent and _below(module, parent):
        return True
    return _below(module, namespace.__name__)
