"""An HTML parser: a tokenizer that yields, a state machine of bound methods."""
# needs: html5lib

from _loop import repeat

import html5lib

PAGE = "<html><head><title>t</title></head><body>" + "".join(
    f"<div class=a{i}><p>text &amp; more <b>bold {i}</b><table><tr><td>{i}</table></div>"
    for i in range(40)) + "</body></html>"

repeat(lambda: html5lib.parse(PAGE))
