"""Django's template engine: nodes that render nodes."""
# needs: django

from _loop import repeat

import django
from django.conf import settings
from django.template import Context, Engine

settings.configure(USE_I18N=False)
django.setup()
template = Engine().from_string("""{% for row in rows %}<tr class="{% cycle 'a' 'b' %}">
{% for cell in row %}<td>{{ cell.name|upper }}{% if cell.number > 3 %}: {{ cell.number|add:"1" }}{% endif %}</td>
{% endfor %}</tr>{% endfor %}""")
rows = [[{"name": f"n{i}{j}", "number": j} for j in range(8)] for i in range(15)]

repeat(lambda: template.render(Context({"rows": rows})))
