"""Small decoders from ids to ids that differ from row to row, and sources."""

import functools

import numpy as np
import tensorflow as tf
from models.transformer.made import V_SOURCE
from models.transformer.made import fresh
from models.transformer.made import shaken

from keras_tfm.generation import BeamSearchGenerator
from keras_tfm.generation import GreedyGenerator
from keras_tfm.tasks.decoding import make_writer

T = 7
# A token that the model below writes often, so that some rows end early.
END = 131
GENERATORS = {
    "greedy": GreedyGenerator(T, end_id=END),
    "beam": BeamSearchGenerator(T, num_beams=3, end_id=END),
}
SHAPES = [(3, 5), (2, 11)]


@functools.cache
def made():
    # So many targets that the likeliest are looked for in groups, and the
    # exact GELU, which formats spell in their own ways.
    model = fresh(
        None, num_layers=1, target_vocabulary_size=307, activation="gelu"
    )
    return shaken(model, seed=3)


def writer(kind):
    return make_writer(made(), GENERATORS[kind])


def written(kind):
    """Return sources and what TensorFlow writes for them, for each shape."""
    run = tf.function(
        writer(kind),
        input_signature=[tf.TensorSpec((None, None), tf.int32)],
        autograph=False,
    )
    for shape in SHAPES:
        ids = sources(*shape)
        target_ids, scores = run(tf.constant(ids))
        yield ids, target_ids.numpy(), scores.numpy()


def sources(batch, length, seed=5):
    """Draw ids of rows that are full, shorter, and the third one empty."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(3, V_SOURCE, (batch, length), dtype="int32")
    lengths = length - np.arange(batch) * 3
    return ids * (np.arange(length) < lengths[:, None])


def reverse(ids):
    """Decode nothing: turn rows around and add them up."""
    return ids[:, ::-1], tf.cast(tf.reduce_sum(ids, 1), tf.float32)
