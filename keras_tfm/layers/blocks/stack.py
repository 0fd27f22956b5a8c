"""What the stacks of encoder and decoder blocks share."""

import keras

from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int

# What a stack hands to each block as it is.
BLOCK_ARGUMENTS = (
    "activation",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "use_bias",
)


class Stack(keras.layers.Layer):
    """Abstract: blocks one after another, and a final norm after pre-norm.

    The arguments are described in `Encoder` and `Decoder`. A subclass names the
    kind of block as `block_class`.
    """

    block_class = None

    def __init__(
        self,
        num_layers=None,
        num_heads=None,
        intermediate_dim=None,
        normalize_first=True,
        layer_norm_epsilon=1e-6,
        blocks=None,
        **kwargs,
    ):
        block_arguments = {
            name: kwargs.pop(name) for name in BLOCK_ARGUMENTS if name in kwargs
        }
        super().__init__(**kwargs)
        if (num_layers is None) == (blocks is None):
            raise ValueError(
                "Give either `num_layers` or ready-made `blocks`. Received: "
                f"num_layers={num_layers!r}, blocks={blocks!r}."
            )
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )
        self.block_arguments = block_arguments
        if blocks is None:
            blocks = [
                self.block_class(
                    num_heads,
                    intermediate_dim,
                    normalize_first=normalize_first,
                    layer_norm_epsilon=layer_norm_epsilon,
                    dtype=self.dtype_policy,
                    name=f"block_{index}",
                    **self.block_arguments,
                )
                for index in range(check_positive_int("num_layers", num_layers))
            ]
        # A tuple: `tf.train.Checkpoint` does not look into lists of Keras.
        self.blocks = tuple(blocks)
        self.supports_masking = True

    def build_blocks(self, inputs_shape, *context_shape):
        """Build every block, and the final norm if there is one."""
        for block in self.blocks:
            if not block.built:
                block.build(inputs_shape, *context_shape)
        self.norm = None
        if self.normalize_first:
            # Pre-norm leaves the sum itself as it grew; this norm ends it.
            self.norm = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon,
                dtype=self.dtype_policy,
                name="norm",
            )
            self.norm.build(inputs_shape)

    def finish(self, sequence):
        """Apply the final norm, if there is one."""
        return sequence if self.norm is None else self.norm(sequence)

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, so that the flags change the shapes as they do there.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        blocks = None
        if self.num_layers is None:
            blocks = _serialize_once(self.blocks)
        arguments = dict(self.block_arguments)
        if "activation" in arguments:
            arguments["activation"] = keras.activations.serialize(
                keras.activations.get(arguments["activation"])
            )
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "blocks": blocks,
            **arguments,
        }

    @classmethod
    def from_config(cls, config):
        blocks = config.get("blocks")
        if blocks is not None:
            blocks = _deserialize_once(blocks)
        return cls(**{**config, "blocks": blocks})


def _serialize_once(blocks):
    # A block that comes again is stored as the index of its first place, so
    # that it shares its weights after loading too.
    return [
        first
        if (first := blocks.index(block)) < index
        else keras.saving.serialize_keras_object(block)
        for index, block in enumerate(blocks)
    ]


def _deserialize_once(configs):
    blocks = []
    for config in configs:
        again = isinstance(config, int)
        blocks.append(
            blocks[config]
            if again
            else keras.saving.deserialize_keras_object(config)
        )
    return blocks
