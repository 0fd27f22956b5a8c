"""Presets: the published sizes, counted."""

import keras
import numpy as np
import pytest

from keras_tfm.models import PRESETS
from keras_tfm.models import Transformer
from keras_tfm.models import preset_arguments

# The others are one of these by another name, or with other sinusoids.
COUNTED = [name for name in PRESETS if name.endswith(("v1", "v3", "30k"))]
TENSOR2TENSOR = [name for name in PRESETS if not name.endswith("multi30k")]


def body(layers, width, intermediate, normalize_first, attention_bias):
    """Count everything but the embeddings, part by part."""
    bias = width if attention_bias else 0
    attention = 4 * (width * width + bias)
    feed_forward = 2 * width * intermediate + intermediate + width
    norm = 2 * width
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    final_norms = 2 * norm if normalize_first else 0
    return layers * (encoder + decoder) + final_norms


def body_of(preset, layers=None):
    arguments = preset_arguments(preset)
    return body(
        layers or arguments["num_layers"],
        arguments["hidden_dim"],
        arguments["intermediate_dim"],
        arguments["normalize_first"],
        arguments["use_bias"],
    )


@pytest.mark.parametrize("preset", COUNTED)
def test_a_block_of_each_preset_has_the_parameters_of_the_formula(preset):
    model = Transformer.from_preset(preset, 7, num_layers=1)
    width = preset_arguments(preset)["hidden_dim"]
    assert model.count_params() == body_of(preset, layers=1) + 7 * width


def test_base_has_44_million_parameters_and_512_for_each_token():
    model = Transformer.from_preset("transformer_base", 11)
    assert model.count_params() == body_of("transformer_base") + 11 * 512
    # 44,103,680: the 44.10 million of the design.
    assert f"{body_of('transformer_base') / 1e6:.2f}" == "44.10"


def test_big_has_176_million_parameters_and_1024_for_each_token():
    # Counted on one block each and on two; the other four are like them.
    one, two = (
        Transformer.from_preset("transformer_big", 11, num_layers=n)
        for n in (1, 2)
    )
    first, second = one.count_params(), two.count_params()
    assert first + 5 * (second - first) == (
        body_of("transformer_big") + 11 * 1024
    )
    assert f"{body_of('transformer_big') / 1e6:.2f}" == "176.29"


@pytest.fixture(scope="module")
def multi30k():
    """Build the model of Wu et al. once."""
    return Transformer.from_preset("transformer_tiny_multi30k", 9712)


def test_the_multi30k_model_has_the_size_of_its_paper(multi30k):
    model = multi30k
    assert model.count_params() == 2_568_192
    table = model.source_embedding.embeddings
    assert model.count_params() - int(np.prod(table.shape)) == 1_325_056


@pytest.mark.parametrize("preset", TENSOR2TENSOR)
def test_the_published_sets_share_one_table_and_have_no_attention_bias(preset):
    arguments = preset_arguments(preset)
    assert arguments["tie_embeddings"] == "all"
    assert arguments["use_bias"] is False
    assert arguments["layer_norm_epsilon"] == 1e-6


def test_the_current_base_is_the_third_version():
    base = preset_arguments("transformer_base")
    assert base == preset_arguments("transformer_base_v3")
    assert base["normalize_first"] is True
    assert (base["num_layers"], base["hidden_dim"]) == (6, 512)
    assert (base["intermediate_dim"], base["num_heads"]) == (2048, 8)
    dropouts = ("dropout", "attention_dropout", "activation_dropout")
    assert [base[name] for name in dropouts] == [0.1, 0.1, 0.1]
    assert base["position_layout"] == "concat"
    assert base["position_denominator"] == "tensor2tensor"


@pytest.mark.parametrize(
    "preset", ["transformer_base_v1", "transformer_paper_base"]
)
def test_the_paper_is_post_norm_with_one_dropout(preset):
    arguments = preset_arguments(preset)
    assert arguments["normalize_first"] is False
    assert arguments["dropout"] == 0.1
    model = Transformer.from_preset(preset, 7, num_layers=1)
    for part in (model.encoder.blocks[0], model.decoder.blocks[0]):
        assert part.attention_dropout == 0.0
        assert part.activation_dropout == 0.0


@pytest.mark.parametrize("size", ["base", "big"])
def test_the_paper_differs_from_the_first_version_in_its_sinusoids(size):
    paper = preset_arguments(f"transformer_paper_{size}")
    assert paper == {
        **preset_arguments(f"transformer_{size}_v1"),
        "position_layout": "interleaved",
        "position_denominator": "paper",
    }


@pytest.mark.parametrize("size", ["base", "big", "tiny"])
def test_a_size_without_a_version_is_the_third(size):
    assert preset_arguments(f"transformer_{size}") == preset_arguments(
        f"transformer_{size}_v3"
    )


def test_big_is_twice_as_wide_and_drops_more():
    big = preset_arguments("transformer_big")
    assert (big["hidden_dim"], big["intermediate_dim"]) == (1024, 4096)
    assert (big["num_heads"], big["dropout"]) == (16, 0.3)


def test_the_multi30k_model_is_post_norm_relu_with_biases(multi30k):
    model = multi30k
    assert len(model.encoder.blocks) == len(model.decoder.blocks) == 4
    block = model.decoder.blocks[0]
    assert (block.num_heads, block.intermediate_dim) == (4, 256)
    assert block.activation is keras.activations.relu
    assert block.normalize_first is False
    assert block.use_bias is True
    assert block.dropout == 0.3
    assert model.source_embedding is model.target_embedding
    assert model.project is None


def test_arguments_replace_those_of_the_preset():
    model = Transformer.from_preset(
        "transformer_tiny", 7, num_layers=1, dropout=0.0, name="small"
    )
    assert model.name == "small"
    assert model.arguments["num_layers"] == 1
    assert model.arguments["dropout"] == 0.0
    assert model.arguments["hidden_dim"] == 128


def test_a_preset_cannot_be_changed_through_its_arguments():
    preset_arguments("transformer_base")["num_heads"] = 3
    assert preset_arguments("transformer_base")["num_heads"] == 8


def test_an_unknown_preset_gets_the_nearest_name():
    with pytest.raises(ValueError, match="`preset` must be one of") as info:
        Transformer.from_preset("transformer_bsae", 7)
    assert "Received: preset='transformer_bsae'" in str(info.value)
    assert "Did you mean 'transformer_base'?" in str(info.value)
