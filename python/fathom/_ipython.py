"""``%load_ext fathom``: ``%lprun``, ``%prun``, ``%memit``, ``%mprun`` and ``%%fathom`` in IPython and Jupyter.

The first four take the options of the magics they are named after: line_profiler's, IPython's own and
memory_profiler's.
IPython is imported here and nowhere else in the package.
"""

import ast
import builtins
import contextlib
import gc
import io
import pstats
import sys
from pathlib import Path

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class
from IPython.core.page import page
from IPython.utils.ipstruct import Struct

from fathom import _memory_table
from fathom._line_profiler import LineProfiler
from fathom._memory import memory_usage
from fathom._memory_block import memory
from fathom._profile import Profile

_REPLACED = "_fathom_replaced_magics"


def load(shell):
    """Register the magics; remember those of the same name."""
    if not hasattr(shell, _REPLACED):
        setattr(shell, _REPLACED, {
            (kind, name): shell.magics_manager.magics[kind].get(name)
            for kind, name in _NAMES})
    shell.register_magics(FathomMagics)


def unload(shell):
    """Put back what was there before."""
    for (kind, name), magic in getattr(shell, _REPLACED, {}).items():
        if magic is None:
            shell.magics_manager.magics[kind].pop(name, None)
        else:
            shell.magics_manager.magics[kind][name] = magic
    if hasattr(shell, _REPLACED):
        delattr(shell, _REPLACED)


_NAMES = [("line", "lprun"), ("line", "prun"), ("cell", "prun"), ("line", "memit"),
          ("cell", "memit"), ("line", "mprun"), ("cell", "fathom")]


class MemitResult:
    """What ``%memit -o`` returns, as memory_profiler's."""

    def __init__(self, mem_usage, baseline, repeat, timeout, interval, include_children):
        self.mem_usage = mem_usage
        self.baseline = baseline
        self.repeat = repeat
        self.timeout = timeout
        self.interval = interval
        self.include_children = include_children

    def __str__(self):
        highest = max(self.mem_usage)
        return f"peak memory: {highest:.02f} MiB, increment: {highest - self.baseline:.02f} MiB"

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"<MemitResult : {self}>")


