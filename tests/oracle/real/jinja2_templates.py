"""Jinja: compiling (a lexer of generators, a recursive parser) and rendering (a generator under join)."""
# needs: jinja2

from _loop import repeat

import jinja2

SOURCE = """{% macro cell(x) %}<td>{{ x.name|upper }}{% if x.number > 3 %}: {{ x.number + 1 }}{% endif %}</td>
{% endmacro %}{% for row in rows %}<tr class="{{ loop.cycle('a', 'b') }}">{% for x in row %}{{ cell(x) }}
{% endfor %}</tr>{% endfor %}"""
rows = [[{"name": f"n{i}{j}", "number": j} for j in range(8)] for i in range(15)]
environment = jinja2.Environment()


def step():
    template = environment.from_string(SOURCE)
    for _ in range(5):
        template.render(rows=rows)


repeat(step)
