"""describe_batches: one line, with its nouns in the right number."""

import pytest

from keras_tfm.data.batch_description import counted
from keras_tfm.data.batch_description import describe_batches


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234567, "1,234,567 rows")],
)
def test_a_number_has_its_noun(number, said):
    assert counted(number, "row") == said


def test_dropped_pairs_are_told_only_where_there_are_some():
    rest = ("7", "1 row of 4+4", 2, 0.125)
    assert describe_batches(3, 0, *rest) == (
        "3 pairs, 1 row of 4+4, 2 steps an epoch, 12.5% padding"
    )
    assert describe_batches(1, 1200, *rest) == (
        "1 pair (1,200 dropped: longer than 7 tokens), 1 row of 4+4, "
        "2 steps an epoch, 12.5% padding"
    )
