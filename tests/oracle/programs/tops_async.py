"""Kinds of newest frames below an event loop: each the leaf of a task, through asyncio's step functions in
C, and each with a clock of its own that says it takes nearly all of the task's time. See _kinds.py."""

import asyncio

import oracle

going, now = oracle.going, oracle.now
THREE = (1, 2, 3)


async def coroutine_leaf(count, stamp):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())


async def coroutine_outer(count, stamp):
    await coroutine_leaf(count, stamp)


async def in_task(count, stamp):
    await coroutine_outer(count, stamp)


async def agen_leaf(count, stamp):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


async def in_async_for(count, stamp):
    async for _ in agen_leaf(count, stamp):
        pass


async def compre_leaf(count, stamp):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


async def take(items):
    async for _ in items:
        pass


async def in_async_genexpr(count, stamp):
    await take(x async for x in compre_leaf(count, stamp))


class Manager:
    def __init__(self, count, stamp):
        self.count, self.stamp = count, stamp

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_exception):
        for _ in THREE:
            self.stamp(now())
            x = 0
            for i in range(self.count):
                x += i & 3
            self.stamp(now())


async def in_async_with(count, stamp):
    async with Manager(count, stamp):
        pass


def awaitable_leaf(count, stamp):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
    return
    yield  # which makes it a generator


class Awaitable:
    def __init__(self, count, stamp):
        self.count, self.stamp = count, stamp

    def __await__(self):
        return awaitable_leaf(self.count, self.stamp)


async def in_awaitable(count, stamp):
    """A plain generator is what is awaited."""
    await Awaitable(count, stamp)


def callback_leaf(count, stamp, future):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
    future.set_result(None)


def in_callback(count, stamp, future):
    callback_leaf(count, stamp, future)


KINDS = {
    in_task: ["coroutine_outer", "coroutine_leaf"], in_async_for: ["agen_leaf"],
    in_async_genexpr: ["take", "<genexpr>", "compre_leaf"], in_async_with: ["__aexit__"],
    in_awaitable: ["awaitable_leaf"],
}


async def each(kind, log):
    """One kind, as a task that gives way to the others between its turns."""
    stamp = log.append
    for scale in oracle.scales(10_000, 30_000):
        if going()[0]:
            return
        stamp(now())
        await kind(scale, stamp)
        stamp(now())
        await nap(0)


async def calls(log):
    """The loop itself calls the leaf's caller."""
    stamp, loop = log.append, asyncio.get_running_loop()
    for scale in oracle.scales(10_000, 30_000):
        if going()[0]:
            return
        future = loop.create_future()
        stamp(now())
        in_callback(scale, stamp, future)
        stamp(now())
        await nap(0)


async def everything():
    await asyncio.gather(*(each(kind, log) for kind, log in zip(KINDS, logs)), calls(logs[-1]))


def labels(name):
    return [f"{name} itself", f"{name} leaf"] * 3 + [f"{name} itself"]


nap = asyncio.sleep
names = [kind.__name__ for kind in KINDS] + ["in_callback"]
logs = [oracle.log() for _ in names]
paths = {kind.__name__: ["<module>", "~", "each", kind.__name__, *above]
         for kind, above in KINDS.items()}
paths["in_callback"] = ["<module>", "~", "calls", "in_callback", "callback_leaf"]
others = [["<module>", "~", "each", "in_async_with", name] for name in ("__init__", "__aenter__")]
others += [["<module>", "~", "each", "in_awaitable", name] for name in ("__init__", "__await__")]
# A generator expression is made where it stands, and asyncio hears of asynchronous generators.
others += [paths["in_async_genexpr"][:4] + ["<genexpr>"]]
others += [path + ["~"] for path in (paths["in_async_for"][:4], *(paths["in_async_genexpr"][:length]
                                                                  for length in (4, 5, 6)))]
others += [["<module>", "~", name, "~"] for name in ("each", "calls", "everything")]
oracle.ready([*paths.values(), *others], {},
             tops={name: {"path": path, "leaf": f"{name} leaf", "rest": f"{name} itself"}
                   for name, path in paths.items()})
asyncio.run(everything())
oracle.done(*((labels(name), log) for name, log in zip(names, logs)))
