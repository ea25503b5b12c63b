"""What a traced process tells (src/target/agent/trace), read word by word without the launcher: every sequence is
known by construction of the program."""

import os
import resource
import signal
import subprocess

import pytest
import trace_words
from trace_words import CHUNK_BYTES, CHUNKS_AT, FILLING, FULL

NO_C = {"c_calls": 0}


@pytest.fixture
def trace(python, tmp_path):
    def call(code, *arguments, **options):
        return trace_words.trace(python, tmp_path, code, *arguments, **options)

    return call


def has_raise_events(python):
    return "python3.11" not in os.path.basename(os.path.realpath(python))


# ---- calls


def test_nested_calls_with_and_without_c(trace):
    code = """
        def leaf(): return len("abc")
        def mid(n):
            for i in range(n): leaf()
        mid(2)
    """
    size = "<built-in method builtins.len>"
    leaf = ["call leaf", f"call {size}", f"return {size}", "return leaf"]
    (one,) = trace(code)
    assert one.told() == ["call <module>", "call mid", *leaf, *leaf, "return mid", "return <module>"]
    (one,) = trace(code, **NO_C)
    leaf = ["call leaf", "return leaf"]
    assert one.told() == ["call <module>", "call mid", *leaf, *leaf, "return mid", "return <module>"]
    assert one.defs.nodes == 0, "there is no tree beside the trace"
    assert one.defs.flags & 32 and one.lost_events == 0


def test_time_is_exact_to_a_unit_and_long_gaps_are_told(trace):
    (one,) = trace("""
        import time
        def sleeps():
            time.sleep(0.02)
        sleeps(); sleeps()
    """)
    events, chunk = one.main(), one.chunks[0]
    begins = [e for e in events if e.kind == "call" and one.defs.functions[e.numbers[0]] == "sleeps"]
    assert len(begins) == 2
    apart = begins[1].ticks - begins[0].ticks
    assert any(e.kind == "time" for e in events[1:]), "more than a word can say"
    assert chunk.ns > 0 and chunk.ticks > 0 and apart > 0
    # 20 ms at the least; a tick is between 0.1 and 50 ns on machines there are
    assert apart > 20_000_000 / 50


def test_recursion_5000_deep(trace):
    (one,) = trace("""
        import sys
        sys.setrecursionlimit(20_000)
        def down(n):
            if n: down(n - 1)
        down(4_999)
    """, **NO_C)
    told = one.told()
    assert told == ["call <module>", *["call down"] * 5000, *["return down"] * 5000, "return <module>"]


# ---- generators


def test_generators_yield_go_on_and_return(trace):
    (one,) = trace("""
        def numbers():
            yield 1
            yield 2
        def outer():
            yield from numbers()
        for each in outer(): pass
    """, **NO_C)
    step = ["resume outer", "resume numbers"]
    assert one.told() == [
        "call <module>", "call outer", "call numbers", "yield numbers", "yield outer",
        *step, "yield numbers", "yield outer", *step, "return numbers", "return outer", "return <module>"]


def test_how_long_a_generator_waited(trace):
    (one,) = trace("""
        import time
        def waits():
            yield
        each = waits()
        next(each)
        time.sleep(0.02)
        next(each, None)
    """, **NO_C)
    events = one.main()
    at = next(i for i, e in enumerate(events) if e.kind == "resume")
    waited, stopped = events[at - 1], next(e for e in events if e.kind == "yield")
    assert waited.kind == "resumed_after"
    units = waited.numbers[0] | (waited.numbers[1] << 32 if len(waited.numbers) == 2 else 0)
    assert abs((events[at].ticks - stopped.ticks) - (units << one.shift)) <= 4 << one.shift


