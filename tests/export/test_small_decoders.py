"""The decoders that exports are tried on could not hide a mistake."""

import numpy as np
import pytest
from export.small_decoders import GENERATORS
from export.small_decoders import written


@pytest.mark.parametrize("kind", GENERATORS)
def test_rows_differ_and_some_end_early_and_one_is_empty(kind):
    three, two = (ids for _, ids, _ in written(kind))
    for ids in (three[:2], two):
        assert len(np.unique(ids, axis=0)) == 2
        lengths = np.count_nonzero(ids, axis=1)
        assert len({*lengths}) == 2
        assert lengths.min() > 1
    assert not three[2].any()
