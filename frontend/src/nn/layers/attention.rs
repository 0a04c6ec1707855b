//! Attention of several heads.

use super::Linear;
use crate::nn::ops::functional::{self, At, Attention, any_failed, refuse};
use crate::nn::{BOOL, F32, Module, Param, Tensor, Training, enter, init};

/// Arguments of [`MultiheadAttention::forward`], PyTorch's defaults. In masks of bool, true says that a position does
/// not take part; others are added to the scores.
#[derive(Clone, Copy, Debug)]
pub struct AttentionArgs<'a> {
    /// [batch, keys].
    pub key_padding_mask: Option<&'a Tensor>,
    /// [queries, keys], or [batch * heads, queries, keys].
    pub attn_mask: Option<&'a Tensor>,
    /// Gives the weights of the keys too.
    pub need_weights: bool,
    /// Their mean over the heads, or those of each head.
    pub average_attn_weights: bool,
    /// Keys later than the query do not take part; needs no mask.
    pub is_causal: bool,
}

impl Default for AttentionArgs<'_> {
    fn default() -> Self {
        AttentionArgs {
            key_padding_mask: None,
            attn_mask: None,
            need_weights: true,
            average_attn_weights: true,
            is_causal: false,
        }
    }
}

/// Attention of several heads, each on a part of the width.
#[derive(Clone, Module)]
pub struct MultiheadAttention {
    /// [3 * width, width], if keys and values have the width of queries.
    pub in_proj_weight: Option<Param>,
    /// [width, width], else.
    pub q_proj_weight: Option<Param>,
    /// [width, kdim].
    pub k_proj_weight: Option<Param>,
    /// [width, vdim].
    pub v_proj_weight: Option<Param>,
    /// [3 * width].
    pub in_proj_bias: Option<Param>,
    /// What joins the heads.
    pub out_proj: Linear,
    heads: usize,
    width: usize,
    batch_first: bool,
    dropout: f64,
    training: Training,
}

impl MultiheadAttention {
    /// Of a width and a number of heads that divides it, with bias; time comes first. The methods change that.
    #[track_caller]
    pub fn new(embed_dim: usize, num_heads: usize) -> MultiheadAttention {
        let at = std::panic::Location::caller();
        if num_heads == 0 || !embed_dim.is_multiple_of(num_heads) {
            let m = format!("MultiheadAttention of the width {embed_dim} with {num_heads} heads");
            refuse("E-NN-102", m, "the heads must divide the width", at);
        }
        let out_proj = Linear::new(embed_dim, embed_dim);
        if let Some(b) = &out_proj.bias {
            b.set(&init::constant(&[embed_dim], 0.0));
        }
        MultiheadAttention {
            in_proj_weight: Some(Param::new(init::xavier_uniform(&[3 * embed_dim, embed_dim]))),
            q_proj_weight: None,
            k_proj_weight: None,
            v_proj_weight: None,
            in_proj_bias: Some(Param::new(init::constant(&[3 * embed_dim], 0.0))),
            out_proj,
            heads: num_heads.max(1),
            width: embed_dim,
            batch_first: false,
            dropout: 0.0,
            training: Training::default(),
        }
    }

    /// Whether the batch comes before time.
    pub fn batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// The probability that a weight of a key is dropped while training.
    pub fn dropout(mut self, dropout: f64) -> Self {
        self.dropout = dropout;
        self
    }

    /// Without biases.
    pub fn no_bias(mut self) -> Self {
        self.in_proj_bias = None;
        self.out_proj.bias = None;
        self
    }

    /// Other widths of keys and values. The projections begin anew.
    pub fn kdim_vdim(mut self, kdim: usize, vdim: usize) -> Self {
        let fresh = |n: usize| Some(Param::new(init::xavier_uniform(&[self.width, n])));
        if kdim == self.width && vdim == self.width {
            return self;
        }
        let all = (fresh(self.width), fresh(kdim), fresh(vdim));
        (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) = all;
        self.in_proj_weight = None;
        self
    }

