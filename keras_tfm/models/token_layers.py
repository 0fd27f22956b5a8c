"""The two ends of an encoder-decoder model: tokens in, logits out."""

from typing import NamedTuple

import keras

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_share
from keras_tfm.layers.embedding.token_embedding import TokenEmbedding
from keras_tfm.layers.regularization.dropout import Dropout
from keras_tfm.models.token_mask import TokenMask

TIES = ("all", "decoder", None)


class TokenLayers(NamedTuple):
    """The layers that tokens pass before the encoder and after the decoder.

    Attributes:
        find_tokens: `TokenMask`.
        source_embedding: `TokenEmbedding`.
        target_embedding: `TokenEmbedding`, the same one with `"all"`.
        source_drop: `Dropout`.
        target_drop: `Dropout`.
        project: Dense layer that makes the logits; `None` where the target
            embedding does.
    """

    find_tokens: TokenMask
    source_embedding: TokenEmbedding
    target_embedding: TokenEmbedding
    source_drop: Dropout
    target_drop: Dropout
    project: keras.layers.Dense | None


def make_token_layers(
    source_vocabulary_size,
    target_vocabulary_size,
    hidden_dim,
    dropout=0.0,
    tie_embeddings="decoder",
    pad_id=0,
    policy=None,
):
    """Make them, sharing one table where they shall; see `Transformer`.

    Raises:
        ValueError: If a share is out of range, or `tie_embeddings="all"` with
            two vocabularies.
    """
    check_share("dropout", dropout)
    check_choice("tie_embeddings", tie_embeddings, TIES)
    sizes = (source_vocabulary_size, target_vocabulary_size)
    if tie_embeddings == "all" and sizes[0] != sizes[1]:
        raise ValueError(
            '`tie_embeddings="all"` needs one vocabulary for source and '
            f"target. Received: source_vocabulary_size={sizes[0]}, "
            f"target_vocabulary_size={sizes[1]}. Train a joint tokenizer, "
            'or use `tie_embeddings="decoder"`.'
        )

    def embedding(vocabulary_size, name):
        # No implicit mask: it would cling to the logits.
        return TokenEmbedding(
            vocabulary_size, hidden_dim, pad_id=None, dtype=policy, name=name
        )

    if tie_embeddings == "all":
        source_embedding = embedding(source_vocabulary_size, "token_embedding")
        target_embedding = source_embedding
    else:
        source_embedding = embedding(source_vocabulary_size, "source_embedding")
        target_embedding = embedding(target_vocabulary_size, "target_embedding")
    project = None
    if tie_embeddings is None:
        project = keras.layers.Dense(
            target_vocabulary_size,
            use_bias=False,
            dtype=policy,
            name="vocabulary_projection",
        )
    return TokenLayers(
        find_tokens=TokenMask(pad_id, name="token_mask"),
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        source_drop=Dropout(dropout, dtype=policy, name="source_drop"),
        target_drop=Dropout(dropout, dtype=policy, name="target_drop"),
        project=project,
    )
