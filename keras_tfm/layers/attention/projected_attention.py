"""What every multi-head attention shares: masks, heads, dropout, the output.

Shape letters: B batch, H heads, T query length, S key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.checks import check_divisible
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share
from keras_tfm.layers.regularization.dropout import Dropout
from keras_tfm.ops.attention import dot_product_attention
from keras_tfm.ops.attention import join_heads
from keras_tfm.ops.masks import causal_mask
from keras_tfm.ops.masks import combine_masks
from keras_tfm.ops.masks import expand_attention_mask
from keras_tfm.ops.masks import expand_padding_mask


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
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.key_dim = _check_head_size("key_dim", key_dim)
        self.value_dim = _check_head_size("value_dim", value_dim)
        self.dropout = check_share("dropout", dropout)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def head_sizes(self, hidden_dim):
        """Return the sizes of a key head and of a value head."""
        if self.key_dim is None:
            check_divisible(
                "hidden_dim", hidden_dim, "num_heads", self.num_heads
            )
        key_dim = self.key_dim or hidden_dim // self.num_heads
        return key_dim, self.value_dim or key_dim

    def build_projection(self, name, input_shape, head_dims):
        """Make and build one matrix product for several sets of heads.

        Args:
            name: String. The name of the sub-layer.
            input_shape: Tuple. The shape of what is projected.
            head_dims: Sequence of integers: the head size of each set. Every
                set is initialised as if it had a matrix of its own.
        """
        sizes = [self.num_heads * head_dim for head_dim in head_dims]

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

    def merge_masks(
        self, query, key, padding_mask, attention_mask, use_causal_mask
    ):
        """AND every mask into one that broadcasts to `(B, H, T, S)`."""
        query_length, key_length = ops.shape(query)[2], ops.shape(key)[2]
        expected = (query_length, key_length)
        attention_mask = expand_attention_mask(attention_mask)
        _check_lengths("attention_mask", attention_mask, expected)
        padding_mask = expand_padding_mask(padding_mask)
        _check_lengths("padding_mask", padding_mask, (1, key_length))
        causal = None
        if use_causal_mask:
            causal = expand_attention_mask(causal_mask(*expected))
        return combine_masks(padding_mask, attention_mask, causal)

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        position_bias=None,
        training=None,
    ):
        """Attend, join the heads and project.

        Args:
            query: Float tensor `(B, H, T, D)`.
            key: Float tensor `(B, H, S, D)`.
            value: Float tensor `(B, H, S, D)`.
            mask: Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
            position_bias: Float tensor that broadcasts to `(B, H, T, S)`.
            training: Boolean. Whether dropout is active.

        Returns:
            A pair: the output `(B, T, hidden_dim)` and the weights before
            dropout, float32 `(B, H, T, S)`.
        """

        def drop(weights):
            return self.drop(weights, training=training)

        heads, weights = dot_product_attention(
            query,
            key,
            value,
            mask,
            position_bias,
            drop if self.dropout else None,
        )
        return self.attention_output(join_heads(heads)), weights

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
