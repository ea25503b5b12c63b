"""Every kind of newest frame (_kinds.py), each for a millisecond or so at a time, which is 99.8 % of
its caller's time: a stack that ends at the caller has lost its top."""

import _kinds

_kinds.run(20_000, 60_000)