@magics_class
class FathomMagics(Magics):
    """What ``%load_ext fathom`` adds."""

    @line_magic
    def lprun(self, line=""):
        """Run a statement and show the time of every line of the chosen functions.

            %lprun -f FUNCTION [-f FUNCTION …] [-m MODULE …] [options] STATEMENT

        -f EXPRESSION   a function, method, class … whose lines are recorded; without spaces
        -m MODULE       all functions of a module
        -D FILE         write the result: x.fathom, or x.lprof for line_profiler
        -T FILE         write the table as text
        -r              return the LineProfiler
        -u SECONDS      unit of the times in the table
        -z, -s          leave out functions that did not run
        """
        options, statement = self._options(line, "rszf:m:D:T:u:")
        profiler = self._profiler(options)
        with _profile_in_builtins(profiler):
            output, message = _run(profiler, statement, self.shell.user_ns, options)
        page(output)
        return self._finish(profiler, options, output, message)

    @cell_magic("fathom")
    def fathom_cell(self, line, cell):
        """Run the cell and show the time of every line of it and of the functions it defines.

            %%fathom [-f FUNCTION …] [-m MODULE …] [-D FILE] [-T FILE] [-r] [-u SECONDS]

        Options as of %lprun. Functions that did not run are left out; the value of the last
        expression is displayed as always.
        """
        options, rest = self._options(line, "rszf:m:D:T:u:")
        if rest.strip():
            raise UsageError(f"%%fathom takes options only, not {rest.strip()!r}")
        options["z"] = True
        profiler = self._profiler(options)
        code, value_name = self._compile(cell)
        profiler._add_code(code)
        namespace = self.shell.user_ns
        with _profile_in_builtins(profiler):
            output, message = _run(profiler, code, namespace, options)
        value = namespace.pop(value_name, None)
        if value is not None:
            self.shell.displayhook(value)
        sys.stdout.flush()
        print(output)
        return self._finish(profiler, options, output, message)

    @line_cell_magic
    def prun(self, line="", cell=None):
        """Run a statement or cell and show the time of every function; IPython's %prun, by Fathom.

            %prun [options] STATEMENT

        -l LIMIT   what is printed: a number of lines, a fraction, or a pattern; may be repeated
        -s KEY     sort by it (calls, cumulative, time …, as in pstats); may be repeated
        -r         return the pstats.Stats
        -T FILE    write the table as text
        -D FILE    write the profile: x.fathom, or any other name for pstats
        -q         do not show the table
        """
        options, statement = self.parse_options(line, "D:l:rs:T:q", list_all=True, posix=False)
        options.merge(Struct(D=[""], l=[], s=["time"], T=[""]))
        if cell is not None:
            statement += "\n" + cell
        statement = self.shell.transform_cell(statement)
        profiler, message = Profile(), ""
        try:
            profiler.runctx(statement, self.shell.user_ns, self.shell.user_ns)
        except SystemExit:
            message = "*** SystemExit exception caught in code being profiled."
        out = io.StringIO()
        stats = pstats.Stats(profiler, stream=out).strip_dirs().sort_stats(*options.s)
        stats.print_stats(*map(_limit, options.l))
        stats.stream = sys.stdout
        output = out.getvalue().rstrip()
        if "q" not in options:
            page(output)
        print(message, end=" ")
        if options.D[0]:
            profiler.dump_stats(options.D[0])
            print(f"\n*** Profile stats marshalled to file {options.D[0]!r}.{message}")
        if options.T[0]:
            Path(options.T[0]).write_text(output, encoding="utf-8")
            print(f"\n*** Profile printout saved to text file {options.T[0]!r}.{message}")
        return stats if "r" in options else None

    @line_cell_magic
    def memit(self, line="", cell=None):
        """Run a statement or cell and show how high the memory of the process got.

            %memit [options] STATEMENT
            %%memit [options] SETUP
            CELL

        -r N   run it N times, and take the highest
        -t S   stop after S seconds
        -i S   measure every S seconds; default 0.1
        -c     add the memory of child processes
        -o     return the result
        -q     do not show it

        As memory_profiler's %memit: the setup is run, but not measured; memory is what is resident.
        """
        options, statement = self.parse_options(line, "r:t:i:coq", posix=False, strict=False)
        setup, statement = ("pass", statement) if cell is None else (statement, cell)
        repeat = max(1, int(options.get("r", 1)))
        timeout = int(options.get("t", 0)) or None
        interval = float(options.get("i", 0.1))
        namespace = self.shell.user_ns
        gc.collect()
        exec(self.shell.transform_cell(setup), namespace)
        code = compile(self.shell.transform_cell(statement), "<memit>", "exec")
        baseline = memory_usage()[0]
        usage = [memory_usage((exec, (code, namespace)), timeout=timeout, interval=interval,
                              max_usage=True, max_iterations=1, include_children="c" in options)
                 for _ in range(repeat)]
        result = MemitResult(usage, baseline, repeat, timeout, interval, "c" in options)
        if "q" not in options:
            print(result)
        return result if "o" in options else None

    @line_magic
    def mprun(self, line=""):
        """Run a statement and show what every line of the chosen functions did to the heap.

            %mprun -f FUNCTION [-f FUNCTION …] [options] STATEMENT

        -f EXPRESSION   a function, method, class … whose lines are recorded; without spaces
        -T FILE         write the table as text
        -r              return the LineProfiler

        As memory_profiler's %mprun, but exact: Increment is all that the line allocated and did not free, the sum
        of its visits; Transient is what one visit needed for a while. Mem usage is what there was after it: under
        `fathom run --memory -m IPython` of the whole process, otherwise of what the statement allocated by Python's
        allocators; what extensions take from malloc is seen there alone.
        """
        options, statement = self._options(line, "rcf:T:")
        if "c" in options:
            raise UsageError("-c: the heap of child processes is theirs; `fathom run --memory` records it with them")
        profiler, message = self._profiler(options), None
        with _memory_recorded(), _profile_in_builtins(profiler):
            try:
                profiler.runctx(self.shell.transform_cell(statement), self.shell.user_ns, self.shell.user_ns)
            except (SystemExit, KeyboardInterrupt) as error:
                message = f"{type(error).__name__} exception caught in code being profiled."
        output = _memory_table.memory_table(profiler)
        page(output)
        return self._finish(profiler, options, output, message)

    # ---- shared

    def _options(self, line, spec):
        """The options, each a list, and the statement with its quotes as they were."""
        escaped = line.replace('"', r"\"").replace("'", r"\"") if "'" not in line else line
        options, statement = self.parse_options(escaped, spec, list_all=True, posix=False)
        if escaped is not line:
            statement = statement.replace(r"\"", '"')
        options.merge(Struct(D=[""], T=[""], f=[], m=[], u=[None]))
        if "s" in options:
            options["z"] = True
        if options.u[0] is not None:
            try:
                options["u"] = [float(options.u[0])]
            except ValueError:
                raise UsageError(f"-u takes a number of seconds, not {options.u[0]!r}") from None
        return options, statement

    def _profiler(self, options):
        profiler = LineProfiler()
        for name in options.f:
            try:
                found = profiler.add_callable(eval(name, self.shell.user_global_ns,
                                                   self.shell.user_ns))
            except Exception as error:
                raise UsageError(f"Could not find function {name}.\n"
                                 f"{type(error).__name__}: {error}") from None
            if not found:
                raise UsageError(f"{name} has no Python code: it is written in C")
        for name in options.m:
            try:
                profiler.add_module(__import__(name, fromlist=[""]))
            except Exception as error:
                raise UsageError(f"Could not find module {name}.\n"
                                 f"{type(error).__name__}: {error}") from None
        return profiler

    def _compile(self, cell):
        """The code of a cell, and the name to which it gives the value of its last expression."""
        value_name = "_fathom_value"
        text = self.shell.transform_cell(cell)
        filename = self.shell.compile.cache(text, self.shell.execution_count, raw_code=cell)
        tree = ast.parse(text, filename)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr) and not text.rstrip().endswith(";"):
            target = ast.Name(value_name, ast.Store())
            tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
            ast.fix_missing_locations(tree)
        return compile(tree, filename, "exec", self.shell.compile.flags, True), value_name

    def _finish(self, profiler, options, output, message):
        if options.D[0]:
            profiler.dump_stats(options.D[0])
            print(f"\n*** Profile stats pickled to file {options.D[0]!r}.")
        if options.T[0]:
            Path(options.T[0]).write_text(output + "\n", encoding="utf-8")
            print(f"\n*** Profile printout saved to text file {options.T[0]!r}.")
        if message:
            print("\n*** " + message)
        return profiler if "r" in options else None


def _run(profiler, statement, namespace, options):
    """Record it; the table as text, and what is to be said about how it ended."""
    message = None
    try:
        profiler.runctx(statement, namespace, namespace)
    except (SystemExit, KeyboardInterrupt) as error:
        message = f"{type(error).__name__} exception caught in code being profiled."
    out = io.StringIO()
    profiler.print_stats(out, output_unit=options.u[0], stripzeros="z" in options)
    return out.getvalue().rstrip(), message


def _limit(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _memory_recorded():
    """A block in which the memory of this process is recorded, if it is not anyway."""
    if _memory_table.is_recorded():
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    try:
        stack.enter_context(memory())
    except (ImportError, OSError, RuntimeError) as error:
        raise UsageError(f"{error}; start this with `fathom run --memory -m IPython` (or jupyter)") from None
    return stack


@contextlib.contextmanager
def _profile_in_builtins(profiler):
    """``@profile`` means this profiler, as kernprof has it."""
    absent = object()
    before = getattr(builtins, "profile", absent)
    builtins.profile = profiler
    try:
        yield
    finally:
        if before is absent:
            del builtins.profile
        else:
            builtins.profile = before
