"""Look at a training: pictures of its learning curves."""

from keras_tfm.visualization.learning_curves import plot_learning_curves

__all__ = ["plot_learning_curves"]
