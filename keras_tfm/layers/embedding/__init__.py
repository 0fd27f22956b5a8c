"""Token ids to vectors."""

from keras_tfm.layers.embedding.token_embedding import TokenEmbedding

__all__ = ["TokenEmbedding"]
