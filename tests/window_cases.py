"""Windows of local attention, and what they mean in plain Python."""

from keras_tfm.ops.windows import Band
from keras_tfm.ops.windows import OwnAndPreviousBlock
from keras_tfm.ops.windows import OwnBlock

WINDOWS = [
    OwnBlock(1),
    OwnBlock(5),
    OwnBlock(64),
    OwnAndPreviousBlock(1),
    OwnAndPreviousBlock(5),
    Band(0),
    Band(3),
    Band(0, 7),
    Band(5, 2),
    Band(40, 17),
]


def visible_in(window, query, key):
    """Return whether a query may attend to a key, by their positions."""
    if isinstance(window, OwnBlock):
        return query // window.length == key // window.length
    if isinstance(window, OwnAndPreviousBlock):
        return query // window.length - key // window.length in (0, 1)
    return query - window.left <= key <= query + window.right
