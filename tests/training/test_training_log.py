"""The rows of a training, against NumPy; interrupted and not, they agree."""

import json

import keras
import numpy as np
import pytest

from keras_tfm.training import training_log
from keras_tfm.training.checkpoint import TrainingCheckpoint
from keras_tfm.training.checkpoint import load_checkpoint
from keras_tfm.training.losses import SmoothedCrossEntropy
from keras_tfm.training.metrics import Perplexity
from keras_tfm.training.metrics import TokenAccuracy
from keras_tfm.training.schedules import InverseSquareRoot
from keras_tfm.training.stopping import StopAfterSteps
from keras_tfm.training.training_log import TrainingLog
from keras_tfm.training.training_log_file import read_training_log

VOCABULARY = 5
STEPS_PER_EPOCH = 7
EVERY = 3
LENGTH = 11


def make_batches():
    """Batches of as many tokens and rows as no other."""
    rng = np.random.default_rng(5)
    batches = []
    for number in range(STEPS_PER_EPOCH):
        shape = (1 + number % 3, LENGTH)
        labels = rng.integers(1, VOCABULARY, shape)
        labels[:, 2 + number :] = 0
        batches.append((rng.integers(0, VOCABULARY, shape), labels))
    return batches


BATCHES = make_batches()


def make_model(rate=0.0, batch_steps=1, batches_per_update=None):
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, VOCABULARY, "normal"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(
            rate, gradient_accumulation_steps=batches_per_update
        ),
        SmoothedCrossEntropy(),
        metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=False,
        steps_per_execution=batch_steps,
    )
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, steps, *callbacks, batches=BATCHES):
    """Train until a step, on the batches that follow those seen."""

    def endless():
        step = start
        while True:
            yield batches[step % len(batches)]
            step += 1

    start = int(model.optimizer.iterations)
    return model.fit(
        endless(),
        epochs=99,
        steps_per_epoch=len(batches),
        shuffle=False,
        verbose=0,
        callbacks=[StopAfterSteps(steps), *callbacks],
    )


def expected_means(model, steps, batches=BATCHES):
    """Work out the means over some steps of a model that learns nothing."""
    table = np.asarray(
        keras.ops.convert_to_numpy(model.weights[0].value), "float64"
    )
    rows = losses = right = tokens = surprise = 0.0
    for step in steps:
        ids, labels = batches[(step - 1) % len(batches)]
        real = labels != 0
        logits = table[ids]
        log_sum = np.log(np.exp(logits).sum(-1))
        chosen = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
        loss = (log_sum - chosen)[real]
        # As in Keras: the loss of a batch weighs as much as it has rows.
        losses += loss.mean() * len(ids)
        rows += len(ids)
        right += (logits.argmax(-1) == labels)[real].sum()
        tokens += real.sum()
        surprise += loss.sum()
    return {
        "loss": losses / rows,
        "token_accuracy": right / tokens,
        "perplexity": np.exp(surprise / tokens),
    }


def check_rows(path, model, ends, batches=BATCHES):
    log = read_training_log(path)
    assert log["step"] == ends
    for index, end in enumerate(ends):
        steps = range(ends[index - 1] + 1 if index else 1, end + 1)
        for name, value in expected_means(model, steps, batches).items():
            assert log[name][index] == pytest.approx(value, rel=1e-5), name
    return log


class AddToLogs(keras.callbacks.Callback):
    """Write into the logs, as a `train_step` of one's own may."""

    def on_train_batch_end(self, batch, logs=None):
        logs["batch"] = np.float32(batch)
        logs["word"] = "none"


class ResetAndEvaluate(keras.callbacks.Callback):
    """Use the metrics for something else."""

    def __init__(self, every):
        super().__init__()
        self.every = every

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) % self.every == 0:
            self.model.evaluate(*BATCHES[2], verbose=0)


