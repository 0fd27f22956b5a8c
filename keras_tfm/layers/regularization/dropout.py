"""Dropout that costs next to nothing in compiled training."""

import keras

from keras_tfm.checks import check_share
from keras_tfm.ops.dropout import dropout


@keras.saving.register_keras_serializable(package="keras_tfm")
class Dropout(keras.layers.Layer):
    """Set a random share of the values to 0 in training, scale up the others.

    What `keras.layers.Dropout` does, with other random numbers: each is a hash
    of the layer's seed, the call and the value's place. XLA computes the hash
    inside the loop that uses it, where Keras's generator writes an array of
    random numbers first. Every layer has its own stream of seeds. As Keras's,
    it is among the `variables` of a model, which a training's checkpoint keeps,
    and not among the `weights`: a model read from a file begins a new stream.

    Masking: passes the mask on.

    Args:
        rate: Float in [0, 1). Share of the values to drop.
        seed: Integer, or `None` for one that Keras's global seed decides.
            Defaults to `None`.
        **kwargs: Passed to `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor of any shape.
        training: Boolean. Whether anything is dropped. Defaults to `None`,
            which is whether Keras trains.

    Output shape:
        As the inputs.

    Raises:
        ValueError: If `rate` is out of range.

    Example:
        >>> layer = Dropout(0.5, seed=3)
        >>> values = layer(keras.ops.ones((1, 1000)), training=True).numpy()
        >>> sorted(set(values.ravel().tolist()))
        [0.0, 2.0]

    Reference:
        [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate = check_share("rate", rate)
        self.seed = seed
        if self.rate:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training=None):
        if not training or not self.rate:
            return inputs
        return dropout(inputs, self.rate, self.next_seed())

    def next_seed(self):
        """Return the seed of a call, `(2,)`; each call has another one."""
        return self.seed_generator.next()

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
