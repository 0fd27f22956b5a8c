"""The base of every model: rebuilt from its arguments, not from its graph."""

import keras


class Backbone(keras.Model):
    """A functional model that saves the arguments it was made with.

    A subclass builds its graph in `__init__`, passes it on to
    `super().__init__(inputs=…, outputs=…)` and sets `arguments`.
    """

    def get_config(self):
        return {
            **self.arguments,
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        trainable = config.pop("trainable", True)
        model = cls(**config)
        model.trainable = trainable
        return model
