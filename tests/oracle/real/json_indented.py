"""json.dumps with indent is a recursion of generators under "".join."""

import json

from _loop import repeat

data = {f"key{i}": [{"a": j, "b": [1.5, None, True, "text"], "c": {"d": "e" * j}} for j in range(6)]
        for i in range(12)}

repeat(lambda: json.dumps(data, indent=2, sort_keys=True))
