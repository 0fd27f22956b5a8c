"""An encoder-decoder model for rows that hold several pairs each.

Shape letters: B batch, T target length, E hidden_dim.
"""

import keras

from keras_tfm.models.segments import SegmentMask
from keras_tfm.models.segments import SegmentPositions
from keras_tfm.models.token_mask import TokenMask


def packed_model(model):
    """Make a model for packed rows that has the very weights of another.

    Positions start anew in each pair, and attention of the encoder, of the
    decoder and from one to the other stays inside a pair. So a pair has the
    same logits as in a row of its own. Training it trains `model`.

    Args:
        model: An encoder-decoder model, such as a `Transformer`.

    Returns:
        A Keras model of four integer tensors: `source_ids` and
        `source_segments` `(batch, source_length)`, `target_ids` and
        `target_segments` `(batch, target_length)`. The segments are 1, 2, …
        for the pairs of a row and 0 for padding. Its output are logits
        `(batch, target_length, target_vocabulary_size)`.

    Example:
        >>> from keras_tfm.models import Transformer
        >>> model = Transformer(
        ...     11, num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=2
        ... )
        >>> packed = packed_model(model)
        >>> len(packed.trainable_variables) == len(model.trainable_variables)
        True
    """
    body = target_vectors(model, packed=True)
    return keras.Model(
        inputs=body.input,
        outputs=model.logits(body.output),
        name=f"packed_{model.name}",
    )


def target_vectors(model, packed):
    """Make a model of what the decoder says of each target position.

    Args:
        model: An encoder-decoder model, such as a `Transformer`.
        packed: Boolean. Whether the rows hold several pairs each.

    Returns:
        A Keras model of the inputs of `packed_model`, or of `source_ids` and
        `target_ids`. Its output is `(B, T, E)`.
    """

    def tokens(kind):
        return {
            side: keras.Input((None,), dtype="int32", name=f"{side}_{kind}")
            for side in ("source", "target")
        }

    ids = tokens("ids")
    find_tokens = model.find_tokens
    segments, of_tokens = {}, ids
    if packed:
        segments = of_tokens = tokens("segments")
        find_tokens = TokenMask(name="packed_token_mask")
        find_positions = SegmentPositions(name="segment_positions")
        within = SegmentMask(name="segment_mask")
    masks = {side: find_tokens(of_tokens[side]) for side in ids}

    positions = dict.fromkeys(ids)
    if packed:
        positions = {side: find_positions(segments[side]) for side in ids}

    def embedded(side, embedding, drop):
        vectors = embedding(ids[side])
        return drop(model.place(vectors, positions=positions[side]))

    def same_pair(query, key):
        return within(segments[query], segments[key]) if packed else None

    context = model.encoder(
        embedded("source", model.source_embedding, model.source_drop),
        padding_mask=masks["source"],
        attention_mask=same_pair("source", "source"),
        **model.stack_arguments(positions["source"]),
    )
    vectors = model.decoder(
        embedded("target", model.target_embedding, model.target_drop),
        context,
        padding_mask=masks["target"],
        context_padding_mask=masks["source"],
        attention_mask=same_pair("target", "target"),
        context_attention_mask=same_pair("target", "source"),
        **model.stack_arguments(positions["target"]),
    )
    return keras.Model(
        inputs={
            f"{side}_{kind}": tensor
            for kind, sides in (("ids", ids), ("segments", segments))
            for side, tensor in sides.items()
        },
        outputs=vectors,
        name=f"{model.name}_vectors",
    )
