"""Records that are made, formatted and dropped, and some that are not made at all."""

import io
import logging

from _loop import repeat

logger = logging.getLogger("real")
handler = logging.StreamHandler(io.StringIO())
handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
logger.addHandler(handler)
logger.propagate = False


def step():
    for i in range(200):
        logger.warning("number %d of %s", i, "many")
        logger.debug("not shown %d", i)
    handler.stream.seek(0)


repeat(step)
