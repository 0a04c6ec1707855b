//! Residual networks (He et al. 2015) under torchvision's names.

use tgc_frontend::nn::layers::{BatchNorm2d, Conv2d, Linear, MaxPool2d, Sequential};
use tgc_frontend::nn::*;

/// A convolution without bias, with the initialisation these networks use.
fn conv(from: usize, to: usize, kernel: usize, stride: i64) -> Conv2d {
    let c = Conv2d::new(from, to, kernel).stride(stride).padding(kernel as i64 / 2).no_bias();
    c.weight.set(&init::kaiming_normal_fan_out(&[to, from, kernel, kernel]));
    c
}

fn downsample(from: usize, to: usize, stride: i64) -> Option<Sequential> {
    (stride != 1 || from != to)
        .then(|| Sequential::new().push(conv(from, to, 1, stride)).push(BatchNorm2d::new(to)))
}

/// Two 3x3 convolutions beside a shortcut.
#[derive(Module)]
struct Basic {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    conv2: Conv2d,
    bn2: BatchNorm2d,
    downsample: Option<Sequential>,
}

impl Basic {
    fn new(from: usize, width: usize, stride: i64) -> Basic {
        Basic {
            conv1: conv(from, width, 3, stride),
            bn1: BatchNorm2d::new(width),
            conv2: conv(width, width, 3, 1),
            bn2: BatchNorm2d::new(width),
            downsample: downsample(from, width, stride),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let shortcut = self.downsample.as_ref().map_or_else(|| x.clone(), |d| d.forward(x));
        let y = self.bn1.forward(&self.conv1.forward(x)).relu();
        (self.bn2.forward(&self.conv2.forward(&y)) + shortcut).relu()
    }
}

/// 1x1, 3x3 and 1x1 convolutions beside a shortcut; the stride is at the 3x3 one.
#[derive(Module)]
struct Bottleneck {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    conv2: Conv2d,
    bn2: BatchNorm2d,
    conv3: Conv2d,
    bn3: BatchNorm2d,
    downsample: Option<Sequential>,
}

impl Bottleneck {
    fn new(from: usize, width: usize, stride: i64) -> Bottleneck {
        Bottleneck {
            conv1: conv(from, width, 1, 1),
            bn1: BatchNorm2d::new(width),
            conv2: conv(width, width, 3, stride),
            bn2: BatchNorm2d::new(width),
            conv3: conv(width, 4 * width, 1, 1),
            bn3: BatchNorm2d::new(4 * width),
            downsample: downsample(from, 4 * width, stride),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let shortcut = self.downsample.as_ref().map_or_else(|| x.clone(), |d| d.forward(x));
        let y = self.bn1.forward(&self.conv1.forward(x)).relu();
        let y = self.bn2.forward(&self.conv2.forward(&y)).relu();
        (self.bn3.forward(&self.conv3.forward(&y)) + shortcut).relu()
    }
}

#[derive(Module)]
enum Block {
    Basic(#[module(name = "")] Box<Basic>),
    Bottleneck(#[module(name = "")] Box<Bottleneck>),
}

impl Block {
    fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Block::Basic(b) => b.forward(x),
            Block::Bottleneck(b) => b.forward(x),
        }
    }
}

/// A residual network.
#[derive(Module)]
pub struct ResNet {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    maxpool: MaxPool2d,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    fc: Linear,
}

impl ResNet {
    /// Four stages of so many blocks; the first has `width` channels, each further one twice those of the one before.
    fn new(blocks: [usize; 4], width: usize, bottleneck: bool, classes: usize) -> ResNet {
        let growth = if bottleneck { 4 } else { 1 };
        let stage = |i: usize| -> Vec<Block> {
            let w = width << i;
            let before = if i == 0 { width } else { growth * (w / 2) };
            let make = |j: usize| {
                let (from, stride) =
                    if j == 0 { (before, if i == 0 { 1 } else { 2 }) } else { (growth * w, 1) };
                match bottleneck {
                    true => Block::Bottleneck(Box::new(Bottleneck::new(from, w, stride))),
                    false => Block::Basic(Box::new(Basic::new(from, w, stride))),
                }
            };
            (0..blocks[i]).map(make).collect()
        };
        ResNet {
            conv1: conv(3, width, 7, 2),
            bn1: BatchNorm2d::new(width),
            maxpool: MaxPool2d::new(3).stride(2).padding(1),
            layer1: stage(0),
            layer2: stage(1),
            layer3: stage(2),
            layer4: stage(3),
            fc: Linear::new(growth * (width << 3), classes),
        }
    }

    /// ResNet-18.
    pub fn resnet18(classes: usize) -> ResNet {
        ResNet::new([2, 2, 2, 2], 64, false, classes)
    }

    /// ResNet-50, with the stride at the 3x3 convolutions.
    pub fn resnet50(classes: usize) -> ResNet {
        ResNet::new([3, 4, 6, 3], 64, true, classes)
    }

    /// The structure of ResNet-50 with few channels and blocks, for tests.
    pub fn small(classes: usize) -> ResNet {
        ResNet::new([1, 2, 1, 1], 8, true, classes)
    }

    /// Scores [n, classes] of images [n, 3, h, w].
    #[forward]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let mut x = self.maxpool.forward(&self.bn1.forward(&self.conv1.forward(x)).relu());
        for block in [&self.layer1, &self.layer2, &self.layer3, &self.layer4].into_iter().flatten() {
            x = block.forward(&x);
        }
        self.fc.forward(&x.mean(&[2, 3], false))
    }
}
