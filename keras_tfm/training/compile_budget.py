"""Notice batches of a shape for which XLA must compile one program more."""

import collections
import warnings

import keras

# As many known shapes as a message lists.
_MOST_LISTED = 5


class CompileBudget(keras.callbacks.Callback):
    """Warn, once for each, of batches whose shape was not expected.

    XLA compiles a training step for every combination of shapes of a batch. A
    few, known before, cost little; a length or a last batch that slips through
    costs a compilation each, and only looks like slow training.

    Somebody who meets the batches, such as `keras_tfm.data.watch_shapes`, tells
    `see` of their shapes, and the warning comes after the step that is made
    then. That may be a step before the batch's own, as batches are read ahead.
    Only shapes are compared: no tensor is read.

    Args:
        known: Sequence of dictionaries, one for each program that may be
            compiled: the shape of each input by its name. Defaults to none;
            then the shapes that come first are taken as the known ones.

    Attributes:
        programs: List of dictionaries like those of `known`: the shapes that
            have come, each once, in their order.

    Example:
        >>> budget = CompileBudget([{"inputs": (8, 16)}])
        >>> budget.expected
        1
        >>> budget.see({"inputs": (8, 16)})
        >>> budget.see({"inputs": (3, 16)})
        >>> len(budget.programs)
        2
    """

    def __init__(self, known=()):
        super().__init__()
        self._known = [dict(shapes) for shapes in known]
        self.programs = []
        # Another thread may read ahead: it only adds, training takes away.
        self._news = collections.deque()

    @property
    def expected(self):
        """How many programs may be compiled without a warning."""
        return len(self._known) or 1

    def see(self, shapes, dtypes=None):
        """Take notice of the shapes of a batch.

        Args:
            shapes: Dictionary of tuples of integers by the inputs' names.
            dtypes: Dictionary of their dtypes, for the warning. Defaults to
                none.
        """
        if shapes in self.programs:
            return
        before = self._known + [
            s for s in self.programs if s not in self._known
        ]
        self.programs.append(dict(shapes))
        if before and shapes not in before:
            self._news.append(_message(shapes, dtypes or {}, before))

    def on_train_batch_end(self, batch, logs=None):
        while self._news:
            warnings.warn(self._news.popleft(), stacklevel=2)


def _message(shapes, dtypes, before):
    listed = "; ".join(_inputs(known, {}) for known in before[:_MOST_LISTED])
    if len(before) > _MOST_LISTED:
        listed += f"; and {len(before) - _MOST_LISTED} more"
    return (
        f"A batch of a new shape came: {_inputs(shapes, dtypes)}. "
        f"Known before: {listed}. "
        "For each new one XLA compiles the training step once more, which "
        "takes as long as the first step did, and keeps the program in memory. "
        "Pad rows to a few lengths (`BucketedBatches`), or pack them into rows "
        "of one length (`PackedBatches`); fill the last batch up or leave it "
        "out (`drop_remainder=True`)."
    )


def _inputs(shapes, dtypes):
    return ", ".join(
        " ".join(filter(None, (name, dtypes.get(name), str(shape))))
        for name, shape in shapes.items()
    )
