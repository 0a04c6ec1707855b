//! Layers of transformers, and stacks of them.

use super::{AttentionArgs, Dropout, LayerNorm, Linear, MultiheadAttention};
use crate::nn::{Forward, Module, Tensor, enter};

/// The activation between the two linear layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`.
    #[default]
    Relu,
    /// Gaussian error linear unit.
    Gelu,
}

impl Activation {
    #[track_caller]
    fn of(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Relu => x.relu(),
            Activation::Gelu => x.gelu(),
        }
    }
}

/// What both kinds of layers are made with; PyTorch's defaults are those of [`TransformerArgs::new`].
#[derive(Clone, Copy, Debug)]
pub struct TransformerArgs {
    /// The width.
    pub d_model: usize,
    /// Heads of attention.
    pub nhead: usize,
    /// Width between the two linear layers.
    pub dim_feedforward: usize,
    /// Probability of dropping while training.
    pub dropout: f64,
    /// Between the two linear layers.
    pub activation: Activation,
    /// Of the normalisations.
    pub layer_norm_eps: f64,
    /// The batch comes before time.
    pub batch_first: bool,
    /// Normalisations come before what they normalise.
    pub norm_first: bool,
    /// Whether linear layers and normalisations have one.
    pub bias: bool,
}

impl TransformerArgs {
    /// Of a width and a number of heads.
    pub fn new(d_model: usize, nhead: usize) -> TransformerArgs {
        TransformerArgs {
            d_model,
            nhead,
            dim_feedforward: 2048,
            dropout: 0.1,
            activation: Activation::Relu,
            layer_norm_eps: 1e-5,
            batch_first: false,
            norm_first: false,
            bias: true,
        }
    }

    #[track_caller]
    fn attention(&self) -> MultiheadAttention {
        let m = MultiheadAttention::new(self.d_model, self.nhead);
        let m = m.batch_first(self.batch_first).dropout(self.dropout);
        if self.bias { m } else { m.no_bias() }
    }

    fn linear(&self, from: usize, to: usize) -> Linear {
        Linear::with_bias(from, to, self.bias)
    }

    fn norm(&self) -> LayerNorm {
        LayerNorm::with(&[self.d_model], self.layer_norm_eps, true, self.bias)
    }
}

/// Masks of one sequence: of pairs of its positions (or of its positions and the memory's), and of its positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceMask<'a> {
    /// As [`AttentionArgs::attn_mask`].
    pub mask: Option<&'a Tensor>,
    /// As [`AttentionArgs::key_padding_mask`].
    pub key_padding_mask: Option<&'a Tensor>,
    /// As [`AttentionArgs::is_causal`].
    pub is_causal: bool,
}

impl<'a> SequenceMask<'a> {
    fn args(self) -> AttentionArgs<'a> {
        AttentionArgs {
            key_padding_mask: self.key_padding_mask,
            attn_mask: self.mask,
            need_weights: false,
            average_attn_weights: true,
            is_causal: self.is_causal,
        }
    }
}

/// Attention of a sequence to itself, and two linear layers, each added to its operand.
#[derive(Clone, Module)]
pub struct TransformerEncoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// The first linear layer.
    pub linear1: Linear,
    dropout: Dropout,
    /// The second linear layer.
    pub linear2: Linear,
    /// With the attention.
    pub norm1: LayerNorm,
    /// With the linear layers.
    pub norm2: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    #[module(skip)]
    args: TransformerArgs,
}

impl TransformerEncoderLayer {
    /// Of these arguments.
    #[track_caller]
    pub fn new(args: TransformerArgs) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            self_attn: args.attention(),
            linear1: args.linear(args.d_model, args.dim_feedforward),
            dropout: Dropout::new(args.dropout),
            linear2: args.linear(args.dim_feedforward, args.d_model),
            norm1: args.norm(),
            norm2: args.norm(),
            dropout1: Dropout::new(args.dropout),
            dropout2: Dropout::new(args.dropout),
            args,
        }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, src: &Tensor, mask: SequenceMask<'_>) -> Tensor {
        let _entered = enter(self);
        if self.args.norm_first {
            let x = src + self.attend(&self.norm1.forward(src), mask);
            return &x + self.feed(&self.norm2.forward(&x));
        }
        let x = self.norm1.forward(&(src + self.attend(src, mask)));
        self.norm2.forward(&(&x + self.feed(&x)))
    }

    #[track_caller]
    fn attend(&self, x: &Tensor, mask: SequenceMask<'_>) -> Tensor {
        self.dropout1.forward(&self.self_attn.forward(x, x, x, &mask.args()).0)
    }

    #[track_caller]
    fn feed(&self, x: &Tensor) -> Tensor {
        let h = self.args.activation.of(&self.linear1.forward(x));
        self.dropout2.forward(&self.linear2.forward(&self.dropout.forward(&h)))
    }
}

