//! Vision transformer (Dosovitskiy et al. 2020) under torchvision's names.

use tgc_frontend::nn::functional::scaled_dot_product_attention;
use tgc_frontend::nn::layers::{Conv2d, Dropout, GELU, LayerNorm, Linear, Sequential};
use tgc_frontend::nn::*;

/// Sizes of a vision transformer.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Height and width of images.
    pub image: usize,
    /// Height and width of patches.
    pub patch: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Width of a token.
    pub hidden: usize,
    /// Width between the two layers of a perceptron.
    pub mlp: usize,
    /// Classes.
    pub classes: usize,
}

impl Config {
    /// ViT-B/16 on images of 224x224.
    pub fn b_16() -> Config {
        Config { image: 224, patch: 16, layers: 12, heads: 12, hidden: 768, mlp: 3072, classes: 1000 }
    }
}

/// Attention with one weight for queries, keys and values.
#[derive(Module)]
struct SelfAttention {
    in_proj_weight: Param,
    in_proj_bias: Param,
    out_proj: Linear,
    heads: usize,
}

impl SelfAttention {
    fn new(c: &Config) -> SelfAttention {
        SelfAttention {
            in_proj_weight: Param::new(init::xavier_uniform(&[3 * c.hidden, c.hidden])),
            in_proj_bias: Param::new(init::constant(&[3 * c.hidden], 0.0)),
            out_proj: Linear::new(c.hidden, c.hidden),
            heads: c.heads,
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let [n, t, c] = x.dims();
        let split = |y: &Tensor| y.view((n, t, self.heads, c / self.heads)).transpose(1, 2);
        let qkv = functional::linear(x, &self.in_proj_weight, Some(&self.in_proj_bias));
        let [q, k, v] = qkv.chunk(-1);
        let y = scaled_dot_product_attention(&split(&q), &split(&k), &split(&v), None, false, None);
        self.out_proj.forward(&y.transpose(1, 2).reshape((n, t, c)))
    }
}

#[derive(Module)]
struct EncoderBlock {
    ln_1: LayerNorm,
    self_attention: SelfAttention,
    ln_2: LayerNorm,
    mlp: Sequential,
}

impl EncoderBlock {
    fn new(c: &Config) -> EncoderBlock {
        let mlp = Sequential::new()
            .push(Linear::new(c.hidden, c.mlp))
            .push(GELU::new())
            .push(Dropout::new(0.0))
            .push(Linear::new(c.mlp, c.hidden))
            .push(Dropout::new(0.0));
        EncoderBlock {
            ln_1: LayerNorm::new(c.hidden).eps(1e-6),
            self_attention: SelfAttention::new(c),
            ln_2: LayerNorm::new(c.hidden).eps(1e-6),
            mlp,
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = x + self.self_attention.forward(&self.ln_1.forward(x));
        &x + self.mlp.forward(&self.ln_2.forward(&x))
    }
}

#[derive(Module)]
struct Encoder {
    pos_embedding: Param,
    layers: ModuleDict<EncoderBlock>,
    ln: LayerNorm,
}

/// A vision transformer.
#[derive(Module)]
pub struct VisionTransformer {
    class_token: Param,
    conv_proj: Conv2d,
    encoder: Encoder,
    heads: ModuleDict<Linear>,
    patches: usize,
}

impl VisionTransformer {
    /// With random weights; the head too, where torchvision begins with zeros.
    pub fn new(c: &Config) -> VisionTransformer {
        let patches = (c.image / c.patch) * (c.image / c.patch);
        let layer = |i: usize| (format!("encoder_layer_{i}"), EncoderBlock::new(c));
        let head = Linear::new(c.hidden, c.classes);
        VisionTransformer {
            class_token: Param::new(init::constant(&[1, 1, c.hidden], 0.0)),
            conv_proj: Conv2d::new(3, c.hidden, c.patch).stride(c.patch as i64),
            encoder: Encoder {
                pos_embedding: Param::new(init::normal(&[1, patches + 1, c.hidden], 0.0, 0.02)),
                layers: (0..c.layers).map(layer).collect(),
                ln: LayerNorm::new(c.hidden).eps(1e-6),
            },
            heads: [("head".to_string(), head)].into_iter().collect(),
            patches,
        }
    }

    /// Scores [n, classes] of images [n, 3, h, w] of the size it was made for.
    #[forward]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let patches = self.conv_proj.forward(x);
        let [n, hidden, _, _] = patches.dims();
        let tokens = patches.reshape((n, hidden, self.patches)).transpose(1, 2);
        let class = self.class_token.expand((n, -1, -1));
        let mut x = Tensor::cat(&[&class, &tokens], 1) + &self.encoder.pos_embedding;
        for layer in self.encoder.layers.values() {
            x = layer.forward(&x);
        }
        let class = self.encoder.ln.forward(&x).select(1, 0);
        self.heads["head"].forward(&class)
    }
}
