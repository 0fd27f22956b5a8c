"""What a generator is told about the rows of one call.

Shape letters: B batch, P prefix length, T target length, S source length.
"""

import dataclasses
from typing import Any

from keras import ops


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of one call.

    Attributes:
        active: Boolean tensor `(B,)`: the rows to write.
        limits: Int32 tensor `(B,)`: the most tokens of each.
        seeds: Int32 tensor `(B,)`.
        prefix: Int32 tensor `(B, T)` padded with `pad_id`, or `None`.
        source_mask: Boolean tensor `(B, S)`, or `None`.
    """

    active: Any
    limits: Any
    seeds: Any
    prefix: Any = None
    source_mask: Any = None

    @classmethod
    def of_call(
        cls, generator, active, prefix, max_lengths, seeds, source_mask
    ):
        """Fill in the defaults of `Generator.n_best` and check the shapes."""
        active = ops.convert_to_tensor(active)
        # Shaped after `active`, so that the state's shapes never change.
        zeros = ops.cast(ops.zeros_like(active), "int32")
        longest = generator.max_length
        limits = zeros + longest
        if max_lengths is not None:
            max_lengths = ops.cast(max_lengths, "int32")
            limits = zeros + ops.clip(max_lengths, 1, longest)
        if seeds is None:
            seeds = ops.cumsum(zeros + 1) - 1
        if prefix is not None:
            prefix = _fitted_prefix(prefix, generator)
        if generator.reads_attention and source_mask is None:
            raise ValueError(
                "A coverage penalty needs to know the real tokens of the "
                "source. Pass `source_mask`, boolean (batch, source_length)."
            )
        return cls(
            active, limits, ops.cast(seeds, "int32"), prefix, source_mask
        )

    def taken(self, chosen):
        """Return the rows with these numbers, an integer tensor."""

        def take(tensor):
            return None if tensor is None else ops.take(tensor, chosen, axis=0)

        fields = dataclasses.fields(self)
        return Rows(**{f.name: take(getattr(self, f.name)) for f in fields})

    def forced(self, index):
        """Return the token that a row must write `(B, 1)`, or `None`."""
        if self.prefix is None:
            return None
        return ops.take(self.prefix, ops.expand_dims(index, 0), axis=1)


def _fitted_prefix(prefix, generator):
    prefix = ops.cast(prefix, "int32")
    if len(prefix.shape) != 2 or prefix.shape[1] is None:
        raise ValueError(
            "`prefix` must have the shape (batch, prefix_length). Received: "
            f"{tuple(prefix.shape)}."
        )
    missing = generator.max_length - prefix.shape[1]
    if missing < 0:
        raise ValueError(
            f"`prefix` must be no longer than max_length="
            f"{generator.max_length}. Received: {prefix.shape[1]} tokens. Cut "
            "it, or make the generator with a larger `max_length`."
        )
    return ops.pad(
        prefix, ((0, 0), (0, missing)), constant_values=generator.pad_id
    )