    /// The result, and the weights of the keys if asked for.
    #[track_caller]
    pub fn forward(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        args: &AttentionArgs<'_>,
    ) -> (Tensor, Option<Tensor>) {
        let at = std::panic::Location::caller();
        let _entered = enter(self);
        let lone = query.dim() == 2;
        let all = [query, key, value];
        if any_failed(&all) || all.iter().any(|t| t.dim() != query.dim()) || !matches!(query.dim(), 2 | 3) {
            if !any_failed(&all) {
                let m = format!("MultiheadAttention of {query:#}, {key:#} and {value:#}");
                refuse("E-NN-102", m, "give three tensors [time, batch, width], or [time, width]", at);
            }
            return (Tensor::FAILED, args.need_weights.then_some(Tensor::FAILED));
        }
        let mut ins = all.map(Tensor::clone);
        for t in &mut ins {
            *t = match (lone, self.batch_first) {
                (true, _) => t.unsqueeze(0),
                (false, true) => t.clone(),
                (false, false) => t.transpose(0, 1),
            };
        }
        let (y, weights) = self.of_batches(&ins, args, at);
        let y = match (lone, self.batch_first) {
            (true, _) => functional::unbatched(y, true),
            (false, true) => y,
            (false, false) => y.transpose(0, 1),
        };
        (y, weights.map(|w| functional::unbatched(w, lone)))
    }

    /// Of [batch, time, width] each.
    #[track_caller]
    fn of_batches(&self, ins: &[Tensor; 3], args: &AttentionArgs<'_>, at: At) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = self.projected(ins);
        let mask = self.mask(&q, &k, args, at);
        let dropped = self.dropout > 0.0 && self.training.on();
        let (y, weights) = match args.need_weights || dropped {
            true => {
                let each = 1.0 / ((self.width / self.heads) as f64).sqrt();
                let mut scores = (&q * each).matmul(&k.transpose(-1, -2));
                if let Some(m) = &mask {
                    scores += m;
                }
                if args.is_causal && mask.is_none() {
                    scores = functional::causal(&scores, at);
                }
                let w = functional::dropout(&scores.softmax(-1), self.dropout, dropped);
                (w.matmul(&v), Some(w))
            }
            false => {
                let causal = args.is_causal && mask.is_none();
                let given = Attention { mask: mask.as_ref(), is_causal: causal, ..Attention::default() };
                (functional::attention(&q, &k, &v, &given), None)
            }
        };
        let y = self.out_proj.forward(&y.transpose(1, 2).flatten(2, 3));
        let weights = weights.filter(|_| args.need_weights).map(|w| match args.average_attn_weights {
            true => w.mean(&[1], false),
            false => w,
        });
        (y, weights)
    }

    /// Queries, keys and values as [batch, heads, time, part].
    #[track_caller]
    fn projected(&self, ins: &[Tensor; 3]) -> [Tensor; 3] {
        let e = self.width;
        let own = [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight];
        let mut out = [const { Tensor::FAILED }; 3];
        for i in 0..3 {
            let bias = self.in_proj_bias.as_ref().map(|b| b.narrow(0, i * e, e));
            let y = match (&self.in_proj_weight, own[i]) {
                (Some(w), _) => functional::linear(&ins[i], &w.narrow(0, i * e, e), bias.as_ref()),
                (None, Some(w)) => functional::linear(&ins[i], w, bias.as_ref()),
                (None, None) => Tensor::FAILED,
            };
            if !y.failed() {
                let [b, t, _] = y.dims();
                out[i] = y.reshape((b, t, self.heads, e / self.heads)).transpose(1, 2);
            }
        }
        out
    }

    /// Both masks as one that is added to scores [batch, heads, queries, keys].
    #[track_caller]
    fn mask(&self, q: &Tensor, k: &Tensor, args: &AttentionArgs<'_>, at: At) -> Option<Tensor> {
        if any_failed(&[q, k]) {
            return None;
        }
        let (batch, queries, keys) = (q.size(0), q.size(2), k.size(2));
        let attn = args.attn_mask.map(|m| added(m, q)).map(|m| match m.dim() {
            2 => m,
            3 => m.reshape((batch, self.heads, queries, keys)),
            _ => {
                let m = format!("MultiheadAttention with the attn_mask {m:#}");
                refuse("E-NN-102", m, "give [queries, keys], or [batch * heads, queries, keys]", at)
            }
        });
        let padding = args.key_padding_mask.map(|m| added(m, q).reshape((batch, 1, 1, keys)));
        match (attn, padding) {
            (Some(a), Some(p)) => Some(a + p),
            (None, Some(p)) if args.is_causal => {
                let zeros = Tensor::zeros((queries, keys), q.dtype());
                Some(functional::causal(&zeros, at) + p)
            }
            (a, p) => a.or(p),
        }
    }
}

/// A mask that is added: minus infinity where one of bool is true.
#[track_caller]
fn added(mask: &Tensor, like: &Tensor) -> Tensor {
    if mask.failed() || mask.dtype() != BOOL {
        return mask.clone();
    }
    let d = if like.failed() { F32 } else { like.dtype() };
    let zero = Tensor::number(d, 0.0);
    functional::choose(mask, f64::NEG_INFINITY, &zero, &zero)
}
