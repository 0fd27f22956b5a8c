"""Translation from start to end: text, model, training, decoding, serving."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive_int
from keras_tfm.data.batching import BucketedBatches
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.export.text_to_text import TextToText
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.models.presets import preset_arguments
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.attention_record import attention_record
from keras_tfm.tasks.decoding import compile_writer
from keras_tfm.tasks.decoding import make_writer
from keras_tfm.tasks.decoding import write_in_batches
from keras_tfm.tasks.scores import Score
from keras_tfm.tasks.scores import bleu
from keras_tfm.tasks.scores import chrf
from keras_tfm.tasks.scores import exact_match
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.tokenizing import check_lengths
from keras_tfm.tasks.tokenizing import check_vocabularies
from keras_tfm.tasks.tokenizing import token_rows
from keras_tfm.tasks.tokenizing import train_tokenizers
from keras_tfm.tasks.training_run import run_training
from keras_tfm.tasks.translator_folder import load_parts
from keras_tfm.tasks.translator_folder import save_translator
from keras_tfm.text.tokenizer import Tokenizer


class Translator:
    """Tokenizers, a model and a decoder in one object: strings to strings.

    Args:
        model: Transformer.
        source_tokenizer: Tokenizer of the texts that come in.
        target_tokenizer: Tokenizer of the texts that go out; the same object
            for one vocabulary.
        max_target_length: Positive integer, the most tokens of a translation,
            its end included. Defaults to `128`.
        source_lengths: Increasing positive integers: the lengths, in tokens
            with the end, that sources are padded to. A source longer than the
            last is an error. Defaults to `(16, 32, 64, 128)`.
        batch_sizes: Increasing positive integers: the rows that batches are
            padded to. Defaults to `(1, 8, 64)`.

    Raises:
        ValueError: If the tokenizers and the model disagree on a vocabulary, or
            the model shares one table among two vocabularies.
    """

    def __init__(
        self,
        model: Transformer,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_target_length: int = 128,
        source_lengths: Sequence[int] = (16, 32, 64, 128),
        batch_sizes: Sequence[int] = (1, 8, 64),
    ) -> None:
        check_vocabularies(model.arguments, source_tokenizer, target_tokenizer)
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.max_target_length = check_positive_int(
            "max_target_length", max_target_length
        )
        self.source_lengths = tuple(sorted(source_lengths))
        self.batch_sizes = tuple(sorted(batch_sizes))
        self._write: Callable[[Any], tuple[Any, Any]] | None = None

    @classmethod
    def from_pairs(
        cls,
        pairs: SentencePairs,
        tokenizer: str = "bpe",
        vocabulary_size: int = 8000,
        joint: bool = True,
        preset: str | None = None,
        max_target_length: int = 128,
        source_lengths: Sequence[int] = (16, 32, 64, 128),
        **model_arguments: Any,
    ) -> Translator:
        """Train tokenizers on pairs and make a new model to fit them.

        Args:
            pairs: The training pairs.
            tokenizer: `"bpe"` or `"characters"`. Defaults to `"bpe"`.
            vocabulary_size: Positive integer, of a BPE tokenizer.
                Defaults to `8000`.
            joint: Boolean. One vocabulary for both sides, or one for each.
                Defaults to `True`.
            preset: Name of a preset, or `None` for the model's own defaults.
            max_target_length: See the class.
            source_lengths: See the class.
            **model_arguments: Arguments of `Transformer`, such as
                `num_layers=4`; they replace the preset's.

        Raises:
            ValueError: If the tokenizer or the preset is unknown.
        """
        arguments = preset_arguments(preset) if preset else {}
        arguments = {**arguments, **model_arguments}
        source, target = train_tokenizers(
            pairs, tokenizer, vocabulary_size, joint
        )
        # A preset that shares one table cannot do so with two vocabularies.
        shared = "tie_embeddings" not in model_arguments
        if not joint and shared and arguments.get("tie_embeddings") == "all":
            arguments["tie_embeddings"] = "decoder"
        model = Transformer(
            source.vocabulary_size, target.vocabulary_size, **arguments
        )
        return cls(
            model,
            source,
            target,
            max_target_length=max_target_length,
            source_lengths=source_lengths,
        )

    def batches(
        self, pairs: SentencePairs, settings: TrainingSettings
    ) -> BucketedBatches:
        """Tokenize pairs and sort them into batches of few shapes."""
        return BucketedBatches(
            token_rows(self.source_tokenizer, pairs.sources),
            token_rows(self.target_tokenizer, pairs.targets),
            settings.tokens_per_batch,
            max_shapes=settings.max_shapes,
            max_sequence_length=settings.max_sequence_length,
            seed=settings.seed,
        )

    def fit(
        self,
        pairs: SentencePairs | BucketedBatches,
        settings: TrainingSettings | None = None,
        *,
        steps: int | None = None,
        max_minutes: float | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        checkpoint_minutes: float = 2.0,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> dict[str, float]:
        """Train the model, compiled by XLA, until a number of steps or a time.

        Args:
            pairs: The training pairs, or batches made of them.
            settings: How to train. Defaults to `TrainingSettings()`.
            steps: Positive integer, in updates over all sessions.
            max_minutes: Positive float, for this session. One of the two must
                be given.
            folder: Path that checkpoints are written to, or `None` for none.
            resume: Boolean. Go on from the checkpoint in the folder: the
                weights, the optimizer, the random streams and the place in the
                data. Defaults to `False`.
            checkpoint_minutes: Positive float. A kill loses at most this much.
            callbacks: Keras callbacks, such as a progress bar.

        Returns:
            The last values of `loss`, `token_accuracy` and `perplexity`, and
            `steps`, the updates so far.
        """
        settings = settings or TrainingSettings()
        batches = pairs
        if isinstance(pairs, SentencePairs):
            batches = self.batches(pairs, settings)
        self._write = None
        return run_training(
            self.model,
            batches,
            settings,
            steps=steps,
            max_minutes=max_minutes,
            folder=folder,
            resume=resume,
            checkpoint_minutes=checkpoint_minutes,
            callbacks=callbacks,
        )

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate texts; an empty text gives an empty translation.

        Args:
            texts: List of strings, as many as you like.

        Returns:
            One translation for each, in the same order.

        Raises:
            ValueError: If a text is longer than the model was made for; the
                message names it. Nothing is translated then.
        """
        if isinstance(texts, str):
            raise ValueError(
                "`translate` takes a list of texts. Received one string: "
                f"pass [{texts[:20]!r}]."
            )
        if not texts:
            return []
        rows = token_rows(self.source_tokenizer, texts)
        check_lengths(rows, self.source_lengths[-1])
        if self._write is None:
            self._write = self._compile()
        translations = [""] * len(rows)
        for chunk, ids in write_in_batches(
            self._write,
            rows,
            self.batch_sizes,
            self.source_lengths,
            end_id=self.source_tokenizer.end_id,
            pad_id=self.source_tokenizer.pad_id,
        ):
            written = self.target_tokenizer.detokenize(ids).numpy()
            for index, text in zip(chunk, written, strict=True):
                translations[index] = text.decode("utf-8", "replace")
        return translations

    def evaluate(
        self,
        pairs: SentencePairs,
        metric: str = "bleu",
        tokenize: str | None = None,
        lowercase: bool = False,
    ) -> list[Score]:
        """Translate the sources and score them against the targets.

        Args:
            pairs: Pairs the model has not seen.
            metric: `"bleu"` (BLEU and chrF) or `"exact"`.
            tokenize: sacrebleu's tokenizer for BLEU, such as `"zh"`.
            lowercase: Boolean. Whether case counts for nothing in BLEU.

        Returns:
            List of scores with their signatures.
        """
        check_choice("metric", metric, ("bleu", "exact"))
        translations = self.translate(list(pairs.sources))
        if metric == "exact":
            return [exact_match(translations, pairs.targets)]
        return [
            bleu(translations, pairs.targets, tokenize, lowercase),
            chrf(translations, pairs.targets),
        ]

    def attention(
        self, text: str, translation: str | None = None
    ) -> dict[str, Any]:
        """Return what every head looks at while a text is translated.

        Args:
            text: String.
            translation: String to look at. Defaults to the model's own.

        Returns:
            A dictionary: `source_tokens` and `target_tokens`, lists of strings
            (the targets are what the decoder predicts at each position);
            `encoder`, `decoder` and `cross`, arrays `(layers, heads, queries,
            keys)` whose rows sum to 1. The decoder's keys are the tokens
            before, beginning with the start mark.
        """
        return attention_record(self, text, translation)

    def save(self, folder: str | Path) -> None:
        """Write tokenizers, model and settings into a folder."""
        save_translator(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, weights: bool = True) -> Translator:
        """Read what `save` wrote; no code of the folder is run.

        Args:
            folder: Path.
            weights: Boolean. `False` makes the model anew, to resume a training
                from its checkpoint.

        Raises:
            ValueError: If the folder is not one of a translator, or training
                has not finished in it.
        """
        return cls(**load_parts(Path(folder), weights))

    def export(self, folder: str | Path, jit_compile: bool = True) -> None:
        """Write a SavedModel that takes strings and returns strings.

        Its one signature `serving_default` maps `text`, strings `(batch,)`, to
        `text` and `score`, the sum of the log-probabilities. See `TextToText`
        for batches and lengths.

        Args:
            folder: Path.
            jit_compile: Boolean. Whether XLA compiles the decoder where the
                model is loaded. Defaults to `True`.

        Raises:
            RuntimeError: If Keras does not run on TensorFlow.
        """
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "A SavedModel is made by TensorFlow. Keras runs on "
                f"{keras.backend.backend()}: save the translator and export it "
                "in a process with KERAS_BACKEND=tensorflow."
            )
        module = self.text_to_text(jit_compile)
        tf.saved_model.save(
            module,
            str(folder),
            signatures={"serving_default": module.translate},
        )

    def text_to_text(self, jit_compile: bool = True) -> TextToText:
        """Make the TensorFlow module that `export` writes."""
        return TextToText(
            self.source_tokenizer,
            self.target_tokenizer,
            make_writer(self.model, GreedyGenerator(self.max_target_length)),
            [variable.value for variable in self.model.variables],
            self.max_target_length,
            self.source_lengths,
            self.batch_sizes,
            jit_compile,
        )

    def _compile(self) -> Callable[[Any], tuple[Any, Any]]:
        if keras.backend.backend() == "tensorflow":
            return self.text_to_text().write_ids
        write = make_writer(self.model, GreedyGenerator(self.max_target_length))
        return compile_writer(self.model, write)
