"""Builtin functions and methods, called from one Python function."""


def work(loops):
    values, word = [], "some text"
    for _ in range(loops):
        for step in range(1000):
            values.append(len(word))
            word.startswith("so")
            abs(step)
            isinstance(step, int)
        values.clear()
