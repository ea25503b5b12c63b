"""Functions, files and source that try to be more than text: markup, quotes, line ends, right-to-left marks, length."""

import sys
import types

NAMES = [
    '<script>window.stolen = 1</script>',
    '"><img src=x onerror="window.stolen = 2">',
    "it's 'quoted' & \"doubly\" ]]>",
    'two\nlines\rand\ttabs\x00\x1b[31m',
    '\u202egnisrever\u202c \u05d0\u05d1\u05d2',
    'L' * 10_000,
    '\U0001f525 fire',
]


def spin():
    total = 0
    for i in range(3000):
        total += i * i
    return total


def renamed(name):
    def call():
        # </script><script>window.stolen = 3</script> <!-- in the source -->
        return spin()

    code = call.__code__
    changes = {'co_name': name}
    if sys.version_info >= (3, 11):
        changes['co_qualname'] = name
    return types.FunctionType(code.replace(**changes), globals(), name, None, call.__closure__)


for each in NAMES:
    renamed(each)()
