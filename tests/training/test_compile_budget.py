"""A batch of a new shape is told of once, after the step that compiles it."""

import warnings

import pytest

from keras_tfm.training import CompileBudget

KNOWN = [{"inputs": (3, 5), "labels": (3,)}, {"inputs": (2, 7), "labels": (2,)}]


def told(budget):
    """Return what the callback warns of after a step."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budget.on_train_batch_end(0)
    return [str(warning.message) for warning in caught]


def test_known_shapes_are_met_in_silence():
    budget = CompileBudget(KNOWN)
    for shapes in [*KNOWN, *KNOWN]:
        budget.see(shapes)
        assert told(budget) == []
    assert budget.expected == len(budget.programs) == 2


def test_a_new_shape_is_told_of_once_with_what_it_costs_and_what_to_do():
    budget = CompileBudget(KNOWN)
    odd = {"inputs": (1, 5), "labels": (1,)}
    dtypes = {"inputs": "int32", "labels": "float32"}
    budget.see(odd, dtypes)
    budget.see(odd, dtypes)
    (message,) = told(budget)
    assert "new shape came: inputs int32 (1, 5), labels float32 (1,)" in message
    known = "Known before: inputs (3, 5), labels (3,); inputs (2, 7), labels"
    assert known in message
    assert "compiles the training step once more" in message
    assert "`BucketedBatches`" in message
    assert "`drop_remainder=True`" in message
    budget.see(odd, dtypes)
    assert told(budget) == []
    assert budget.programs == [odd]


def test_the_same_shape_of_another_input_is_a_new_one():
    budget = CompileBudget([{"a": (2, 3), "b": (2, 5)}])
    budget.see({"a": (2, 5), "b": (2, 3)})
    assert len(told(budget)) == 1


def test_without_known_shapes_the_first_is_the_known_one():
    budget = CompileBudget()
    assert budget.expected == 1
    budget.see({"inputs": (3, 5)})
    assert told(budget) == []
    budget.see({"inputs": (2, 5)})
    (message,) = told(budget)
    assert "Known before: inputs (3, 5)." in message


def test_a_message_stays_readable_after_many_shapes():
    budget = CompileBudget()
    for length in range(1, 10):
        budget.see({"inputs": (3, length)})
    message = told(budget)[-1]
    assert "inputs (3, 5); and 3 more." in message


def test_a_warning_is_one_that_python_can_turn_into_an_error():
    budget = CompileBudget(KNOWN)
    budget.see({"inputs": (1, 1), "labels": (1,)})
    with pytest.raises(UserWarning, match=r"inputs \(1, 1\)"):
        budget.on_train_batch_end(0)
