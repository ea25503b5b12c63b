"""Python's tokenizer over a module of the standard library: one generator, in C since 3.12."""

import io
import textwrap
import tokenize

from _loop import repeat

with open(textwrap.__file__, encoding="utf-8") as file:
    source = file.read()


def step():
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    tokenize.untokenize((token.type, token.string) for token in tokens)


repeat(step)
