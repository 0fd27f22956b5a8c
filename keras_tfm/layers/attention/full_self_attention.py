"""What the self-attentions share that look at all positions.

Shape letters: B batch, H heads, G heads of keys and values, T query length, S
key length, D head size.
"""

from keras import ops

from keras_tfm.layers.attention.projected_self_attention import (
    ProjectedSelfAttention,
)
from keras_tfm.ops.cache_slots import cache_slots
from keras_tfm.ops.masks import implicit_mask
from keras_tfm.ops.masks import zero_padding
from keras_tfm.ops.positions import positions_from


class FullSelfAttention(ProjectedSelfAttention):
    """Abstract: each position may attend to every other.

    The arguments are described in `MultiHeadSelfAttention`. A subclass says in
    `attend_at` what the positions mean to it.
    """

    def attend_at(self, query, key, value, query_positions, beams=1, **kwargs):
        """Attend, join the heads and project.

        Args:
            query: Float tensor `(B, H, T, D)`.
            key: Float tensor `(B, H, S, D)`.
            value: Float tensor `(B, H, S, D)`.
            query_positions: Integer tensor `(T,)`.
            beams: Integer: so many keys next to each other stand at one
                position. Defaults to `1`: key s stands at position s.
            **kwargs: See `ProjectedAttention.attend`.
        """
        raise NotImplementedError

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        position_bias=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if padding_mask is None:
            padding_mask = implicit_mask(inputs)
        positions = positions_from(ops.shape(inputs)[1])
        query, key, value = self.project(zero_padding(inputs, padding_mask))
        return self.attend_at(
            self.place(query, positions),
            self.share_heads(self.place(key, positions)),
            self.share_heads(value),
            positions,
            padding_mask=padding_mask,
            attention_mask=attention_mask,
            position_bias=position_bias,
            use_causal_mask=use_causal_mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def initial_cache(self, batch_size, max_length, num_beams=1):
        """Make an empty cache for `step`.

        Args:
            batch_size: Integer or scalar tensor B.
            max_length: Integer, the most positions that the cache will hold.
            num_beams: Integer, the alternatives at each position.
                Defaults to `1`.

        Returns:
            A pair of zero tensors: keys `(B, G, D, S)`, so that their product
            with a query runs along the positions, and values `(B, G, S, D)`,
            where S is `max_length * num_beams`.
        """
        return self.empty_cache(batch_size, max_length * num_beams)

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more positions; what is cached stays."""
        return self.grown(*cache, max_length * num_beams)

    def step(
        self,
        inputs,
        cache,
        cache_index,
        padding_mask=None,
        ancestors=None,
        return_attention_scores=False,
    ):
        """Attend causally to the cached positions and the new ones.

        Equal to `call` with `use_causal_mask=True` at the same positions.

        Args:
            inputs: Float tensor `(batch, new_length, hidden_dim)`.
            cache: What `initial_cache` or the step before returned.
            cache_index: Integer or scalar tensor: how many positions the cache
                holds; the new ones are written from there.
            padding_mask: Boolean tensor `(batch, S)` of the cached and the new
                positions.
            ancestors: Integer tensor `(batch, new_length, max_length)`: the
                new ones are alternatives at one position, see `cache_slots`.
                Defaults to `None`: they are consecutive.
            return_attention_scores: Boolean. Whether to return the weights too,
                `(batch, heads, new_length, S)`.

        Returns:
            The output and the new cache, and the weights if asked for.
        """
        slots = cache_slots(
            cache[1].shape[2], ops.shape(inputs)[1], cache_index, ancestors
        )
        query, key, value = self.project(inputs)
        key = self.place(key, slots.query_positions)
        key = ops.transpose(key, (0, 1, 3, 2))
        keys = ops.slice_update(cache[0], (0, 0, 0, slots.start), key)
        values = ops.slice_update(cache[1], (0, 0, slots.start, 0), value)
        result = self.attend_at(
            self.place(query, slots.query_positions),
            self.share_heads(ops.transpose(keys, (0, 1, 3, 2))),
            self.share_heads(values),
            slots.query_positions,
            1 if ancestors is None else ancestors.shape[1],
            padding_mask=padding_mask,
            attention_mask=slots.mask,
            return_attention_scores=return_attention_scores,
            training=False,
        )
        if return_attention_scores:
            output, scores = result
            return output, (keys, values), scores
        return result, (keys, values)
