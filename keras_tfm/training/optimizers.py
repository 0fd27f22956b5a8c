"""Keras's optimizers, set up the way Transformers are trained."""

import keras

from keras_tfm.checks import check_choice
from keras_tfm.checks import check_positive
from keras_tfm.checks import check_positive_int
from keras_tfm.checks import check_share

OPTIMIZERS = ("adam", "adamw", "muon")
# Muon is for matrices between vectors; the softmax has Adam's rule.
_SOFTMAX = "vocabulary_projection"


def make_optimizer(
    name,
    learning_rate,
    variables,
    *,
    beta_1=0.9,
    beta_2=0.98,
    epsilon=1e-9,
    weight_decay=0.0,
    clip_norm=None,
    accumulation_steps=1,
    ema_momentum=0.0,
):
    """Make an optimizer and build it for a model's weights.

    Args:
        name: `"adam"`, `"adamw"` or `"muon"`. Muon orthogonalizes the update of
            each matrix and scales it to the size of Adam's, so that the same
            rates fit; embeddings, norms, biases and the softmax get Adam's
            own.
        learning_rate: Positive float, or a schedule.
        variables: The model's trainable variables.
        beta_1: Float in [0, 1). Defaults to `0.9`. It is Muon's momentum too.
        beta_2: Float in [0, 1). Defaults to `0.98`, the paper's.
        epsilon: Positive float. Defaults to `1e-9`, the paper's.
        weight_decay: Float in [0, 1), the share of a weight, times the rate,
            that is taken away in an update. Norms and biases are left alone.
            Not for `"adam"`. Defaults to `0.0`.
        clip_norm: Positive float. A gradient whose norm over all weights is
            larger is scaled down to it. Defaults to `None`.
        accumulation_steps: Positive integer. Batches whose mean gradient makes
            an update. Defaults to `1`.
        ema_momentum: Float in [0, 1), of a moving average of the weights; 0
            for none. Defaults to `0.0`.

    Returns:
        A built Keras optimizer.

    Raises:
        ValueError: If the name is unknown or a number is out of range.

    Example:
        >>> layer = keras.layers.Dense(3)
        >>> layer.build((None, 2))
        >>> optimizer = make_optimizer(
        ...     "adamw", 1e-3, layer.trainable_variables, weight_decay=0.01
        ... )
        >>> type(optimizer).__name__
        'AdamW'

    Reference:
        [Loshchilov and Hutter, 2019](https://arxiv.org/abs/1711.05101) for
        AdamW; [Jordan et al., 2024](https://kellerjordan.github.io/posts/muon/)
        and [Liu et al., 2025](https://arxiv.org/abs/2502.16982) for Muon.
    """
    check_choice("optimizer", name, OPTIMIZERS)
    check_share("weight_decay", weight_decay)
    if weight_decay and name == "adam":
        raise ValueError(
            'Adam decays no weights. Received: optimizer="adam", '
            f'weight_decay={weight_decay}. Use optimizer="adamw".'
        )
    arguments = {"learning_rate": learning_rate, "epsilon": epsilon}
    if clip_norm is not None:
        arguments["global_clipnorm"] = check_positive("clip_norm", clip_norm)
    if check_positive_int("accumulation_steps", accumulation_steps) > 1:
        arguments["gradient_accumulation_steps"] = accumulation_steps
    if check_share("ema_momentum", ema_momentum):
        arguments |= {"use_ema": True, "ema_momentum": ema_momentum}
    if name == "muon":
        optimizer = keras.optimizers.Muon(
            momentum=beta_1,
            adam_beta_1=beta_1,
            adam_beta_2=beta_2,
            weight_decay=weight_decay or None,
            adam_weight_decay=weight_decay or None,
            exclude_layers=[_SOFTMAX],
            **arguments,
        )
    else:
        kinds = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW}
        if name == "adamw":
            arguments["weight_decay"] = weight_decay
        optimizer = kinds[name](beta_1=beta_1, beta_2=beta_2, **arguments)
    if weight_decay:
        # What has one axis: norms, biases.
        small = [v for v in variables if len(v.shape) < 2]
        optimizer.exclude_from_weight_decay(var_list=small)
    optimizer.build(variables)
    return optimizer
