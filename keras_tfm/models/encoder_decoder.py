"""What every encoder-decoder model can do: train, encode and decode.

Shape letters: B batch, T target length, S source length, E hidden_dim.
"""

import keras
from keras import ops
from keras import tree

from keras_tfm.models.backbone import Backbone


class EncoderDecoder(Backbone):
    """Abstract: tokens, an encoder, a decoder and a projection.

    A subclass makes the parts and hands them on.

    Args:
        token_layers: `TokenLayers`.
        encoder: Layer called as `Encoder`.
        decoder: Layer called as `Decoder`, with its cache.
        position: Layer called as `PositionalEncoding`; `None` where the encoder
            and the decoder see to positions themselves, or have none.
        policy: Dtype policy of every layer.
        arguments: Dictionary of the arguments of the subclass, for its config.
        **kwargs: Passed to `keras.Model`, such as `name`.
    """

    def __init__(
        self,
        token_layers,
        encoder,
        decoder,
        position=None,
        *,
        policy,
        arguments,
        **kwargs,
    ):
        # --- Graph ---
        def placed(vectors):
            return vectors if position is None else position(vectors)

        layers = token_layers
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        source_mask = layers.find_tokens(source_ids)
        target_mask = layers.find_tokens(target_ids)
        context = layers.source_drop(
            placed(layers.source_embedding(source_ids))
        )
        context = encoder(context, padding_mask=source_mask)
        x = layers.target_drop(placed(layers.target_embedding(target_ids)))
        x = decoder(
            x,
            context,
            padding_mask=target_mask,
            context_padding_mask=source_mask,
        )
        if layers.project is None:
            logits = layers.target_embedding(x, reverse=True)
        else:
            logits = layers.project(x)
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=logits,
            **kwargs,
        )

        # --- Config ---
        self.find_tokens = layers.find_tokens
        self.source_embedding = layers.source_embedding
        self.target_embedding = layers.target_embedding
        self.source_drop = layers.source_drop
        self.target_drop = layers.target_drop
        self.project = layers.project
        self.position = position
        self.encoder = encoder
        self.decoder = decoder
        self.policy = policy
        self.arguments = arguments

    def place(self, vectors, **where):
        """Add positions to the vectors of tokens, where the model does so.

        Args:
            vectors: Float tensor `(batch, length, hidden_dim)`.
            **where: Call arguments of `PositionalEncoding`.
        """
        if self.position is None:
            return vectors
        return self.position(vectors, **where)

    def stack_arguments(self, positions):
        """Return what the encoder and the decoder must know of positions.

        Args:
            positions: Integer tensor `(batch, length)`: those of the tokens of
                packed rows.

        Returns:
            A dictionary of call arguments; empty where `position` does it all.
        """
        del positions
        return {}

    def encode(self, source_ids, return_attention_scores=False):
        """Encode source ids `(batch, source_length)`, without dropout.

        Returns:
            Float tensor `(batch, source_length, hidden_dim)`, and the tuple of
            each block's weights if asked for.
        """
        x = self.place(self.source_embedding(source_ids))
        return self.encoder(
            x,
            padding_mask=self.find_tokens(source_ids),
            return_attention_scores=return_attention_scores,
            training=False,
        )

    def initial_cache(self, source_ids, max_length, num_beams=1):
        """Encode a source and make the cache for `step`.

        Args:
            source_ids: Integer tensor `(batch, source_length)`.
            max_length: Integer, the most target tokens that will be decoded.
            num_beams: Integer, the alternatives at each position. The source
                is encoded and kept once for all of them. Defaults to `1`.

        Returns:
            A dictionary of tensors: the source mask, and each decoder block's
            cached keys and values.
        """
        mask = self.find_tokens(source_ids)
        return {
            "source_mask": mask,
            "blocks": self.decoder.initial_cache(
                ops.shape(source_ids)[0],
                max_length,
                self.encode(source_ids),
                mask,
                num_beams,
            ),
        }

    def grow_cache(self, cache, max_length, num_beams=1):
        """Make room for more target tokens; what is cached stays.

        Args:
            cache: What `initial_cache` or `step` returned.
            max_length: Integer, the most target tokens from now on.
            num_beams: Integer, as in `initial_cache`. Defaults to `1`.

        Returns:
            The cache, with room for `max_length` tokens of each beam.
        """
        return {
            **cache,
            "blocks": self.decoder.grow_cache(
                cache["blocks"], max_length, num_beams
            ),
        }

    def take_rows(self, cache, rows):
        """Return the cache of some rows of the batch.

        Args:
            cache: What `initial_cache` or `step` returned.
            rows: Integer tensor, their numbers.
        """
        return tree.map_structure(
            lambda tensor: ops.take(tensor, rows, axis=0), cache
        )

    def step(
        self,
        target_ids,
        cache,
        cache_index,
        ancestors=None,
        return_attention_scores=False,
    ):
        """Predict what follows the next target tokens.

        Equal to `call` at the same positions. The tokens are consecutive; with
        `ancestors` they are the beams of a search, alternatives at one
        position.

        Args:
            target_ids: Integer tensor `(batch, new_length)`.
            cache: What `initial_cache` or the step before returned.
            cache_index: Integer or scalar tensor: how many positions came
                before.
            ancestors: Integer tensor `(batch, new_length, max_length)`: at each
                position the beam that a beam descends from, see
                `keras_tfm.ops.search.ancestor_mask`. Defaults to none.
            return_attention_scores: Boolean. Whether to return the weights too.

        Returns:
            Logits `(batch, new_length, target_vocabulary_size)` and the new
            cache; with `return_attention_scores=True` also a dictionary of
            `decoder` and `cross`: tuples of float32 tensors `(batch,
            num_heads, new_length, …)`, one for each block. The keys of
            `decoder` are those of the cache.
        """
        x = self.target_embedding(target_ids)
        if ancestors is None:
            x = self.place(x, start_index=cache_index)
        else:
            position = ops.cast(cache_index, "int32")
            x = self.place(x, positions=ops.reshape(position, (1,)))
        x, blocks, own, cross = self.decoder.step(
            x,
            cache["blocks"],
            cache_index,
            cache["source_mask"],
            ancestors,
            return_attention_scores=True,
        )
        cache = {**cache, "blocks": blocks}
        if return_attention_scores:
            return self.logits(x), cache, {"decoder": own, "cross": cross}
        return self.logits(x), cache

    def target_vectors(self, source_ids, target_ids):
        """Return the decoder's vectors of a pass without dropout.

        Their `logits` are what `call` returns.

        Args:
            source_ids: Integer tensor `(batch, source_length)`.
            target_ids: Integer tensor `(batch, target_length)`, what the
                decoder reads.

        Returns:
            Float tensor `(batch, target_length, hidden_dim)`.
        """
        return self.decoder(
            self.place(self.target_embedding(target_ids)),
            self.encode(source_ids),
            padding_mask=self.find_tokens(target_ids),
            context_padding_mask=self.find_tokens(source_ids),
            training=False,
        )

    def attention_scores(self, source_ids, target_ids):
        """Return every attention weight of a pass without dropout.

        Args:
            source_ids: Integer tensor `(batch, source_length)`.
            target_ids: Integer tensor `(batch, target_length)`, what the
                decoder reads.

        Returns:
            A dictionary of `encoder`, `decoder` and `cross`: tuples of float32
            tensors `(batch, num_heads, …, …)`, one for each block, whose rows
            sum to 1.
        """
        context, encoder = self.encode(source_ids, True)
        x = self.place(self.target_embedding(target_ids))
        _, decoder, cross = self.decoder(
            x,
            context,
            padding_mask=self.find_tokens(target_ids),
            context_padding_mask=self.find_tokens(source_ids),
            return_attention_scores=True,
            training=False,
        )
        return {"encoder": encoder, "decoder": decoder, "cross": cross}

    def logits(self, vectors):
        """Score every target token for the decoder's vectors."""
        if self.project is None:
            return self.target_embedding(vectors, reverse=True)
        return self.project(vectors)

    def vocabulary_table(self):
        """Return what `logits` projects with: a row for each target token.

        Returns:
            Float tensor `(target_vocabulary_size, hidden_dim)`, in the dtype of
            the weights.
        """
        if self.project is None:
            return ops.convert_to_tensor(self.target_embedding.embeddings)
        return ops.transpose(ops.convert_to_tensor(self.project.kernel))
