"""Boolean attention masks: `True` means "may attend" and "is a real token".

Shape letters: B batch, H heads, T query length, S key length.
"""

from functools import reduce

import keras
from keras import ops


def padding_mask(token_ids, pad_id=0):
    """Mark the real tokens: ids `(B, S)` to a boolean mask `(B, S)`.

    Example:
        >>> padding_mask([[5, 7, 0]]).numpy().tolist()
        [[True, True, False]]
    """
    return ops.not_equal(ops.convert_to_tensor(token_ids), pad_id)


def causal_mask(query_length, key_length=None, offset=None):
    """Let every query see itself and the past.

    Query `i` sees the keys `0` to `offset + i`. The default offset aligns the
    last query with the last key (bottom-right), so that queries that follow
    cached keys see all of them.

    Args:
        query_length: Integer or scalar tensor T.
        key_length: Integer or scalar tensor S. Defaults to `query_length`.
        offset: Integer or scalar tensor, the position of the first query among
            the keys. Defaults to `key_length - query_length`.

    Returns:
        Boolean tensor `(T, S)`.

    Example:
        >>> causal_mask(2, 3).numpy().astype(int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    key_length = query_length if key_length is None else key_length
    offset = key_length - query_length if offset is None else offset
    queries = ops.expand_dims(ops.arange(query_length, dtype="int32"), 1)
    keys = ops.expand_dims(ops.arange(key_length, dtype="int32"), 0)
    return ops.less_equal(keys, queries + ops.cast(offset, "int32"))


def band_mask(query_length, key_length=None, left=None, right=None):
    """Let every query see the keys at most `left` before and `right` after it.

    Args:
        query_length: Integer or scalar tensor T.
        key_length: Integer or scalar tensor S. Defaults to `query_length`.
        left: Integer of at least 0, in tokens; `None` for no limit.
        right: Integer of at least 0, in tokens; `None` for no limit.

    Returns:
        Boolean tensor `(T, S)`; positions are aligned at the first token.

    Example:
        >>> band_mask(3, left=1, right=0).numpy().astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    key_length = query_length if key_length is None else key_length
    queries = ops.expand_dims(ops.arange(query_length, dtype="int32"), 1)
    distance = ops.expand_dims(ops.arange(key_length, dtype="int32"), 0)
    distance = distance - queries
    allowed = ops.ones_like(distance, dtype="bool")
    if left is not None:
        allowed = ops.logical_and(allowed, distance >= -left)
    if right is not None:
        allowed = ops.logical_and(allowed, distance <= right)
    return allowed


def segment_mask(query_segments, key_segments=None):
    """Keep attention inside a segment of a packed row.

    Args:
        query_segments: Integer tensor `(B, T)`: 1, 2, … for the sequences of a
            row and 0 for padding.
        key_segments: Integer tensor `(B, S)`. Defaults to `query_segments`.

    Returns:
        Boolean tensor `(B, T, S)`; padding neither sees nor is seen.

    Example:
        >>> segment_mask([[1, 2, 0]]).numpy().astype(int).tolist()
        [[[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    """
    queries = ops.convert_to_tensor(query_segments)
    keys = queries if key_segments is None else key_segments
    keys = ops.expand_dims(ops.convert_to_tensor(keys), 1)
    queries = ops.expand_dims(queries, 2)
    return ops.logical_and(ops.equal(queries, keys), ops.not_equal(keys, 0))


def combine_masks(*masks):
    """Allow a pair only where every given mask does; `None` allows all.

    Example:
        >>> combine_masks(None, None) is None
        True
    """
    given = [mask for mask in masks if mask is not None]
    return reduce(ops.logical_and, given) if given else None


def expand_padding_mask(mask, name="padding_mask"):
    """Hide padding keys from every query: `(B, S)` to `(B, 1, 1, S)`.

    Raises:
        TypeError: If the mask is not boolean or integer.
        ValueError: If the mask is not of rank 2.
    """
    if mask is None:
        return None
    return ops.expand_dims(_as_padding_mask(mask, name), (1, 2))


