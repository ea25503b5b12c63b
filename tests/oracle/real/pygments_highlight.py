"""A lexer as generators over regular expressions, and a formatter that reads them."""
# needs: pygments

import textwrap

from _loop import repeat

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

with open(textwrap.__file__, encoding="utf-8") as file:
    source = file.read()

repeat(lambda: highlight(source, PythonLexer(), HtmlFormatter()))
