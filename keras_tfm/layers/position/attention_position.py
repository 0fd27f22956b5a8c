"""What an attention layer may ask an object that knows about positions."""

import keras


class AttentionPosition(keras.layers.Layer):
    """Abstract: positions that enter within the attention.

    An attention layer that has one calls `place` on its queries and on its
    keys, and adds `scores` to the products of both. A subclass overrides one of
    them, or both.
    """

    def place(self, heads, positions):
        """Write positions into queries or keys.

        Args:
            heads: Float tensor `(B, H, T, D)`.
            positions: Integer tensor `(T,)`, in tokens.

        Returns:
            Tensor as `heads`. Unless overridden, the heads as they are.
        """
        del positions
        return heads

    def scores(self, distances):
        """Score distances, key minus query.

        Args:
            distances: Integer tensor of any shape.

        Returns:
            Float tensor `(H, ...)` to be added to the scaled products of
            queries and keys, or `None`. Unless overridden, `None`.
        """
        del distances

    def check_heads(self, num_heads):
        """Raise `ValueError` if it was made for another number of heads."""
        own = getattr(self, "num_heads", num_heads)
        if own != num_heads:
            raise ValueError(
                f"`{self.name}` was made for {own} heads and is given to an "
                f"attention of {num_heads}. Make it with "
                f"num_heads={num_heads}."
            )
