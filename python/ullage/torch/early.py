"""What a loader's worker needs in its first moments, imported once by the fork server or the zygote that it comes from.

The collector leaves alone what is there by then: it would write to every object, in each child.
"""

import contextlib
import gc

import torch.utils.data  # noqa: F401

from ullage import _context, _shipping  # noqa: F401

with contextlib.suppress(ImportError):
    import numpy.random  # noqa: F401

gc.freeze()