def test_a_generator_that_is_closed_or_thrown_into(trace):
    (one,) = trace("""
        def waits():
            try:
                yield
            except KeyError:
                yield
        closed, thrown = waits(), waits()
        next(closed); next(thrown)
        def close(): closed.close()
        def throw(): thrown.throw(KeyError())
        close()
        throw()
        del closed, thrown
    """, **NO_C)
    first = ["call waits", "yield waits"]
    said = one.told()
    assert said[:5] == ["call <module>", *first, *first]
    assert said[5:9] == ["call close", "throw waits", "unwind waits", "return close"]
    assert said[9:13] == ["call throw", "throw waits", "yield waits", "return throw"]
    assert said[13:] == ["throw waits", "unwind waits", "return <module>"], "the one that was dropped"


def test_generators_that_the_collector_closes(trace):
    (one,) = trace("""
        import gc
        gc.disable()
        def waits(me):
            try: yield
            finally: me = 1
        def drop():
            for i in range(3):
                each = waits(None)
                next(each)
                cycle = [each]; cycle.append(cycle)
        drop()
        def collect(): gc.collect()
        collect()
    """, **NO_C)
    said = one.told()
    assert said[said.index("call collect"):] == [
        "call collect", *["throw waits", "unwind waits"] * 3, "return collect", "return <module>"]


# ---- exceptions


def test_calls_that_end_by_an_exception(trace):
    (one,) = trace("""
        def raises(): raise ValueError
        def passes():
            raises()
        def catches():
            try: passes()
            except ValueError: pass
        catches()
        def index():
            try: [].index(1)
            except ValueError: pass
        index()
    """)
    said = one.told()
    index = "<method 'index' of 'list' objects>"
    assert said == [
        "call <module>", "call catches", "call passes", "call raises", "unwind raises", "unwind passes",
        "return catches", "call index", f"call {index}", f"unwind {index}", "return index", "return <module>"]


def test_an_exception_is_told_once(trace):
    (one,) = trace("""
        import queue
        class Own(Exception): pass
        def raises(): raise Own
        def again():
            try: raises()
            except Own as e: raise
        def passes(): again()
        def keys(): return {}["x"]
        def ends():
            yield
        def work():
            try: passes()
            except Own: pass
            for i in range(2):
                try: keys()
                except KeyError: pass
            for each in ends(): pass
            it = iter([])
            try: next(it)
            except StopIteration: pass
            try: queue.SimpleQueue().get(block=False)
            except queue.Empty: pass
        work()
    """, **NO_C)
    said = one.told(raises=True)
    said = said[said.index("call work"):]  # importing raises some, too
    assert [word for word in said if word.startswith("raise ")] == [
        "raise Own", "raise KeyError", "raise KeyError", "raise _queue.Empty"]
    assert said[said.index("raise Own") - 1:][:3] == ["call raises", "raise Own", "unwind raises"]


# ---- collections


def test_collections_and_what_runs_in_them(trace):
    (one,) = trace("""
        import sys
        assert "gc" not in sys.modules
        import gc
        gc.disable()
        gc.collect()
        class Cycle:
            def __del__(self): ends()
        def ends(): pass
        for i in range(3):
            c = Cycle(); c.me = c
        del c
        def collect(): gc.collect(1)
        collect()
    """, **NO_C)
    events = one.main()
    at = next(i for i, e in enumerate(events) if e.kind == "call" and one.defs.functions[e.numbers[0]] == "collect")
    rest = [e for e in events[at:] if e.kind not in ("time", "resumed_after")]
    names = [one.defs.functions[e.numbers[0]] if e.kind == "call" else e.kind for e in rest]
    assert names[:2] == ["collect", "gc_begin"] and rest[1].numbers == (1,)
    end = names.index("gc_end")
    assert names[2:end] == ["Cycle.__del__", "ends", "return", "return"] * 3
    assert rest[end].numbers[0] >= 3 and rest[end].numbers[1] == 0
    assert names[end + 1] == "return"


# ---- tasks


def tasks_of(one):
    """What was told of tasks, by their last names."""
    events = [e for e in one.main() if e.kind.startswith("task")]
    names = {0: "nobody"}
    for event in events:
        if event.kind in ("task_new", "task_name"):
            names[event.numbers[0]] = one.defs.names[event.numbers[1]]
    out = []
    for event in events:
        if event.kind == "task_new":
            out.append(f"new {names[event.numbers[0]]} by {names[event.numbers[2]]}")
        elif event.kind == "task_done":
            out.append(f"done {names[event.numbers[0]]}")
        elif event.kind != "task_name":
            out.append(f"{event.kind[5:]} {' '.join(names[n] for n in event.numbers)}")
    return out