def test_a_row_has_the_means_over_the_steps_since_the_last_one(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model()
    fit(model, 13, AddToLogs(), TrainingLog(path, EVERY))
    # Step 9 is in the second epoch, and 7 and 8 on both sides of its start.
    log = check_rows(path, model, [3, 6, 9, 12])
    assert set(log) == {
        *("step", "minutes", "tokens_per_second", "learning_rate"),
        *("loss", "token_accuracy", "perplexity", "batch", "word"),
    }
    assert list(log)[:5] == [*training_log.FIRST_COLUMNS, "loss"]
    assert log["tokens_per_second"] == log["word"] == [None] * 4
    assert log["batch"] == [2.0, 5.0, 1.0, 4.0]


def test_others_may_use_the_metrics_for_something_else(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model()
    # The JAX backend shows the metrics only where a row is due.
    every = EVERY if keras.backend.backend() == "jax" else 2
    fit(model, 12, TrainingLog(path, EVERY), ResetAndEvaluate(every))
    check_rows(path, model, [3, 6, 9, 12])


def test_validation_data_of_keras_does_not_mix_in(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model()
    ids, labels = BATCHES[5]
    model.fit(
        *BATCHES[5],
        batch_size=2,
        shuffle=False,
        epochs=3,
        verbose=0,
        validation_data=BATCHES[1],
        callbacks=[TrainingLog(path, 5)],
    )
    # An epoch is a batch of two rows and one of the third row.
    parts = [(ids[:2], labels[:2]), (ids[2:], labels[2:])]
    check_rows(path, model, [5], parts)


def test_several_steps_at_once_give_rows_where_they_end(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model(batch_steps=2)
    pairs = [BATCHES[number // 2] for number in range(6)]
    fit(model, 10, TrainingLog(path, EVERY), batches=pairs)
    check_rows(path, model, [4, 6, 10], pairs)


class Validate(keras.callbacks.Callback):
    """Add a result that depends on the weights, every few steps."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def on_train_batch_end(self, batch, logs=None):
        step = int(self.model.optimizer.iterations)
        if step % 5 == 0:
            total = float(np.abs(self.model.get_weights()[0]).sum())
            self.log.add(step, {"step": step, "validation_bleu": total})


def train(path, folder, steps, checkpoints, resume=False):
    """Train with checkpoints at some steps, as `Translator.fit` does."""
    model = make_model(InverseSquareRoot(0.5, 4))
    log = TrainingLog(path, EVERY)
    if resume:
        state = load_checkpoint(folder, model)
        log.restore(state["log"])

    def state():
        # Through JSON, as in a file.
        return json.loads(json.dumps({"log": log.state()}))

    class Save(TrainingCheckpoint):
        def on_train_batch_end(self, batch, logs=None):
            if int(self.model.optimizer.iterations) in checkpoints:
                self._saved_at -= self.seconds
            if not self.model.stop_training:
                super().on_train_batch_end(batch, logs)

    fit(model, steps, log, Validate(log), Save(folder, state=state))
    return read_training_log(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the log of a training that was not killed."""
    folder = tmp_path_factory.mktemp("whole")
    return train(folder / "log.csv", folder, 20, ())


@pytest.mark.parametrize("checkpoint", [10, 12, 2])
def test_a_killed_training_has_the_rows_of_one_that_was_not(
    tmp_path, whole, checkpoint
):
    # Within a row and an epoch, at the end of a row, and before the first one.
    path = tmp_path / "killed.csv"
    train(path, tmp_path, 14, (checkpoint,))
    with path.open("a") as file:
        file.write("15,,,0.1,2.")  # the moment it was killed
    killed = train(path, tmp_path, 20, (), resume=True)
    assert whole["step"] == [3, 5, 6, 9, 10, 12, 15, 15, 18, 20]
    for name in {*whole} - {"minutes", "tokens_per_second"}:
        for one, other in zip(whole[name], killed[name], strict=True):
            assert one == (other and pytest.approx(other, rel=1e-5)), name
    assert killed["minutes"] == sorted(killed["minutes"])


class StopAfterBatches(keras.callbacks.Callback):
    """Count batches, of which an update has several."""

    def __init__(self, count):
        super().__init__()
        self.left = count

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            self.model.stop_training = True


def test_a_training_killed_within_its_first_update_loses_no_batch(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model(batches_per_update=2)
    log = TrainingLog(path, EVERY)
    fit(model, 99, StopAfterBatches(1), log)
    assert int(model.optimizer.iterations) == 0
    state = json.loads(json.dumps(log.state()))
    again = TrainingLog(path, EVERY)
    again.restore(state)
    # The first batch has been seen: the second one follows.
    fit(model, EVERY, again, batches=BATCHES[1:])
    rows = read_training_log(path)
    assert rows["step"] == [EVERY]
    expected = expected_means(model, range(1, 2 * EVERY + 1))
    for name, value in expected.items():
        assert rows[name] == [pytest.approx(value, rel=1e-5)], name
    assert rows["minutes"][0] >= state["minutes"] > 0


def test_without_its_state_the_first_row_covers_the_steps_since(tmp_path):
    path = tmp_path / "log.csv"
    model = make_model()
    fit(model, 8, TrainingLog(path, EVERY))
    fit(model, 9, TrainingLog(path, EVERY))
    log = read_training_log(path)
    assert log["step"] == [3.0, 6.0, 9.0]
    expected = expected_means(model, [9])
    assert log["loss"][-1] == pytest.approx(expected["loss"], rel=1e-5)
    assert log["minutes"] == sorted(log["minutes"])


def test_minutes_and_speed_are_those_of_the_clock(tmp_path, monkeypatch):
    class Clock(keras.callbacks.Callback):
        now = 1000.0

        def monotonic(self):
            return self.now

        def on_train_batch_begin(self, batch, logs=None):
            self.now += 15.0

    clock = Clock()
    monkeypatch.setattr(training_log, "time", clock)
    path = tmp_path / "log.csv"
    model = make_model(InverseSquareRoot(0.5, 4))
    log = TrainingLog(path, EVERY, tokens_per_step=200)
    fit(model, 5, clock, log)
    state = log.state()
    clock.now = 5.0  # Another process, another clock.
    again = TrainingLog(path, EVERY, tokens_per_step=200)
    again.restore(state)
    fit(model, 9, clock, again)
    rows = read_training_log(path)
    assert rows["step"] == [3.0, 6.0, 9.0]
    assert rows["minutes"] == [0.75, 1.5, 2.25]
    # After the pause the speed is that of one step, and not of three.
    assert rows["tokens_per_second"] == [pytest.approx(200 / 15)] * 3
    schedule = InverseSquareRoot(0.5, 4)
    rates = [float(schedule(step)) for step in (3, 6, 9)]
    assert rows["learning_rate"] == pytest.approx(rates)


def test_what_takes_time_before_a_result_does_not_slow_the_steps(
    tmp_path, monkeypatch
):
    class Clock(keras.callbacks.Callback):
        now = 1000.0

        def monotonic(self):
            return self.now

        def on_train_batch_begin(self, batch, logs=None):
            self.now += 2.0

    class Validate(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch in (1, 2):
                clock.now += 700.0
                log.add(batch + 1, {"validation_bleu": 1.0})
                clock.now += 50.0
                log.add(batch + 1, {"validation_loss": 1.0})

    clock = Clock()
    monkeypatch.setattr(training_log, "time", clock)
    log = TrainingLog(tmp_path / "log.csv", EVERY, tokens_per_step=30)
    fit(make_model(), 6, clock, log, Validate())
    rows = read_training_log(tmp_path / "log.csv")
    speeds = [v for v in rows["tokens_per_second"] if v is not None]
    assert speeds == [15.0, 15.0]
    assert rows["minutes"][-1] == pytest.approx((6 * 2 + 2 * 750) / 60)


def test_a_new_training_begins_the_file_anew(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,minutes,other\n0,1,2\n99,3,4\n")
    fit(make_model(), 3, TrainingLog(path, EVERY))
    log = read_training_log(path)
    assert log["step"] == [3.0]
    assert "other" not in log


def test_another_file_is_not_written_to(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("name,age\nAda,36\n")
    with pytest.raises(ValueError, match="is no training log"):
        fit(make_model(), 3, TrainingLog(path, EVERY))
    assert path.read_text() == "name,age\nAda,36\n"


def test_listeners_get_each_row(tmp_path):
    seen = []
    log = TrainingLog(tmp_path / "log.csv", EVERY)
    log.listeners.append(lambda step, values: seen.append((step, {**values})))
    fit(make_model(), 5, log, Validate(log))
    (step, values), (added, results) = seen
    assert (step, added) == (3, 5)
    assert set(values) == {
        *("minutes", "learning_rate"),
        *("loss", "token_accuracy", "perplexity"),
    }
    assert set(results) == {"minutes", "validation_bleu"}


def test_it_must_come_before_the_checkpoint(tmp_path):
    log = TrainingLog(tmp_path / "log.csv", EVERY)
    late = TrainingCheckpoint(tmp_path, state=log.state)
    with pytest.raises(RuntimeError, match="before `TrainingCheckpoint`"):
        fit(make_model(), 1, late, log)


def test_results_cannot_be_added_before_training(tmp_path):
    log = TrainingLog(tmp_path / "log.csv")
    with pytest.raises(RuntimeError, match=r"step=3.*'validation_bleu': 30.1"):
        log.add(3, {"validation_bleu": 30.1})
    assert not log.path.exists()


@pytest.mark.parametrize(
    "arguments", [{"every_steps": 0}, {"tokens_per_step": 0.0}]
)
def test_an_argument_out_of_range_is_named(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        TrainingLog("log.csv", **arguments)
