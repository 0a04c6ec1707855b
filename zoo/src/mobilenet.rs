//! MobileNetV2 (Sandler et al. 2018) under torchvision's names.

use tgc_frontend::nn::layers::{BatchNorm2d, Conv2d, Dropout, Linear, ReLU6, Sequential};
use tgc_frontend::nn::*;

/// Convolution and batch norm, with or without an activation: the keys `0` and `1`.
fn conv_bn(
    net: Sequential,
    from: usize,
    to: usize,
    kernel: usize,
    stride: i64,
    groups: usize,
    act: bool,
) -> Sequential {
    let c = Conv2d::new(from, to, kernel)
        .stride(stride)
        .padding(kernel as i64 / 2)
        .groups(groups as i64)
        .no_bias();
    c.weight.set(&init::kaiming_normal_fan_out(&[to, from / groups, kernel, kernel]));
    let net = net.push(c).push(BatchNorm2d::new(to));
    if act { net.push(ReLU6::new()) } else { net }
}

/// Expansion, depthwise convolution and projection, with a shortcut where the shapes allow.
#[derive(Module)]
struct InvertedResidual {
    conv: Sequential,
    shortcut: bool,
}

impl InvertedResidual {
    fn new(from: usize, to: usize, stride: i64, expand: usize) -> InvertedResidual {
        let wide = from * expand;
        let mut conv = Sequential::new();
        if expand > 1 {
            conv = conv.push(conv_bn(Sequential::new(), from, wide, 1, 1, 1, true));
        }
        conv = conv.push(conv_bn(Sequential::new(), wide, wide, 3, stride, wide, true));
        conv = conv_bn(conv, wide, to, 1, 1, 1, false);
        InvertedResidual { conv, shortcut: stride == 1 && from == to }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let y = self.conv.forward(x);
        if self.shortcut { x + y } else { y }
    }
}

#[derive(Module)]
enum Feature {
    Plain(#[module(name = "")] Sequential),
    Inverted(#[module(name = "")] InvertedResidual),
}

/// MobileNetV2.
#[derive(Module)]
pub struct MobileNetV2 {
    features: Vec<Feature>,
    classifier: (Dropout, Linear),
}

/// Expansion, channels, blocks and stride of each stage.
const STAGES: [(usize, usize, usize, i64); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

impl MobileNetV2 {
    /// With channels times `width`, rounded to multiples of 8 as published; 1.0 is the usual one.
    pub fn new(width: f64, classes: usize) -> MobileNetV2 {
        let scaled = |c: usize| {
            let want = c as f64 * width;
            let near = ((want + 4.0) / 8.0).floor().max(1.0) * 8.0;
            (if near < 0.9 * want { near + 8.0 } else { near }) as usize
        };
        let mut from = scaled(32);
        let mut features = vec![Feature::Plain(conv_bn(Sequential::new(), 3, from, 3, 2, 1, true))];
        for (expand, channels, blocks, stride) in STAGES {
            let to = scaled(channels);
            for i in 0..blocks {
                let block = InvertedResidual::new(from, to, if i == 0 { stride } else { 1 }, expand);
                features.push(Feature::Inverted(block));
                from = to;
            }
        }
        let last = (1280.0 * width.max(1.0)) as usize;
        features.push(Feature::Plain(conv_bn(Sequential::new(), from, last, 1, 1, 1, true)));
        let head = Linear::new(last, classes);
        head.weight.set(&init::normal(&[classes, last], 0.0, 0.01));
        MobileNetV2 { features, classifier: (Dropout::new(0.2), head) }
    }

    /// Scores [n, classes] of images [n, 3, h, w].
    #[forward]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let mut x = x.clone();
        for f in &self.features {
            x = match f {
                Feature::Plain(s) => s.forward(&x),
                Feature::Inverted(b) => b.forward(&x),
            };
        }
        let x = x.mean(&[2, 3], false);
        self.classifier.1.forward(&self.classifier.0.forward(&x))
    }
}
