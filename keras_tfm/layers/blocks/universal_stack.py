"""What encoder and decoder share whose one block is used again and again."""

import keras
from keras import ops

from keras_tfm.checks import check_positive_int
from keras_tfm.layers.blocks.stack import Stack
from keras_tfm.layers.position.positional_encoding import PositionalEncoding

_PARTS = ("block", "position", "step_signal", "halting")


class UniversalStack(Stack):
    """Abstract: one block, taken `num_steps` times, depth shared.

    The arguments are described in `UniversalEncoder`. A subclass names the kind
    of block as `block_class`.
    """

    def __init__(
        self,
        num_steps,
        num_heads=None,
        intermediate_dim=None,
        *,
        block=None,
        position=None,
        step_signal=None,
        halting=None,
        **kwargs,
    ):
        ready_made = block is not None
        if ready_made == (num_heads is not None):
            raise ValueError(
                "Give either the sizes of the block or a ready-made `block`. "
                f"Received: num_heads={num_heads!r}, block={block!r}."
            )
        super().__init__(
            None if ready_made else 1,
            num_heads,
            intermediate_dim,
            blocks=[block] if ready_made else None,
            **kwargs,
        )
        self.num_steps = check_positive_int("num_steps", num_steps)
        if position is None:
            position = PositionalEncoding(
                dtype=self.dtype_policy, name="position"
            )
        if step_signal is None:
            step_signal = PositionalEncoding(
                dtype=self.dtype_policy, name="step_signal"
            )
        self.position = position
        self.step_signal = step_signal
        self.halting = halting

    @property
    def block(self):
        """The block that every step uses."""
        return self.blocks[0]

    def build_parts(self, inputs_shape, *context_shape):
        """Build the block, the signals, the halting and the final norm."""
        self.build_blocks(inputs_shape, *context_shape)
        for part in (self.position, self.step_signal, self.halting):
            if part is not None and not part.built:
                part.build(inputs_shape)

    def deepen(self, inputs, take_step, positions):
        """Go through all steps.

        Args:
            inputs: Float tensor `(batch, length, hidden_dim)`.
            take_step: Function of a state and the number of the step, which
                returns a tuple: the new state, and whatever else.
            positions: Integer tensor `(length,)` or `(batch, length)`.

        Returns:
            The output, a list of the rests of each step's tuple, and the
            `HaltingRun`, `None` without halting.
        """
        run = None if self.halting is None else self.halting.begin(inputs)
        x, rests = inputs, []
        for step in range(self.num_steps):
            x = self.position(x, positions=positions)
            x = self.step_signal(x, positions=ops.array([step], "int32"))
            if run is not None:
                run.decide(x, last=step + 1 == self.num_steps)
            x, *rest = take_step(x, step)
            if run is not None:
                run.collect(x)
            rests.append(rest)
        if run is not None:
            x = ops.cast(run.output, self.compute_dtype)
        return self.finish(x), rests, run

    def add_ponder_cost(self, run, padding_mask, training):
        """Add the cost of a pass to the losses, if there is one to add."""
        if run is not None and training and self.halting.ponder_cost:
            self.add_loss(run.cost(padding_mask))

    def ponder_times(self, run, x):
        """Return how long each position thought: float32 `(batch, length)`."""
        if run is not None:
            return run.ponder_times
        return ops.full_like(
            ops.cast(x[..., 0], "float32"), float(self.num_steps)
        )

    def get_config(self):
        config = super().get_config()
        config.pop("num_layers")
        blocks = config.pop("blocks")
        parts = {
            name: part and keras.saving.serialize_keras_object(part)
            for name, part in (
                ("position", self.position),
                ("step_signal", self.step_signal),
                ("halting", self.halting),
            )
        }
        return {
            **config,
            "num_steps": self.num_steps,
            "block": blocks and blocks[0],
            **parts,
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: config[name]
            and keras.saving.deserialize_keras_object(config[name])
            for name in _PARTS
        }
        return cls(**{**config, **parts})
