"""Reading pairs of sequences and putting them into batches."""

# Not `dates`: it needs Babel. Import it from `keras_tfm.data.dates`.

from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.both_directions import BothDirections
from keras_tfm.data.bucket_edges import assign_buckets
from keras_tfm.data.bucket_edges import choose_bucket_edges
from keras_tfm.data.packed_batches import PackedBatches
from keras_tfm.data.pair_packing import pack_pairs
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.data.sentence_pairs import read_parallel
from keras_tfm.data.sentence_pairs import read_tfds
from keras_tfm.data.sentence_pairs import read_translate_folder
from keras_tfm.data.sentence_pairs import read_tsv
from keras_tfm.data.shape_watch import watch_shapes
from keras_tfm.data.text_files import DataError
from keras_tfm.data.text_files import read_lines

__all__ = [
    "BothDirections",
    "BucketedBatches",
    "DataError",
    "PackedBatches",
    "SentencePairs",
    "assign_buckets",
    "choose_bucket_edges",
    "pack_pairs",
    "read_lines",
    "read_parallel",
    "read_tfds",
    "read_translate_folder",
    "read_tsv",
    "watch_shapes",
]
