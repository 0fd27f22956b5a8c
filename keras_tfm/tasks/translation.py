"""Translation from start to end: text, model, training, decoding, serving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.generation.generator import Generator
from keras_tfm.generation.greedy import GreedyGenerator
from keras_tfm.models.presets import preset_arguments
from keras_tfm.models.transformer.transformer import Transformer
from keras_tfm.tasks.attention_record import attention_record
from keras_tfm.tasks.hypothesis import Hypothesis
from keras_tfm.tasks.inference import Inference
from keras_tfm.tasks.scores import Score
from keras_tfm.tasks.scores import bleu
from keras_tfm.tasks.scores import chrf
from keras_tfm.tasks.scores import exact_match
from keras_tfm.tasks.serving import export_saved_model
from keras_tfm.tasks.serving import make_text_to_text
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.tokenizing import check_vocabularies
from keras_tfm.tasks.tokenizing import train_tokenizers
from keras_tfm.tasks.training_batches import Batches
from keras_tfm.tasks.training_batches import make_batches
from keras_tfm.tasks.training_run import run_training
from keras_tfm.tasks.translator_folder import load_parts
from keras_tfm.tasks.translator_folder import save_translator
from keras_tfm.tasks.validating import ValidationPlan
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
        max_length_factor: Positive float: a translation has at most this many
            times the tokens of its source. Defaults to `None`: no such limit.

    Attributes:
        generator: What chooses the tokens where no other is given, a
            `GreedyGenerator`. Any generator may be put in its place.

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
        max_length_factor: float | None = None,
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
        self.max_length_factor = max_length_factor
        if max_length_factor is not None:
            check_positive("max_length_factor", max_length_factor)
        self.generator: Generator = GreedyGenerator(max_target_length)
        self._inference = Inference(self)

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
    ) -> Batches:
        """Tokenize pairs and put them into batches of few shapes."""
        return make_batches(
            self.source_tokenizer, self.target_tokenizer, pairs, settings
        )

    def fit(
        self,
        pairs: SentencePairs | Batches,
        settings: TrainingSettings | None = None,
        *,
        steps: int | None = None,
        max_minutes: float | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        checkpoint_minutes: float = 2.0,
        validation: ValidationPlan | None = None,
        tensorboard: bool = False,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> dict[str, float]:
        """Train the model, compiled by XLA, until a number of steps or a time.

        Args:
            pairs: The training pairs, or batches made of them.
            settings: How to train. Defaults to `TrainingSettings()`.
            steps: Positive integer, in updates over all sessions.
            max_minutes: Positive float, for this session. One of the two must
                be given.
            folder: Path of checkpoints and `training_log.csv`, or `None`.
            resume: Boolean. Go on from the checkpoint in the folder.
            checkpoint_minutes: Positive float. A kill loses at most this much.
            validation: What to measure on other pairs while training. The model
                then ends with the weights that were best.
            tensorboard: Boolean. Whether TensorBoard gets the log too.
            callbacks: Keras callbacks, such as a progress bar.

        Returns:
            The last values of `loss`, `token_accuracy` and `perplexity`, and
            `steps`, the updates so far.
        """
        settings = settings or TrainingSettings()
        batches = pairs
        if isinstance(pairs, SentencePairs):
            batches = self.batches(pairs, settings)
        self._inference = Inference(self)
        return run_training(
            self.model,
            batches,
            settings,
            steps=steps,
            max_minutes=max_minutes,
            folder=folder,
            resume=resume,
            checkpoint_minutes=checkpoint_minutes,
            validation=validation,
            tensorboard=tensorboard,
            callbacks=callbacks,
        )

    def translate(
        self, texts: Sequence[str], generator: Generator | None = None
    ) -> list[str]:
        """Translate texts; an empty text gives an empty translation.

        Args:
            texts: List of strings, as many as you like.
            generator: What chooses the tokens, compiled at its first use:
                keep it for the next. Defaults to `self.generator`.

        Returns:
            One translation for each, in the same order.

        Raises:
            ValueError: If a text is longer than the model was made for; the
                message names it. Nothing is translated then.
        """
        return self._inference.translate(texts, generator)

    def translate_nbest(
        self, texts: Sequence[str], generator: Generator | None = None
    ) -> list[list[Hypothesis]]:
        """Return every hypothesis of each text, the best first.

        The arguments are those of `translate`; the generator decides how many
        there are.
        """
        return self._inference.translate_nbest(texts, generator)

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> np.ndarray:
        """Score given translations.

        Args:
            sources: List of strings.
            targets: A translation of each.

        Returns:
            Float32 array: the log-probability of each target, its end
            included; 0 for an empty source.

        Raises:
            ValueError: If there are not as many targets as sources, or a text
                is longer than the model was made for.
        """
        return self._inference.score(sources, targets)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return each text's mean vector, `(texts, size)`; of none it is 0."""
        return self._inference.encode(texts)

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

    def export(
        self,
        folder: str | Path,
        jit_compile: bool = True,
        tokenizer_ops: str = "tf_text",
        generator: Generator | None = None,
        quantization: str | None = None,
    ) -> None:
        """Write a SavedModel that takes strings and returns strings.

        See `TextToText` for its signatures.

        Args:
            folder: Path.
            jit_compile: Boolean. Whether XLA compiles it.
            tokenizer_ops: `"tf_text"`: a SentencePiece tokenizer needs
                `tensorflow_text` imported where the model is loaded; or
                `"core"`: TensorFlow alone, a little slower. Defaults to
                `"tf_text"`.
            generator: See `translate`.
            quantization: `"int8"` for matrices in a quarter of the room, see
                `Int8Weights`. Defaults to `None`.

        Raises:
            RuntimeError: If Keras does not run on TensorFlow.
            ValueError: If an option is unknown.
        """
        module = make_text_to_text(
            self, generator, jit_compile, tokenizer_ops, quantization
        )
        export_saved_model(module, folder)
