"""A stack of one block: what it is made of."""

import pytest

from keras_tfm.layers import AdaptiveHalting
from keras_tfm.layers import EncoderBlock
from keras_tfm.layers import UniversalEncoder


@pytest.mark.parametrize("both", [True, False])
def test_a_block_and_its_sizes_are_one_or_the_other(both):
    sizes = {"num_heads": 2, "block": EncoderBlock(2, 3)} if both else {}
    with pytest.raises(ValueError, match=r"either the sizes .* or .* `block`"):
        UniversalEncoder(3, **sizes)


@pytest.mark.parametrize("steps", [0, 1.5, None])
def test_the_number_of_steps_is_checked(steps):
    with pytest.raises((TypeError, ValueError), match="`num_steps`"):
        UniversalEncoder(steps, 2, 3)


def test_a_config_keeps_the_parts():
    block = EncoderBlock(2, 3, name="mine")
    halting = AdaptiveHalting(0.9, 0.5, "tensor2tensor", name="stop")
    config = UniversalEncoder(3, block=block, halting=halting).get_config()
    restored = UniversalEncoder.from_config(config)
    assert restored.num_steps == 3
    assert restored.block.name == "mine"
    assert restored.halting.get_config() == halting.get_config()
    assert "num_layers" not in config
    assert "blocks" not in config