@pytest.mark.parametrize("c_calls", [1, 0])
@pytest.mark.parametrize("written_in", ["C", "Python"])
def test_tasks_of_asyncio(trace, written_in, c_calls):
    (one,) = trace("""
        import asyncio, sys
        async def child():
            await asyncio.sleep(0)
        async def inner(task):
            await task
        async def main():
            if sys.argv[1] == "Python":
                asyncio.get_running_loop().set_task_factory(lambda loop, coro, **more: asyncio.tasks._PyTask(coro, loop=loop, **more))
            asyncio.current_task().set_name("main")
            one = asyncio.create_task(child(), name="one")
            await inner(one)
        asyncio.run(main())
    """, written_in, c_calls=c_calls)
    said = tasks_of(one)
    assert said[0].startswith("new ") and said[0].endswith(" by nobody")
    main = said[0].split()[1]
    end = said.index(f"done {main}") + 2
    assert said[1:end] == [
        f"step {main}", f"new one by {main}", f"awaits {main} one", "step nobody",
        "step one", "awaits one nobody", "step nobody", "step one", "done one", "step nobody",
        f"step {main}", f"done {main}", "step nobody"]


def test_a_task_that_begins_before_it_is_returned(trace, python):
    if not has_raise_events(python):
        pytest.skip("there are none before 3.12")
    (one,) = trace("""
        import asyncio
        async def ends(): pass
        async def waits(): await asyncio.sleep(0)
        async def main():
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            first = asyncio.create_task(ends())
            second = asyncio.create_task(waits())
            await second
        asyncio.run(main())
    """, **NO_C)
    said = tasks_of(one)
    main = said[0].split()[1]
    first, second = (word.split()[1] for word in said[2:] if word.startswith("new ") and word.endswith(f"by {main}"))
    end = said.index(f"done {main}") + 2
    assert said[1:end] == [
        f"step {main}", f"new {first} by {main}", f"step {first}", f"done {first}", f"step {main}",
        f"new {second} by {main}", f"step {second}", f"awaits {second} nobody", f"step {main}",
        f"awaits {main} {second}", "step nobody", f"step {second}", f"done {second}", "step nobody",
        f"step {main}", f"done {main}", "step nobody"]


def test_eager_tasks_that_are_written_in_python(trace, python):
    """One begins inside the step of a task that is written in C."""
    if not has_raise_events(python):
        pytest.skip("there are none before 3.12")
    (one,) = trace("""
        import asyncio
        async def waits(): await asyncio.sleep(0)
        async def main():
            asyncio.current_task().set_name("main")
            asyncio.get_running_loop().set_task_factory(asyncio.create_eager_task_factory(asyncio.tasks._PyTask))
            await asyncio.create_task(waits(), name="eager")
        asyncio.run(main())
    """, **NO_C)
    said = tasks_of(one)
    main = said[0].split()[1]
    end = said.index(f"done {main}") + 2
    assert said[1:end] == [
        f"step {main}", f"new eager by {main}", "step eager", "awaits eager nobody", f"step {main}",
        f"awaits {main} eager", "step nobody", "step eager", "done eager", "step nobody",
        f"step {main}", f"done {main}", "step nobody"]


def test_a_task_that_awaits_what_raises(trace):
    """It is thrown into the innermost coroutine; those around it go on one by one, by an exception or by what it returns."""
    (one,) = trace("""
        import asyncio
        async def inner(future, catches):
            try:
                await future
            except ValueError:
                if not catches: raise
            return 1
        async def middle(future, catches):
            return await inner(future, catches)
        async def outer():
            asyncio.current_task().set_name("outer")
            for catches in True, False:
                future = asyncio.get_running_loop().create_future()
                asyncio.get_running_loop().call_soon(future.set_exception, ValueError())
                try:
                    await middle(future, catches)
                except ValueError:
                    pass
            await asyncio.sleep(0)
        asyncio.run(outer())
    """, **NO_C)
    said = tasks_of(one)
    name = said[0].split()[1]
    assert said.count(f"new {name} by nobody") == said.count(f"done {name}") == 1
    # Begun; inner, middle, outer after what was caught; the same after what was not; after the sleep.
    assert said[:said.index(f"done {name}")].count(f"step {name}") == 1 + 3 + 3 + 1


