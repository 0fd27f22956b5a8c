"""What every self-attention shares: one projection, positions, shared heads.

Shape letters: B batch, H heads, G heads of keys and values, T query length, S
key length, D head size.
"""

import keras
from keras import ops

from keras_tfm.checks import check_divisible
from keras_tfm.checks import check_positive_int
from keras_tfm.layers.attention.projected_attention import ProjectedAttention
from keras_tfm.layers.position.attention_position import AttentionPosition
from keras_tfm.ops.attention import split_heads
from keras_tfm.ops.relative_positions import distances_between


class ProjectedSelfAttention(ProjectedAttention):
    """Abstract: queries, keys and values of one sequence.

    The arguments are described in `MultiHeadSelfAttention`. A subclass attends
    in its `call` and in its `step`.
    """

    def __init__(
        self,
        num_heads,
        *args,
        num_key_value_heads=None,
        position=None,
        **kwargs,
    ):
        super().__init__(num_heads, *args, **kwargs)
        if num_key_value_heads is None:
            num_key_value_heads = self.num_heads
        check_positive_int("num_key_value_heads", num_key_value_heads)
        check_divisible(
            "num_heads",
            self.num_heads,
            "num_key_value_heads",
            num_key_value_heads,
        )
        self.num_key_value_heads = num_key_value_heads
        if position is not None:
            if not isinstance(position, AttentionPosition):
                raise TypeError(
                    "`position` must be a layer for positions within the "
                    "attention, such as `RotaryEmbedding`. Received: "
                    f"position={position!r}. What is added to the inputs, such "
                    "as `PositionalEncoding`, comes before the attention."
                )
            position.check_heads(self.num_heads)
        self.position = position

    def build(self, input_shape):
        hidden_dim = input_shape[-1]
        self._key_size, self._value_size = self.head_sizes(hidden_dim)
        self.query_key_value = self.build_projection(
            "query_key_value",
            input_shape,
            [
                self.num_heads * self._key_size,
                self.num_key_value_heads * self._key_size,
                self.num_key_value_heads * self._value_size,
            ],
        )
        self.build_output(hidden_dim, self._value_size)
        if self.position is not None and not self.position.built:
            self.position.build((None,))
        self.built = True

    def project(self, inputs):
        """Make queries `(B, H, T, D)`, keys and values `(B, G, T, D)`.

        Args:
            inputs: Float tensor `(B, T, E)`.
        """
        joined = self.query_key_value(inputs)
        queries = self.num_heads * self._key_size
        keys = self.num_key_value_heads * self._key_size
        query, key, value = ops.split(
            joined, [queries, queries + keys], axis=-1
        )
        return (
            split_heads(query, self.num_heads),
            split_heads(key, self.num_key_value_heads),
            split_heads(value, self.num_key_value_heads),
        )

    def place(self, heads, positions):
        """Write the positions `(T,)` into queries or keys, if they are so."""
        if self.position is None:
            return heads
        return self.position.place(heads, positions)

    def with_scores(self, position_bias, query_positions, key_positions):
        """Add the scores of the distances to a bias.

        Args:
            position_bias: Float tensor that broadcasts to `(B, H, T, S)`, or
                `None`.
            query_positions: Integer tensor `(T,)`.
            key_positions: Integer tensor `(S,)`.

        Returns:
            A tensor that broadcasts to `(B, H, T, S)`, or `None`.
        """
        if self.position is None:
            return position_bias
        scores = self.position.scores(
            distances_between(query_positions, key_positions)
        )
        if scores is None:
            return position_bias
        scores = ops.expand_dims(scores, 0)
        if position_bias is None:
            return scores
        return scores + ops.cast(position_bias, scores.dtype)

    def share_heads(self, heads):
        """Give each query head its keys or values: `(B, G, …)` to `(B, H, …)`.

        Query heads next to each other share them.
        """
        group = self.num_heads // self.num_key_value_heads
        return heads if group == 1 else ops.repeat(heads, group, axis=1)

    def empty_cache(self, batch_size, slots):
        """Make zeros: keys `(B, G, D, S)`, values `(B, G, S, D)`.

        The product of a query with the keys runs along the slots.
        """
        heads = self.num_key_value_heads
        return (
            ops.zeros(
                (batch_size, heads, self._key_size, slots), self.compute_dtype
            ),
            ops.zeros(
                (batch_size, heads, slots, self._value_size),
                self.compute_dtype,
            ),
        )

    def grown(self, keys, values, slots):
        """Make room for more slots; what is cached stays."""
        more = (0, slots - values.shape[2])
        return (
            ops.pad(keys, ((0, 0), (0, 0), (0, 0), more)),
            ops.pad(values, ((0, 0), (0, 0), more, (0, 0))),
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        position = None
        if self.position is not None:
            position = keras.saving.serialize_keras_object(self.position)
        return {
            **super().get_config(),
            "num_key_value_heads": self.num_key_value_heads,
            "position": position,
        }

    @classmethod
    def from_config(cls, config):
        position = config.get("position")
        if position is not None:
            position = keras.saving.deserialize_keras_object(position)
        return cls(**{**config, "position": position})
