"""Markdown to HTML: regular expressions, and generators under "".join."""
# needs: mistune

from _loop import repeat

import mistune

TEXT = """# Title

Some *emphasis*, some **more**, a [link](http://example.com) and `code`.

- one
- two with *text*
  - nested

> A quote with a word or two.

```
block
```

| a | b |
|---|---|
| 1 | 2 |

""" * 20

repeat(lambda: mistune.html(TEXT))