def test_a_task_at_the_place_of_another(trace):
    """Made by the loop, where one was that was not: who made it is told all the same."""
    (one,) = trace("""
        import asyncio
        async def child(): pass
        async def main():
            asyncio.current_task().set_name("main")
            direct, again = set(), 0
            for i in range(40):
                tasks = []
                for n in range(i, i + 50):
                    if n // 3 % 2:
                        tasks.append(asyncio.Task(child(), name="direct"))
                        direct.add(id(tasks[-1]))
                    else:
                        tasks.append(asyncio.create_task(child(), name="made"))
                        again += id(tasks[-1]) in direct
                while tasks: await tasks.pop()
            assert again
        asyncio.run(main())
    """, **NO_C)
    said = tasks_of(one)
    direct = sum(n // 3 % 2 for i in range(40) for n in range(i, i + 50))
    assert said.count("new made by main") == said.count("done made") == 2000 - direct
    assert said.count("new direct by nobody") == said.count("done direct") == direct


# ---- threads


def test_threads_have_chunks_and_names_of_their_own(trace):
    (one,) = trace("""
        import threading
        def work(n):
            for i in range(n): leaf()
        def leaf(): pass
        for n in range(1, 4):
            t = threading.Thread(target=work, args=(n,), name=f"worker-{n}")
            t.start(); t.join()
    """, **NO_C)
    assert one.thread_numbers() == [1, 2, 3, 4]
    assert one.defs.threads == {1: "MainThread", 2: "worker-1", 3: "worker-2", 4: "worker-3"}
    for n in range(1, 4):
        assert one.told(n + 1) == ["call work", *["call leaf", "return leaf"] * n, "return work"]
        assert one.open == []
        (chunk,) = one.chunks_of(n + 1)
        assert (chunk.state, chunk.last) == (FULL, 1)
    assert one.chunks_of(1)[0].state == FILLING


def test_more_threads_than_chunks(trace):
    (one,) = trace("""
        import threading
        threading.stack_size(256 * 1024)
        held = threading.Event()
        def work():
            held.wait()
        threads = [threading.Thread(target=work) for i in range(300)]
        for t in threads: t.start()
        held.set()
        for t in threads: t.join()
    """, drain=True, **NO_C)
    assert len(one.thread_numbers()) == 301 and one.lost_events == 0
    for number in one.thread_numbers()[1:]:
        assert one.calls(number)["work"] == 1


def test_a_thread_that_never_ends(trace):
    (one,) = trace("""
        import threading, time
        begun = threading.Event()
        def waits():
            begun.set()
            threading.Event().wait()
        threading.Thread(target=waits, daemon=True).start()
        begun.wait()
    """, **NO_C)
    assert one.told(2, "program.py") == ["call waits"]


# ---- processes


def test_fork_in_the_middle_of_calls(trace):
    parent, child = trace("""
        import os
        def inner():
            pid = os.fork()
            if pid == 0:
                after()
                os._exit(0)
            os.waitpid(pid, 0)
        def after(): pass
        def outer(): inner()
        outer()
    """, **NO_C)
    assert child.defs.parent == parent.pid
    assert parent.told() == [
        "call <module>", "call outer", "call inner", "return inner", "return outer", "return <module>"]
    assert child.told() == [
        "open <module>", "open outer", "open inner", "call after", "return after"]
    assert child.open == ["<module>", "outer", "inner"]


def test_fork_with_a_full_stack_and_many_children(trace):
    found = trace("""
        import os
        def child(): pass
        def deep(n):
            if n: return deep(n - 1)
            for i in range(3):
                pid = os.fork()
                if pid == 0:
                    child()
                    os._exit(0)
                os.waitpid(pid, 0)
        deep(100)
    """, **NO_C)
    assert len(found) == 4
    for each in found[1:]:
        assert each.told() == ["open <module>", *["open deep"] * 101, "call child", "return child"]


def test_exec_begins_another_trace(trace):
    first, second = trace("""
        import os, sys
        def before(): pass
        def after(): pass
        if len(sys.argv) > 1:
            after()
        else:
            before()
            os.execv(sys.executable, [sys.executable, __file__, "again"])
    """, **NO_C)
    assert first.pid == second.pid
    assert first.told() == ["call <module>", "call before", "return before"]
    assert second.told() == ["call <module>", "call after", "return after", "return <module>"]


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_sudden_end_loses_nothing(trace, end):
    (one,) = trace(f"""
        import os, signal
        def leaf(): pass
        def work():
            for i in range(30_000): leaf()
            {end}
        work()
    """, status=None, **NO_C)
    assert one.done.returncode in (3, -signal.SIGKILL)
    assert one.told() == ["call <module>", "call work", *["call leaf", "return leaf"] * 30_000]
    assert one.open == ["<module>", "work"]


def test_interpreters_inside_are_left_alone(trace, python):
    (one,) = trace("""
        try:
            import _interpreters as inner
        except ImportError:
            import _xxsubinterpreters as inner
        def before(): pass
        def after(): pass
        before()
        number = inner.create()
        getattr(inner, "exec", getattr(inner, "run_string", None))(number, "def hidden(): pass\\nhidden()")
        inner.destroy(number)
        after()
    """, **NO_C)
    assert one.told() == ["call <module>", "call before", "return before", "call after", "return after",
                          "return <module>"]


# ---- no room


def small_file(chunks):
    """Room for that many chunks: a larger file is refused."""
    def limit():
        size = CHUNKS_AT + chunks * CHUNK_BYTES
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


MANY = """
    import gc
    gc.disable()
    def leaf(): pass
    def work():
        for i in range(200_000): leaf()
    def after(): pass
    work()
    after()
"""


def test_without_room_the_program_waits(trace):
    (one,) = trace(MANY, drain=True, limit=small_file(6), **NO_C)
    assert one.told() == ["call <module>", "call work", *["call leaf", "return leaf"] * 200_000, "return work",
                          "call after", "return after", "return <module>"]
    assert one.lost_events == 0
    waits = [e for e in one.main() if e.kind == "waited"]
    assert bool(waits) == bool(one.waited_ticks)
    assert sum(e.numbers[0] | e.numbers[1] << 32 for e in waits) == one.waited_ticks


def test_what_is_dropped_is_counted(trace):
    """Nobody reads: the first chunks are whole, and every other event is counted."""
    (one,) = trace(MANY, trace="drop", limit=small_file(6), **NO_C)
    told = one.told()
    assert told == ["call <module>", "call work", *(["call leaf", "return leaf"] * 200_000)[:len(told) - 2]]
    everything = trace(MANY, drain=True, **NO_C)[0].main()
    told_beside = ("time", "resumed_after", "lost", "open", "waited")
    seen, all_of_them = (len([e for e in events if e.kind not in told_beside])
                         for events in (one.main(), everything))
    assert seen + one.lost_events == all_of_them
    assert one.lost_events > 0


def test_after_a_loss_the_open_calls_are_told_again(trace):
    """The program itself says when somebody begins to read."""
    (one,) = trace("""
        import os, mmap, struct, glob
        def leaf(): pass
        def lose():
            for i in range(200_000): leaf()
        def free(path):
            with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
                for i in range(struct.unpack_from("<I", data, 16)[0]):
                    if struct.unpack_from("<I", data, 4096 + i * 64)[0] == 2:
                        begin = 4096 + 256 * 64 + i * 65536
                        data[begin:begin + 65536] = bytes(65536)
                        struct.pack_into("<I", data, 4096 + i * 64, 0)
        def after(): pass
        def outer(path):
            lose()
            free(path)
            for i in range(1000): after()
        folder = glob.escape(os.path.dirname(__file__))
        (path,) = glob.glob(f"{folder}/*/{os.getpid()}.0.trace")
        outer(path)
    """, trace="drop", limit=small_file(6), **NO_C)
    chunks = sorted(one.chunks, key=lambda c: c.sequence)
    events = trace_words.decode(chunks[-1].words, chunks[-1].ticks, one.shift)
    at = next(i for i, e in enumerate(events) if e.kind == "lost")
    lost = events[at].numbers
    count, begin, end = (lost[i] | lost[i + 1] << 32 for i in (0, 2, 4))
    assert 0 < count <= one.lost_events and begin < end
    opened = [one.defs.functions[e.numbers[0]] for e in events[at + 1:] if e.kind == "open"]
    assert opened[:2] == ["<module>", "outer"]
    after = [i for i, e in enumerate(events) if e.kind == "call"
             and one.defs.functions[e.numbers[0]] == "after"]
    assert 0 < len(after) < 1000
    following = {events[i + 1].kind for i in after}
    assert "return" in following and following <= {"return", "gc_begin", "time"}


def test_no_room_for_a_trace_at_all(python, tmp_path):
    """The program runs as ever."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    program, store = tmp_path / "program.py", tmp_path / "run"
    store.mkdir()
    program.write_text("print('as ever')")
    done = subprocess.run([python, str(program)], env=trace_words.environment(store, {}), preexec_fn=limit,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "as ever\n", "")


# ---- choosing

CHOSEN = """
    import time
    def leaf(): pass
    def short():
        for i in range(3): leaf()
    def long():
        short()
        time.sleep(0.05)
        short()
    def twice():
        long(); long()
    twice()
"""


def test_calls_that_are_too_deep_are_hidden(trace):
    (one,) = trace(CHOSEN, max_depth=3, **NO_C)
    assert one.told() == ["call <module>", "call twice", "call long", "return long", "call long", "return long",
                          "return twice", "return <module>"]


def test_functions_that_are_excluded_are_hidden_and_what_they_call_is_not(trace):
    (one,) = trace(CHOSEN, exclude="short,long", **NO_C)
    leaves = ["call leaf", "return leaf"] * 12
    assert one.told() == ["call <module>", "call twice", *leaves, "return twice", "return <module>"]
    (one,) = trace(CHOSEN, include="short,twice", **NO_C)
    assert one.told() == ["call twice", *["call short", "return short"] * 4, "return twice"]


def test_calls_that_are_too_short_are_hidden(trace):
    """`long` sleeps; what is shorter than 20 ms may be seen only if the machine is that slow."""
    (one,) = trace(CHOSEN, min_ns=20_000_000)
    told = one.told()
    sleep = "<built-in method time.sleep>"
    wanted = ["call <module>", "call twice",
              *["call long", f"call {sleep}", f"return {sleep}", "return long"] * 2, "return twice",
              "return <module>"]
    slow = {"call short", "return short", "call leaf", "return leaf"}
    assert [word for word in told if word not in slow] == wanted
    events = one.main()
    spans, stack = [], []
    for event in events:
        if event.kind == "call":
            stack.append((one.defs.functions[event.numbers[0]], event.ticks))
        elif event.kind == "return":
            name, begin = stack.pop()
            spans.append((name, event.ticks - begin))
    sleeps = [length for name, length in spans if name == sleep]
    assert all(length >= min(sleeps) / 4 for name, length in spans), "20 of 50 ms, with time for a coarse clock"


def test_the_programs_own_profiler_is_told_of_what_it_would_be(trace):
    (one,) = trace("""
        import sys
        def leaf(): pass
        said = []
        def profiler(frame, what, arg):
            said.append((what, frame.f_code.co_name))
        sys.setprofile(profiler)
        leaf()
        sys.setprofile(None)
        assert ("call", "leaf") in said and ("return", "leaf") in said, said
    """, **NO_C)
    assert [w for w in one.told() if "leaf" in w] == ["call leaf", "return leaf"]