impl Forward for TransformerEncoderLayer {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        TransformerEncoderLayer::forward(self, x, SequenceMask::default())
    }
}

/// Attention of a sequence to itself and to a memory, and two linear layers, each added to its operand.
#[derive(Clone, Module)]
pub struct TransformerDecoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// Of the sequence to the memory.
    pub multihead_attn: MultiheadAttention,
    /// The first linear layer.
    pub linear1: Linear,
    dropout: Dropout,
    /// The second linear layer.
    pub linear2: Linear,
    /// With the attention to itself.
    pub norm1: LayerNorm,
    /// With the attention to the memory.
    pub norm2: LayerNorm,
    /// With the linear layers.
    pub norm3: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    dropout3: Dropout,
    #[module(skip)]
    args: TransformerArgs,
}

impl TransformerDecoderLayer {
    /// Of these arguments.
    #[track_caller]
    pub fn new(args: TransformerArgs) -> TransformerDecoderLayer {
        TransformerDecoderLayer {
            self_attn: args.attention(),
            multihead_attn: args.attention(),
            linear1: args.linear(args.d_model, args.dim_feedforward),
            dropout: Dropout::new(args.dropout),
            linear2: args.linear(args.dim_feedforward, args.d_model),
            norm1: args.norm(),
            norm2: args.norm(),
            norm3: args.norm(),
            dropout1: Dropout::new(args.dropout),
            dropout2: Dropout::new(args.dropout),
            dropout3: Dropout::new(args.dropout),
            args,
        }
    }

    /// The result; `of` are the masks of the sequence, `to` those of the memory.
    #[track_caller]
    pub fn forward(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        of: SequenceMask<'_>,
        to: SequenceMask<'_>,
    ) -> Tensor {
        let _entered = enter(self);
        if self.args.norm_first {
            let x = tgt + self.attend(&self.norm1.forward(tgt), of);
            let x = &x + self.recall(&self.norm2.forward(&x), memory, to);
            return &x + self.feed(&self.norm3.forward(&x));
        }
        let x = self.norm1.forward(&(tgt + self.attend(tgt, of)));
        let x = self.norm2.forward(&(&x + self.recall(&x, memory, to)));
        self.norm3.forward(&(&x + self.feed(&x)))
    }

    #[track_caller]
    fn attend(&self, x: &Tensor, mask: SequenceMask<'_>) -> Tensor {
        self.dropout1.forward(&self.self_attn.forward(x, x, x, &mask.args()).0)
    }

    #[track_caller]
    fn recall(&self, x: &Tensor, memory: &Tensor, mask: SequenceMask<'_>) -> Tensor {
        self.dropout2.forward(&self.multihead_attn.forward(x, memory, memory, &mask.args()).0)
    }

    #[track_caller]
    fn feed(&self, x: &Tensor) -> Tensor {
        let h = self.args.activation.of(&self.linear1.forward(x));
        self.dropout3.forward(&self.linear2.forward(&self.dropout.forward(&h)))
    }
}

/// Encoder layers one after another.
#[derive(Clone, Module)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// At the end.
    pub norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// Copies of one layer, which begin alike.
    pub fn new(
        layer: &TransformerEncoderLayer,
        num_layers: usize,
        norm: Option<LayerNorm>,
    ) -> TransformerEncoder {
        TransformerEncoder { layers: (0..num_layers).map(|_| layer.clone()).collect(), norm }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, src: &Tensor, mask: SequenceMask<'_>) -> Tensor {
        let _entered = enter(self);
        let mut x = src.clone();
        for layer in &self.layers {
            x = layer.forward(&x, mask);
        }
        match &self.norm {
            Some(n) => n.forward(&x),
            None => x,
        }
    }
}

impl Forward for TransformerEncoder {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        TransformerEncoder::forward(self, x, SequenceMask::default())
    }
}

/// Decoder layers one after another.
#[derive(Clone, Module)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// At the end.
    pub norm: Option<LayerNorm>,
}

impl TransformerDecoder {
    /// Copies of one layer, which begin alike.
    pub fn new(
        layer: &TransformerDecoderLayer,
        num_layers: usize,
        norm: Option<LayerNorm>,
    ) -> TransformerDecoder {
        TransformerDecoder { layers: (0..num_layers).map(|_| layer.clone()).collect(), norm }
    }

    /// The result; `of` are the masks of the sequence, `to` those of the memory.
    #[track_caller]
    pub fn forward(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        of: SequenceMask<'_>,
        to: SequenceMask<'_>,
    ) -> Tensor {
        let _entered = enter(self);
        let mut x = tgt.clone();
        for layer in &self.layers {
            x = layer.forward(&x, memory, of, to);
        }
        match &self.norm {
            Some(n) => n.forward(&x),
            None => x,
        }
    }
}
