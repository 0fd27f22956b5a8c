"""The mean of the weights at several steps, which scores better than the last.

Vaswani et al., 2017, section 6.1, average the last 5 or 20 checkpoints.
"""

import contextlib

from keras_tfm.training.model_variables import kept_values
from keras_tfm.training.model_variables import read_weights
from keras_tfm.training.model_variables import replace_weights
from keras_tfm.training.model_variables import sync_variables
from keras_tfm.training.periodic_callback import PeriodicCallback


class CheckpointAveraging(PeriodicCallback):
    """Take a snapshot of the weights every `every_steps` updates.

    Only trainable weights are averaged. Others, such as the statistics of a
    `BatchNormalization`, stay what they are at the time, and so do the random
    streams. An optimizer with a moving average of its own goes on with it:
    snapshots are of the weights themselves.

    It comes before `Validation` and `TrainingCheckpoint` in the list of
    callbacks, and is handed to the latter (`also`): a kill then loses nothing.
    When training begins, snapshots of later steps than the model's are
    deleted; a new training thus begins without any.

    Args:
        snapshots: `Snapshots`.
        every_steps: Positive integer, in updates.
        score: Function without arguments that returns the score of the weights
            of this step, the higher the better. `BestSnapshots` needs it.
            It may ask a `Validation` that comes before in the list.

    Raises:
        ValueError: If the snapshots are chosen by score and there is none.
    """

    def __init__(self, snapshots, every_steps, score=None):
        super().__init__(every_steps)
        if snapshots.keep.needs_score and score is None:
            raise ValueError(
                f"{type(snapshots.keep).__name__} chooses by score. Give "
                "`score`, a function that returns it."
            )
        self.snapshots = snapshots
        self.score = score

    def begin(self, step):
        self.snapshots.forget_after(step)

    def act(self, step):
        score = None if self.score is None else float(self.score())
        self.snapshots.add(step, read_weights(self.model), score)

    @contextlib.contextmanager
    def averaged_weights(self, model):
        """Let a model have the mean, and its own weights again afterwards.

        They come back bit for bit, also after an error, and inside `fit`.
        Before the first snapshot the model keeps its own weights.

        Args:
            model: The compiled Keras model that is trained.
        """
        with kept_values(model, model.trainable_variables):
            self.finish(model)
            yield

    def finish(self, model):
        """Leave the mean in a model whose training has ended.

        `TrainingCheckpoint` has written the weights themselves by then: a
        training goes on from those. Before the first snapshot the model keeps
        its own weights.

        Args:
            model: The compiled Keras model.
        """
        sync_variables(model)
        step = int(model.optimizer.iterations)
        # Later ones are of a session that was killed before its checkpoint.
        if any(number <= step for number in self.snapshots.steps()):
            shapes = [tuple(v.shape) for v in model.trainable_variables]
            replace_weights(model, self.snapshots.mean(step, shapes))
