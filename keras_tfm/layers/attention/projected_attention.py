"""What every multi-head attention shares: masks, heads, dropout, the output.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.checks import check_divisible
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.checks import check_whole_number
from keras_tfm.layers.regularization.dropout import Dropout
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.blockwise_attention import blockwise_attention
from keras_tfm.ops.masks import causal_mask
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.masks import expand_attention_mask
from keras_tfm.ops.masks import expand_padding_mask
from keras_tfm.ops.relative_positions import scores_of_pairs

# Tiles take up to a quarter more time without a mask, and from here on less and
# less of the memory: `benchmarks/attention_memory.py`.
BLOCKWISE_FROM = 1024


class ProjectedAttention(keras.layers.Layer):
    """Abstract: attend with several heads and project the result.

    A subclass makes the queries, keys and values: it calls
    `build_projection` and `build_output` in its `build`, and `attend` in its
    `call` and `step`.
    """

    def __init__(
        self,
        num_heads,
        key_dim=None,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        blockwise_from=BLOCKWISE_FROM,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.key_dim = _check_head_size("key_dim", key_dim)
        self.value_dim = _check_head_size("value_dim", value_dim)
        self.dropout = check_share("dropout", dropout)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.blockwise_from = blockwise_from
        if blockwise_from is not None:
            check_whole_number("blockwise_from", blockwise_from)
        self.supports_masking = True

    def head_sizes(self, hidden_dim):
        """Return the sizes of a key head and of a value head."""
        if self.key_dim is None:
            check_divisible(
                "hidden_dim", hidden_dim, "num_heads", self.num_heads
            )
        key_dim = self.key_dim or hidden_dim // self.num_heads
        return key_dim, self.value_dim or key_dim

    def build_projection(self, name, input_shape, sizes):
        """Make and build one matrix product for several sets of heads.

        Args:
            name: String. The name of the sub-layer.
            input_shape: Tuple. The shape of what is projected.
            sizes: Sequence of integers: the channels of all heads of each set.
                Every set is initialised as if it had a matrix of its own.
        """

        def initialize_parts(shape, dtype=None):
            parts = [
                self.kernel_initializer.clone()((shape[0], size), dtype=dtype)
                for size in sizes
            ]
            return ops.concatenate(parts, axis=-1)

        projection = keras.layers.Dense(
            sum(sizes),
            use_bias=self.use_bias,
            kernel_initializer=initialize_parts,
            dtype=self.dtype_policy,
            name=name,
        )
        projection.build(input_shape)
        return projection

    def build_output(self, hidden_dim, value_dim):
        """Make and build the dropout and the output projection."""
        self.drop = Dropout(self.dropout, dtype=self.dtype_policy, name="drop")
        self.attention_output = keras.layers.Dense(
            hidden_dim,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="attention_output",
        )
        self.attention_output.build((None, None, self.num_heads * value_dim))

    def attend(
        self,
        query,
        key,
        value,
        padding_mask=None,
        attention_mask=None,
        position_bias=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        distance_scores=None,
    ):
        """Attend, join the heads and project.

        Args:
            query: Float tensor `(B, H, T, D)`.
            key: Float tensor `(B, H, S, D)`.
            value: Float tensor `(B, H, S, D)`.
            padding_mask: Boolean tensor `(B, S)`, or `None`.
            attention_mask: Boolean tensor that broadcasts to `(B, H, T, S)`,
                or `None`.
            position_bias: Float tensor that broadcasts to `(B, H, T, S)`.
            use_causal_mask: Boolean. Hide the future.
            return_attention_scores: Boolean. Whether to return the weights too.
            training: Boolean. Whether dropout is active.
            distance_scores: Float tensor `(H, T + S - 1)`, see
                `keras_tfm.ops.blockwise_attention`, or `None`.

        Returns:
            The output `(B, T, hidden_dim)`, or a pair with the weights before
            dropout, float32 `(B, H, T, S)`.
        """
        lengths = ops.shape(query)[2], ops.shape(key)[2]
        masks = self.expanded_masks(padding_mask, attention_mask, lengths)
        if self._goes_in_tiles(lengths) and not return_attention_scores:
            heads = blockwise_attention(
                query,
                key,
                value,
                masks,
                position_bias,
                use_causal_mask,
                distance_scores=distance_scores,
                **self._dropped(training),
            )
            return self.attention_output(join_heads(heads))

        def drop(weights):
            return self.drop(weights, training=training)

        if use_causal_mask:
            masks.append(expand_attention_mask(causal_mask(*lengths)))
        if distance_scores is not None:
            scores = ops.cast(
                scores_of_pairs(distance_scores, *lengths), "float32"
            )
            scores = ops.expand_dims(scores, 0)
            position_bias = (
                scores if position_bias is None else scores + position_bias
            )
        heads, weights = dot_product_attention(
            query,
            key,
            value,
            combine_masks(*masks),
            position_bias,
            drop if self.dropout else None,
        )
        output = self.attention_output(join_heads(heads))
        return (output, weights) if return_attention_scores else output

    def expanded_masks(
        self, padding_mask, attention_mask, lengths, use_causal_mask=False
    ):
        """Return the given masks, as tensors that broadcast to `(B, H, T, S)`.

        Args:
            padding_mask: Boolean tensor `(B, S)`, or `None`.
            attention_mask: Boolean tensor of rank 2 to 4, or `None`.
            lengths: Pair (T, S).
            use_causal_mask: Boolean. Whether one more hides the future.

        Raises:
            TypeError: If a mask has a floating dtype.
            ValueError: If one does not fit the lengths.
        """
        attention_mask = expand_attention_mask(attention_mask)
        _check_lengths("attention_mask", attention_mask, lengths)
        padding_mask = expand_padding_mask(padding_mask)
        _check_lengths("padding_mask", padding_mask, (1, lengths[1]))
        masks = [m for m in (padding_mask, attention_mask) if m is not None]
        if use_causal_mask:
            masks.append(expand_attention_mask(causal_mask(*lengths)))
        return masks

    def _goes_in_tiles(self, lengths):
        # A length that is not known yet counts as short.
        if self.blockwise_from is None or None in lengths:
            return False
        if not all(isinstance(length, int) for length in lengths):
            return not self.blockwise_from
        return lengths[0] * lengths[1] >= self.blockwise_from**2

    def _dropped(self, training):
        if not training or not self.dropout:
            return {}
        return {"dropout": self.dropout, "seed": self.drop.next_seed()}

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, so that the flags change the shapes as they do there.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "blockwise_from": self.blockwise_from,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


def _check_head_size(name, size):
    return None if size is None else check_positive_int(name, size)


def _check_lengths(name, mask, expected):
    if mask is None:
        return
    for size, wanted in zip(mask.shape[2:], expected, strict=True):
        known = isinstance(size, int) and isinstance(wanted, int)
        if known and size not in (1, wanted):
            raise ValueError(
                f"`{name}` must fit {expected[0]} queries and {expected[1]} "
                f"keys. Received a mask for {mask.shape[2]} queries and "
                f"{mask.shape[3]} keys. To hide padding pass "
                "`padding_mask` of shape (batch, source_length)."
            )
