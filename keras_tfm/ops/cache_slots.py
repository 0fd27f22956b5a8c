"""Where the tokens of a step stand in a cache, and which of it they may see.

A search keeps K alternatives at each position, one for each beam that was alive
then: slot `t * K + k` of a cache holds that of beam k at position t. Without a
search there is one, and a slot is a position.

Shape letters: B batch, T new tokens, K beams, S slots.
"""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_tfm.ops.masks import causal_mask
from keras_tfm.ops.positions import positions_from
from keras_tfm.ops.search import ancestor_mask


class CacheSlots(NamedTuple):
    """Where new tokens are written and what they may attend to.

    Attributes:
        start: Int32 scalar tensor or integer: the slot of the first new token.
        query_positions: Int32 tensor `(T,)` of the new tokens.
        key_positions: Int32 tensor `(S,)` of the slots.
        mask: Boolean tensor that broadcasts to `(B, H, T, S)`.
    """

    start: Any
    query_positions: Any
    key_positions: Any
    mask: Any


def cache_slots(num_slots, new_length, cache_index, ancestors=None):
    """Find the slots of the next tokens.

    Args:
        num_slots: Integer S, all slots of the cache.
        new_length: Integer or scalar tensor T.
        cache_index: Integer or scalar tensor: how many positions came before.
        ancestors: Integer tensor `(B, K, max_length)`: the new tokens are the
            K beams of a search, alternatives at one position, and these are the
            beams that each descends from, see `ancestor_mask`. Defaults to
            `None`: the new tokens are consecutive.

    Returns:
        `CacheSlots`.

    Example:
        >>> slots = cache_slots(4, new_length=1, cache_index=2)
        >>> slots.mask.numpy().astype(int).tolist()
        [[1, 1, 1, 0]]
    """
    if ancestors is None:
        return CacheSlots(
            cache_index,
            positions_from(new_length, cache_index),
            positions_from(num_slots),
            causal_mask(new_length, num_slots, cache_index),
        )
    beams = ancestors.shape[1]
    position = ops.cast(cache_index, "int32")
    return CacheSlots(
        position * beams,
        ops.repeat(ops.reshape(position, (1,)), beams),
        positions_from(num_slots) // beams,
        ancestor_mask(ancestors[:, :, : num_slots // beams], position),
    )