def expand_attention_mask(mask, name="attention_mask"):
    """Bring a mask of rank 2, 3 or 4 into the form `(B, H, T, S)`.

    Args:
        mask: Boolean or integer tensor that broadcasts to `(B, H, T, S)`:
            `(T, S)`, `(B, T, S)` or `(B, H, T, S)`, or `None`. A mask of rank
            2 is always `(T, S)`, also where B equals T.
        name: String. The argument's name, for the messages.

    Returns:
        A boolean tensor of rank 4, or `None`.

    Raises:
        TypeError: If the mask is not boolean or integer.
        ValueError: If its rank is not 2, 3 or 4.
    """
    if mask is None:
        return None
    mask = as_boolean_mask(mask, name)
    rank = len(mask.shape)
    if rank == 2:
        return ops.expand_dims(mask, (0, 1))
    if rank == 3:
        return ops.expand_dims(mask, 1)
    if rank == 4:
        return mask
    raise ValueError(
        f"`{name}` must have the shape (target_length, source_length), "
        "(batch, target_length, source_length) or (batch, heads, "
        f"target_length, source_length). Received: {tuple(mask.shape)}."
    )


def as_boolean_mask(mask, name="mask"):
    """Return `mask` as a boolean tensor; refuse floats.

    Raises:
        TypeError: If the mask has a floating dtype, since an additive mask
            (0 and -1e9) read as a boolean one would be inverted.
    """
    mask = ops.convert_to_tensor(mask)
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype == "bool":
        return mask
    if "int" in dtype:
        return ops.cast(mask, "bool")
    raise TypeError(
        f"`{name}` must be boolean, where True means 'may attend'. "
        f"Received dtype {dtype}. Convert an additive mask with "
        "`keras_tfm.ops.masks.from_additive_mask`, or pass a score that is to "
        "be added as `position_bias`."
    )


def from_additive_mask(mask):
    """Convert an additive mask (0 allows, a large negative number hides).

    Example:
        >>> from_additive_mask([[0.0, -1e9]]).numpy().tolist()
        [[True, False]]
    """
    mask = ops.cast(mask, "float32")
    # Half of the smallest mask constant in use, the -10000 of BERT.
    return ops.greater(mask, -5e3)


def from_torch_mask(mask):
    """Convert a boolean mask of torch's modules, where `True` means "hide".

    It fits `attn_mask` and `key_padding_mask` of
    `torch.nn.MultiheadAttention` and of the `torch.nn.Transformer` modules.

    Example:
        >>> from_torch_mask([[False, True]]).numpy().tolist()
        [[True, False]]
    """
    return ops.logical_not(as_boolean_mask(mask))


class _MaskReader(keras.layers.Layer):
    """Hand out the mask that Keras keeps for a tensor.

    To be called with it as `mask` is the one public way to it that works
    everywhere: a tensor that JAX traces has no attribute for a mask.
    """

    def __init__(self):
        super().__init__(name="mask_reader", autocast=False)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return mask

    def compute_mask(self, inputs, previous_mask):
        # The mask has no mask of its own.
        return None


_read_mask = _MaskReader()


def implicit_mask(tensor):
    """Return the mask that Keras attached to `tensor`, or `None`."""
    return _read_mask(tensor)


def zero_padding(sequence, mask):
    """Set the padded positions of `(B, S, E)` to 0, whatever they hold.

    A NaN at a padded position would otherwise reach the gradient of the
    weights it is multiplied with, even where its output is masked.

    Args:
        sequence: Float tensor `(B, S, E)`.
        mask: Boolean tensor `(B, S)`, or `None` to change nothing.

    Returns:
        Float tensor `(B, S, E)`.

    Raises:
        TypeError: If the mask is not boolean or integer.
        ValueError: If the mask is not of rank 2, or covers another length.
    """
    if mask is None:
        return sequence
    mask = _as_padding_mask(mask, "padding_mask")
    for size, wanted in zip(mask.shape, sequence.shape[:2], strict=True):
        if wanted is not None and size not in (1, None, wanted):
            raise ValueError(
                "`padding_mask` must have the shape (batch, length) of what it "
                f"covers, {tuple(sequence.shape[:2])}. Received a mask of "
                f"shape {tuple(mask.shape)}."
            )
    mask = ops.expand_dims(mask, -1)
    return ops.where(mask, sequence, ops.zeros((), sequence.dtype))


def _as_padding_mask(mask, name):
    mask = as_boolean_mask(mask, name)
    if len(mask.shape) != 2:
        raise ValueError(
            f"`{name}` must have the shape (batch, length). Received a mask "
            f"of shape {tuple(mask.shape)}. Pass a mask that says who may "
            "attend to whom as `attention_mask`."
        )
    return mask
