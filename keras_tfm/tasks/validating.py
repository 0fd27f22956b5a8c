"""What is measured on validation pairs while a translator is trained."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.data.token_weights import with_token_weights
from keras_tfm.models.loss_model import with_labels
from keras_tfm.tasks.settings import TrainingSettings
from keras_tfm.tasks.training_batches import Batches
from keras_tfm.tasks.training_batches import make_validation_batches

if TYPE_CHECKING:
    from keras_tfm.tasks.translation import Translator

Results = dict[str, float]


@dataclasses.dataclass(frozen=True)
class ValidationPlan:
    """What to measure on which pairs, how often, and when that is enough.

    Each time the pairs are translated with the translator's own generator, by
    the weights that the trained model would get then (the average, if one is
    asked for). The model ends with the weights that were best.

    Attributes:
        translator: What is trained.
        pairs: Pairs that it is not trained on.
        metric: `"bleu"` or `"exact"`, see `Translator.evaluate`; or `"loss"`,
            which translates nothing and is quick.
        tokenize: sacrebleu's tokenizer for BLEU.
        lowercase: Boolean. Whether case counts for nothing in BLEU.
        every_steps: Positive integer, in updates, or `None` for an epoch.
        patience: Positive integer. The training stops after so many results in
            a row without a better one; `None` for never.
        monitor: Name of the result that decides what is best, such as
            `"validation_loss"`. `None` for the metric.
        on_result: Function that is called with each result, or `None`.
    """

    translator: Translator
    pairs: SentencePairs
    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool = False
    every_steps: int | None = None
    patience: int | None = None
    monitor: str | None = None
    on_result: Callable[[Results], Any] | None = None

    def scorer(
        self,
        network: keras.Model,
        batches: Batches,
        settings: TrainingSettings,
    ) -> Callable[[], Results]:
        """Return the function that measures.

        Args:
            network: The compiled network that is trained.
            batches: What it is trained on.
            settings: How it is trained.
        """
        translator = self.translator
        pairs = make_validation_batches(
            translator.source_tokenizer,
            translator.target_tokenizer,
            self.pairs,
            settings,
            batches,
        )

        data = pairs.dataset(shuffle=False)
        if settings.accumulation_steps > 1:
            data = with_token_weights(data, 1)
        data = data.map(with_labels)

        def score() -> Results:
            results = {}
            if self.metric != "loss":
                scores = translator.evaluate(
                    self.pairs, self.metric, self.tokenize, self.lowercase
                )
                results = {
                    f"validation_{_word(score.name)}": score.value
                    for score in scores
                }
            found = network.evaluate(data, verbose=0, return_dict=True)
            # Keras's loss is a mean over batches; this one is over tokens, and
            # without label smoothing.
            results["validation_loss"] = math.log(found["perplexity"])
            results["validation_accuracy"] = float(found["token_accuracy"])
            return results

        return score


def _word(name: str) -> str:
    return name.lower().replace(" ", "_")
