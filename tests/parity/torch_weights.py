"""Which weight of keras_tfm is which parameter of a torch module."""

import dataclasses

import keras
import numpy as np
import torch


@dataclasses.dataclass
class Link:
    """One Keras variable and the rows of a torch parameter that equal it.

    Args:
        variable: Keras variable.
        parameter: Torch parameter.
        rows: Slice of the parameter's first axis.
        transpose: Whether torch stores the matrix the other way round.
    """

    variable: keras.Variable
    parameter: torch.nn.Parameter
    rows: slice = dataclasses.field(default_factory=lambda: slice(None))
    transpose: bool = False

    def copy(self):
        """Write the parameter's value into the variable."""
        self.variable.assign(self._read(self.parameter.detach()))

    def value(self):
        return self._read(self.parameter.detach())

    def gradient(self):
        return self._read(self.parameter.grad)

    def _read(self, tensor):
        array = tensor.numpy()[self.rows]
        # A copy: torch goes on to change its own in place.
        return np.array(array.T if self.transpose else array)


def dense(layer, weight, bias, rows=slice(None)):
    """Link a Keras `Dense` to a weight and a bias of torch."""
    links = [Link(layer.kernel, weight, rows, transpose=True)]
    if layer.bias is not None:
        links.append(Link(layer.bias, bias, rows))
    return links


def norm(layer, module):
    return [Link(layer.gamma, module.weight), Link(layer.beta, module.bias)]


def self_attention(layer, module):
    """Link a `MultiHeadSelfAttention` to a `torch.nn.MultiheadAttention`."""
    return [
        *dense(
            layer.query_key_value, module.in_proj_weight, module.in_proj_bias
        ),
        *dense(
            layer.attention_output, module.out_proj.weight, module.out_proj.bias
        ),
    ]


def attention(layer, module):
    """Link a `MultiHeadAttention` to a `torch.nn.MultiheadAttention`."""
    width = module.embed_dim
    links = []
    for index, part in enumerate([layer.query, layer.key, layer.value]):
        rows = slice(index * width, (index + 1) * width)
        links += dense(part, module.in_proj_weight, module.in_proj_bias, rows)
    return links + dense(
        layer.attention_output, module.out_proj.weight, module.out_proj.bias
    )


def feed_forward(layer, module):
    return [
        *dense(layer.widen, module.linear1.weight, module.linear1.bias),
        *dense(layer.project, module.linear2.weight, module.linear2.bias),
    ]


def encoder_block(block, module):
    """Link an `EncoderBlock` to a `torch.nn.TransformerEncoderLayer`."""
    return [
        *self_attention(block.self_attention.sublayer, module.self_attn),
        *norm(block.self_attention.norm, module.norm1),
        *feed_forward(block.feed_forward.sublayer, module),
        *norm(block.feed_forward.norm, module.norm2),
    ]


def decoder_block(block, module):
    """Link a `DecoderBlock` to a `torch.nn.TransformerDecoderLayer`."""
    return [
        *self_attention(block.self_attention.sublayer, module.self_attn),
        *norm(block.self_attention.norm, module.norm1),
        *attention(block.cross_attention.sublayer, module.multihead_attn),
        *norm(block.cross_attention.norm, module.norm2),
        *feed_forward(block.feed_forward.sublayer, module),
        *norm(block.feed_forward.norm, module.norm3),
    ]


def stack(layer, module, link_block):
    """Link an `Encoder` or `Decoder` to torch's stack of the same kind."""
    links = []
    for block, its_module in zip(layer.blocks, module.layers, strict=True):
        links += link_block(block, its_module)
    if layer.norm is not None:
        links += norm(layer.norm, module.norm)
    return links


def encoder(layer, module):
    return stack(layer, module, encoder_block)


def decoder(layer, module):
    return stack(layer, module, decoder_block)


def shake(module, seed=0):
    """Redraw every parameter, so that no zero or one hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            # Norm weights near 1, everything else near 0.
            centre = parameter.mean().round() if parameter.dim() == 1 else 0.0
            parameter.copy_(centre + 0.3 * noise)
    return module


def copy(links, layer):
    """Copy every link's value; fail if a weight of `layer` has no link."""
    linked = {id(link.variable) for link in links}
    missing = [v.path for v in layer.weights if id(v) not in linked]
    # Seeds of dropout are weights of no model.
    missing = [path for path in missing if "seed" not in path]
    if missing:
        raise ValueError(f"Nothing in torch is linked to {missing}.")
    for link in links:
        link.copy()
