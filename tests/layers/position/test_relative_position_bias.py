"""RelativePositionBias against T5's own attention."""

import numpy as np
import pytest
import torch
from keras import ops
from layer_checks import randomise

from keras_tfm.layers import RelativePositionBias

T, S, H = 11, 13, 3


@pytest.mark.parametrize("bidirectional", [True, False])
def test_it_is_the_bias_of_t5(bidirectional):
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(
        d_model=6,
        d_kv=2,
        num_heads=H,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=7,
        is_decoder=not bidirectional,
    )
    theirs = T5Attention(config, has_relative_attention_bias=True)
    layer = RelativePositionBias(H, 8, 7, bidirectional)
    layer.build()
    randomise(layer)
    table = ops.convert_to_numpy(layer.embeddings)
    with torch.no_grad():
        theirs.relative_attention_bias.weight[:] = torch.tensor(table)
        expected = theirs.compute_bias(T, S)[0].numpy()
    distances = np.arange(S)[None] - np.arange(T)[:, None]
    found = np.moveaxis(ops.convert_to_numpy(layer(distances)), -1, 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(layer.scores(distances), found)


def test_at_first_all_distances_are_equal():
    layer = RelativePositionBias(H)
    assert (ops.convert_to_numpy(layer(np.arange(-9, 9))) == 0.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_buckets": 3}, "even and at least 4"),
        ({"max_distance": 8}, "must exceed 8"),
        ({"num_heads": 0}, "`num_heads`"),
    ],
)
def test_a_wrong_number_is_named_when_it_is_made(options, message):
    with pytest.raises(ValueError, match=message):
        RelativePositionBias(**{"num_heads": H, **options})
