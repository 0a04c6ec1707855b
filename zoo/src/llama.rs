//! A decoder as Llama's (Touvron et al. 2023): root mean square norms, rotary positions, grouped queries and gated
//! perceptrons, under the names of the published weights.

use tgc_frontend::nn::functional::{Attention as Args, attention};
use tgc_frontend::nn::layers::{Embedding, Linear, RMSNorm};
use tgc_frontend::nn::*;

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Tokens.
    pub vocab: usize,
    /// Width of a token.
    pub hidden: usize,
    /// Width inside a perceptron.
    pub intermediate: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; each serves several of the queries.
    pub kv_heads: usize,
    /// Greatest length of a text.
    pub positions: usize,
    /// Base of the rotary frequencies.
    pub theta: f64,
}

impl Config {
    /// A small one: 56 million parameters.
    pub fn small() -> Config {
        Config {
            vocab: 32000,
            hidden: 512,
            intermediate: 1376,
            layers: 8,
            heads: 8,
            kv_heads: 4,
            positions: 1024,
            theta: 10000.0,
        }
    }
}

fn linear(from: usize, to: usize) -> Linear {
    let l = Linear::with_bias(from, to, false);
    l.weight.set(&init::normal(&[to, from], 0.0, 0.02));
    l
}

fn norm(c: &Config) -> RMSNorm {
    RMSNorm::new(c.hidden).eps(1e-5)
}

/// Cosines and sines [t, width] of the angles that a head's pairs are turned by.
fn rotary(t: Dim, width: usize, theta: f64) -> (Tensor, Tensor) {
    let frequency = |i: usize| theta.powf(-2.0 * i as f64 / width as f64) as f32;
    let frequencies: Vec<f32> = (0..width / 2).map(frequency).collect();
    let angles = Tensor::arange(t).to_dtype(F32).unsqueeze(1) * Tensor::from(frequencies);
    let angles = Tensor::cat(&[&angles, &angles], 1);
    (angles.cos(), angles.sin())
}

/// Turns the pairs (i, i + width / 2) of each head.
fn turned(x: &Tensor, (cos, sin): &(Tensor, Tensor)) -> Tensor {
    let [low, high] = x.chunk(-1);
    x * cos + Tensor::cat(&[&-high, &low], -1) * sin
}

#[derive(Module)]
struct SelfAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    width: usize,
}

impl SelfAttention {
    fn new(c: &Config) -> SelfAttention {
        let width = c.hidden / c.heads;
        SelfAttention {
            q_proj: linear(c.hidden, c.heads * width),
            k_proj: linear(c.hidden, c.kv_heads * width),
            v_proj: linear(c.hidden, c.kv_heads * width),
            o_proj: linear(c.heads * width, c.hidden),
            width,
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor, positions: &(Tensor, Tensor)) -> Tensor {
        let [n, t, _] = x.dims();
        let split = |y: Tensor| y.view((n, t, -1, self.width)).transpose(1, 2);
        let q = turned(&split(self.q_proj.forward(x)), positions);
        let k = turned(&split(self.k_proj.forward(x)), positions);
        let v = split(self.v_proj.forward(x));
        let y = attention(&q, &k, &v, &Args { is_causal: true, enable_gqa: true, ..Args::default() });
        self.o_proj.forward(&y.transpose(1, 2).reshape((n, t, -1)))
    }
}

#[derive(Module)]
struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

impl Mlp {
    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.down_proj.forward(&(self.gate_proj.forward(x).silu() * self.up_proj.forward(x)))
    }
}

#[derive(Module)]
struct DecoderLayer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RMSNorm,
    post_attention_layernorm: RMSNorm,
}

impl DecoderLayer {
    fn new(c: &Config) -> DecoderLayer {
        DecoderLayer {
            self_attn: SelfAttention::new(c),
            mlp: Mlp {
                gate_proj: linear(c.hidden, c.intermediate),
                up_proj: linear(c.hidden, c.intermediate),
                down_proj: linear(c.intermediate, c.hidden),
            },
            input_layernorm: norm(c),
            post_attention_layernorm: norm(c),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor, positions: &(Tensor, Tensor)) -> Tensor {
        let x = x + self.self_attn.forward(&self.input_layernorm.forward(x), positions);
        &x + self.mlp.forward(&self.post_attention_layernorm.forward(&x))
    }
}

#[derive(Module)]
struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<DecoderLayer>,
    norm: RMSNorm,
}

/// A decoder with its head.
#[derive(Module)]
pub struct Llama {
    model: Decoder,
    lm_head: Linear,
    width: usize,
    theta: f64,
}

impl Llama {
    /// With random weights.
    pub fn new(c: &Config) -> Llama {
        let embed_tokens = Embedding::new(c.vocab, c.hidden);
        embed_tokens.weight.set(&init::normal(&[c.vocab, c.hidden], 0.0, 0.02));
        Llama {
            model: Decoder {
                embed_tokens,
                layers: (0..c.layers).map(|_| DecoderLayer::new(c)).collect(),
                norm: norm(c),
            },
            lm_head: linear(c.hidden, c.vocab),
            width: c.hidden / c.heads,
            theta: c.theta,
        }
    }

    /// Scores of the next token [n, t, vocab] of token ids [n, t].
    #[forward]
    pub fn forward(&self, ids: &Tensor) -> Tensor {
        let [_, t] = ids.dims();
        let positions = rotary(t, self.width, self.theta);
        let mut x = self.model.embed_tokens.forward(ids);
        for layer in &self.model.layers {
            x = layer.forward(&x, &positions);
        }
        self.lm_head.forward(&self.model.norm.forward(&x))
    }
}
