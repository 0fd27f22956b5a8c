"""Which tables are shared, and what makes the logits."""

import pytest

from keras_tfm.models.token_layers import make_token_layers


def test_all_shares_one_table():
    layers = make_token_layers(11, 11, 6, tie_embeddings="all")
    assert layers.source_embedding is layers.target_embedding
    assert layers.project is None


def test_the_decoder_alone_may_share_its_own():
    layers = make_token_layers(13, 11, 6)
    assert layers.source_embedding is not layers.target_embedding
    assert layers.project is None


def test_untied_logits_have_a_projection():
    layers = make_token_layers(13, 11, 6, tie_embeddings=None)
    assert layers.project.units == 11


def test_two_vocabularies_cannot_share_all():
    with pytest.raises(ValueError, match=r"one vocabulary .* joint tokenizer"):
        make_token_layers(13, 11, 6, tie_embeddings="all")
