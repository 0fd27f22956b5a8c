"""`keras-tfm train`: the options of a training, and of its resumption."""

from __future__ import annotations

from typing import Any

import keras_tfm.cli.settings_options as settings
import keras_tfm.cli.train_options as options
from keras_tfm.cli.data_options import DatesOption
from keras_tfm.cli.data_options import SourceLanguageOption
from keras_tfm.cli.data_options import SourceOption
from keras_tfm.cli.data_options import SplitOption
from keras_tfm.cli.data_options import TargetLanguageOption
from keras_tfm.cli.data_options import TargetOption
from keras_tfm.cli.data_options import TfdsOption
from keras_tfm.cli.data_options import TranslateFolderOption
from keras_tfm.cli.data_options import TsvOption
from keras_tfm.cli.evaluate import LowercaseOption
from keras_tfm.cli.evaluate import TokenizeOption
from keras_tfm.cli.recipe import RecipeArgument
from keras_tfm.cli.train_request import ENDS
from keras_tfm.cli.train_request import check_ends
from keras_tfm.cli.train_request import plan_of
from keras_tfm.cli.training_folder import TrainingPlan
from keras_tfm.cli.training_folder import check_new
from keras_tfm.cli.training_session import begin_training
from keras_tfm.cli.training_session import resume_training

_CHANGEABLE = ("folder", "resume", *ENDS)
# Pairs of flags whose second one is an option of its own.
_PAIRS = ("joint", "pre_norm")


def train(  # noqa: PLR0913 (each is an option)
    folder: options.FolderOption,
    recipe: RecipeArgument = None,
    source: SourceOption = None,
    target: TargetOption = None,
    tsv: TsvOption = None,
    dates: DatesOption = None,
    tfds: TfdsOption = None,
    translate_folder: TranslateFolderOption = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    split: SplitOption = None,
    steps: options.StepsOption = None,
    max_minutes: options.MaxMinutesOption = None,
    checkpoint_minutes: options.CheckpointMinutesOption = None,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
    tensorboard: options.TensorBoardOption = False,
    validation_source: options.ValidationSourceOption = None,
    validation_target: options.ValidationTargetOption = None,
    validation_tsv: options.ValidationTsvOption = None,
    validation_dates: options.ValidationDatesOption = None,
    validation_split: options.ValidationSplitOption = None,
    validation_steps: options.ValidationStepsOption = None,
    patience: options.PatienceOption = None,
    metric: options.MetricOption = None,
    monitor: options.MonitorOption = None,
    tokenize: TokenizeOption = None,
    lowercase: LowercaseOption = False,
    tokenizer: options.TokenizerOption = None,
    vocabulary_size: options.VocabularySizeOption = None,
    joint: options.JointOption = None,
    preset: options.PresetOption = None,
    num_layers: options.NumLayersOption = None,
    num_decoder_layers: options.NumDecoderLayersOption = None,
    hidden_dim: options.HiddenDimOption = None,
    intermediate_dim: options.IntermediateDimOption = None,
    num_heads: options.NumHeadsOption = None,
    dropout: options.DropoutOption = None,
    attention_dropout: options.AttentionDropoutOption = None,
    activation_dropout: options.ActivationDropoutOption = None,
    pre_norm: options.PreNormOption = None,
    max_sequence_length: options.MaxSequenceLengthOption = None,
    batching: settings.BatchingOption = None,
    tokens_per_batch: settings.TokensPerBatchOption = None,
    row_length: settings.RowLengthOption = None,
    max_shapes: settings.MaxShapesOption = None,
    accumulation_steps: settings.AccumulationStepsOption = None,
    subword_dropout: settings.SubwordDropoutOption = None,
    bidirectional_epochs: settings.BidirectionalEpochsOption = None,
    seed: settings.SeedOption = None,
    optimizer: settings.OptimizerOption = None,
    peak_rate: settings.PeakRateOption = None,
    warmup_steps: settings.WarmupStepsOption = None,
    decay_steps: settings.DecayStepsOption = None,
    beta_2: settings.Beta2Option = None,
    weight_decay: settings.WeightDecayOption = None,
    clip_norm: settings.ClipNormOption = None,
    label_smoothing: settings.LabelSmoothingOption = None,
    average_last: settings.AverageLastOption = None,
    snapshot_steps: settings.SnapshotStepsOption = None,
    ema_momentum: settings.EmaMomentumOption = None,
) -> None:
    """Train a translator, or go on with a training that was interrupted.

    Its options, defaults included, are kept in recipe.yaml in the folder.
    """
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and (value is not False or name in _PAIRS)
    }
    check_ends(given)
    if resume:
        _check_unchanged(given)
        plan = TrainingPlan.load(folder)
        if steps is not None or max_minutes is not None:
            plan.ends.update(steps=steps, max_minutes=max_minutes)
        if checkpoint_minutes is not None:
            plan.ends.update(checkpoint_minutes=checkpoint_minutes)
        resume_training(plan, folder)
        return
    check_new(folder, overwrite)
    if steps is None and max_minutes is None:
        raise ValueError(
            "A training needs an end: give --steps, --max-minutes or both."
        )
    begin_training(plan_of(given), folder)


def _check_unchanged(given: dict[str, Any]) -> None:
    if "recipe" in given:
        raise ValueError(
            "A training is resumed with what it began with: leave out the "
            f"recipe {given['recipe']}, and give its --folder."
        )
    changed = sorted(set(given) - set(_CHANGEABLE))
    if changed:
        names = ", ".join("--" + name.replace("_", "-") for name in changed)
        raise ValueError(
            f"A training is resumed with what it began with: leave out {names}."
        )
