//! GPT-2 (Radford et al. 2019) under the names of the published weights, whose linear layers are stored transposed.

use tgc_frontend::nn::functional::scaled_dot_product_attention;
use tgc_frontend::nn::layers::{Dropout, Embedding, LayerNorm};
use tgc_frontend::nn::*;

/// Sizes of a GPT-2.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Tokens.
    pub vocab: usize,
    /// Greatest length of a text.
    pub positions: usize,
    /// Width of a token.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
}

impl Config {
    /// GPT-2 of 124 million parameters.
    pub fn small() -> Config {
        Config { vocab: 50257, positions: 1024, width: 768, layers: 12, heads: 12 }
    }
}

/// A linear layer with its weight as [in, out].
#[derive(Module)]
struct Conv1D {
    weight: Param,
    bias: Param,
}

impl Conv1D {
    fn new(from: usize, to: usize) -> Conv1D {
        Conv1D {
            weight: Param::new(init::normal(&[from, to], 0.0, 0.02)),
            bias: Param::new(init::constant(&[to], 0.0)),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.matmul(&self.weight) + &self.bias
    }
}

#[derive(Module)]
struct Attention {
    c_attn: Conv1D,
    c_proj: Conv1D,
    resid_dropout: Dropout,
    heads: usize,
    // published files hold the causal mask
    bias: IgnoredKey,
    masked_bias: IgnoredKey,
}

impl Attention {
    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let [n, t, c] = x.dims();
        let split = |y: &Tensor| y.view((n, t, self.heads, c / self.heads)).transpose(1, 2);
        let [q, k, v] = self.c_attn.forward(x).chunk(-1);
        let y = scaled_dot_product_attention(&split(&q), &split(&k), &split(&v), None, true, None);
        self.resid_dropout.forward(&self.c_proj.forward(&y.transpose(1, 2).reshape((n, t, c))))
    }
}

#[derive(Module)]
struct Mlp {
    c_fc: Conv1D,
    c_proj: Conv1D,
    dropout: Dropout,
}

#[derive(Module)]
struct Block {
    ln_1: LayerNorm,
    attn: Attention,
    ln_2: LayerNorm,
    mlp: Mlp,
}

impl Block {
    fn new(c: &Config) -> Block {
        Block {
            ln_1: LayerNorm::new(c.width),
            attn: Attention {
                c_attn: Conv1D::new(c.width, 3 * c.width),
                c_proj: Conv1D::new(c.width, c.width),
                resid_dropout: Dropout::new(0.1),
                heads: c.heads,
                bias: IgnoredKey,
                masked_bias: IgnoredKey,
            },
            ln_2: LayerNorm::new(c.width),
            mlp: Mlp {
                c_fc: Conv1D::new(c.width, 4 * c.width),
                c_proj: Conv1D::new(4 * c.width, c.width),
                dropout: Dropout::new(0.1),
            },
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = x + self.attn.forward(&self.ln_1.forward(x));
        let y = self.mlp.c_fc.forward(&self.ln_2.forward(&x)).gelu_tanh();
        &x + self.mlp.dropout.forward(&self.mlp.c_proj.forward(&y))
    }
}

/// GPT-2 with its head, which is the token embedding.
#[derive(Module)]
pub struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    ln_f: LayerNorm,
}

impl Gpt2 {
    /// With random weights.
    pub fn new(c: &Config) -> Gpt2 {
        let table = |rows: usize, std: f64| {
            let e = Embedding::new(rows, c.width);
            e.weight.set(&init::normal(&[rows, c.width], 0.0, std));
            e
        };
        Gpt2 {
            wte: table(c.vocab, 0.02),
            wpe: table(c.positions, 0.02),
            h: (0..c.layers).map(|_| Block::new(c)).collect(),
            ln_f: LayerNorm::new(c.width),
        }
    }

    /// Scores of the next token [n, t, vocab] of token ids [n, t].
    #[forward]
    pub fn forward(&self, ids: &Tensor) -> Tensor {
        let [_, t] = ids.dims();
        let mut x = self.wte.forward(ids) + self.wpe.forward(&Tensor::arange(t));
        for block in &self.h {
            x = block.forward(&x);
        }
        self.ln_f.forward(&x).matmul(&self.wte.weight.transpose(0, 1))
    }
}
