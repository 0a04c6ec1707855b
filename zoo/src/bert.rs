//! BERT (Devlin et al. 2018) under the names of the published weights.

use tgc_frontend::nn::functional::scaled_dot_product_attention;
use tgc_frontend::nn::layers::{Dropout, Embedding, LayerNorm, Linear};
use tgc_frontend::nn::*;

/// Sizes of a BERT.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Tokens.
    pub vocab: usize,
    /// Width of a token.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Width between the two layers of a perceptron.
    pub intermediate: usize,
    /// Greatest length of a text.
    pub positions: usize,
}

impl Config {
    /// BERT-base, uncased.
    pub fn base() -> Config {
        Config { vocab: 30522, hidden: 768, layers: 12, heads: 12, intermediate: 3072, positions: 512 }
    }
}

fn linear(from: usize, to: usize) -> Linear {
    let l = Linear::new(from, to);
    l.weight.set(&init::normal(&[to, from], 0.0, 0.02));
    if let Some(b) = &l.bias {
        b.set(&init::constant(&[to], 0.0));
    }
    l
}

fn embedding(rows: usize, width: usize) -> Embedding {
    let e = Embedding::new(rows, width);
    e.weight.set(&init::normal(&[rows, width], 0.0, 0.02));
    e
}

fn norm(width: usize) -> LayerNorm {
    LayerNorm::new(width).eps(1e-12)
}

#[derive(Module)]
struct Embeddings {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    token_type_embeddings: Embedding,
    #[module(name = "LayerNorm")]
    norm: LayerNorm,
    dropout: Dropout,
    position_ids: IgnoredKey,
}

impl Embeddings {
    #[forward]
    fn forward(&self, ids: &Tensor, types: Option<&Tensor>) -> Tensor {
        let [_, t] = ids.dims();
        let positions = self.position_embeddings.forward(&Tensor::arange(t));
        let types = match types {
            Some(types) => self.token_type_embeddings.forward(types),
            None => self.token_type_embeddings.weight.select(0, 0),
        };
        let x = self.word_embeddings.forward(ids) + types + positions;
        self.dropout.forward(&self.norm.forward(&x))
    }
}

#[derive(Module)]
struct SelfAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
}

impl SelfAttention {
    #[forward]
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let [n, t, c] = x.dims();
        let split = |y: Tensor| y.view((n, t, self.heads, c / self.heads)).transpose(1, 2);
        let (q, k, v) =
            (split(self.query.forward(x)), split(self.key.forward(x)), split(self.value.forward(x)));
        let y = scaled_dot_product_attention(&q, &k, &v, mask, false, None);
        y.transpose(1, 2).reshape((n, t, c))
    }
}

/// A linear layer, the sum with what went in before, and a norm.
#[derive(Module)]
struct Output {
    dense: Linear,
    #[module(name = "LayerNorm")]
    norm: LayerNorm,
    dropout: Dropout,
}

impl Output {
    fn new(from: usize, to: usize) -> Output {
        Output { dense: linear(from, to), norm: norm(to), dropout: Dropout::new(0.1) }
    }

    #[forward]
    fn forward(&self, x: &Tensor, before: &Tensor) -> Tensor {
        self.norm.forward(&(self.dropout.forward(&self.dense.forward(x)) + before))
    }
}

#[derive(Module)]
struct Attention {
    #[module(name = "self")]
    inner: SelfAttention,
    output: Output,
}

#[derive(Module)]
struct Intermediate {
    dense: Linear,
}

#[derive(Module)]
struct Layer {
    attention: Attention,
    intermediate: Intermediate,
    output: Output,
}

impl Layer {
    fn new(c: &Config) -> Layer {
        let inner = SelfAttention {
            query: linear(c.hidden, c.hidden),
            key: linear(c.hidden, c.hidden),
            value: linear(c.hidden, c.hidden),
            heads: c.heads,
        };
        Layer {
            attention: Attention { inner, output: Output::new(c.hidden, c.hidden) },
            intermediate: Intermediate { dense: linear(c.hidden, c.intermediate) },
            output: Output::new(c.intermediate, c.hidden),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let y = self.attention.output.forward(&self.attention.inner.forward(x, mask), x);
        self.output.forward(&self.intermediate.dense.forward(&y).gelu(), &y)
    }
}

#[derive(Module)]
struct Encoder {
    layer: Vec<Layer>,
}

#[derive(Module)]
struct Pooler {
    dense: Linear,
}

/// BERT without a head.
#[derive(Module)]
pub struct BertModel {
    embeddings: Embeddings,
    encoder: Encoder,
    pooler: Pooler,
}

impl BertModel {
    /// With random weights.
    pub fn new(c: &Config) -> BertModel {
        BertModel {
            embeddings: Embeddings {
                word_embeddings: embedding(c.vocab, c.hidden),
                position_embeddings: embedding(c.positions, c.hidden),
                token_type_embeddings: embedding(2, c.hidden),
                norm: norm(c.hidden),
                dropout: Dropout::new(0.1),
                position_ids: IgnoredKey,
            },
            encoder: Encoder { layer: (0..c.layers).map(|_| Layer::new(c)).collect() },
            pooler: Pooler { dense: linear(c.hidden, c.hidden) },
        }
    }

    /// Hidden states [n, t, hidden] and the pooled first one [n, hidden]: of token ids [n, t], with a mask [n, t] that is
    /// not 0 where a token counts, and the tokens' segments.
    #[forward]
    pub fn forward(&self, ids: &Tensor, mask: Option<&Tensor>, types: Option<&Tensor>) -> (Tensor, Tensor) {
        let mask = mask.map(|m| m.ne(0).unsqueeze(1).unsqueeze(1));
        let mut x = self.embeddings.forward(ids, types);
        for layer in &self.encoder.layer {
            x = layer.forward(&x, mask.as_ref());
        }
        let pooled = self.pooler.dense.forward(&x.select(1, 0)).tanh();
        (x, pooled)
    }
}
