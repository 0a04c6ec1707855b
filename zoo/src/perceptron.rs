//! Multilayer perceptron and LeNet-5.

use tgc_frontend::nn::layers::{Conv2d, Linear, MaxPool2d, ReLU, Sequential};
use tgc_frontend::nn::*;

/// Linear layers of these widths with ReLU between: the keys are `0.weight`, `2.weight` and so on.
pub fn mlp(widths: &[usize]) -> Sequential {
    let mut net = Sequential::new();
    for (i, pair) in widths.windows(2).enumerate() {
        if i > 0 {
            net = net.push(ReLU::new());
        }
        net = net.push(Linear::new(pair[0], pair[1]));
    }
    net
}

/// LeNet-5 on images of 28x28, with ReLU and maxima.
#[derive(Module)]
pub struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    fc1: Linear,
    fc2: Linear,
    fc3: Linear,
}

impl LeNet {
    /// With random weights.
    #[allow(clippy::new_without_default)]
    pub fn new() -> LeNet {
        LeNet {
            conv1: Conv2d::new(1, 6, 5).padding(2),
            conv2: Conv2d::new(6, 16, 5),
            pool: MaxPool2d::new(2),
            fc1: Linear::new(16 * 5 * 5, 120),
            fc2: Linear::new(120, 84),
            fc3: Linear::new(84, 10),
        }
    }

    /// Scores [n, 10] of images [n, 1, 28, 28].
    #[forward]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.pool.forward(&self.conv1.forward(x).relu());
        let x = self.pool.forward(&self.conv2.forward(&x).relu());
        let x = self.fc1.forward(&x.flatten(1, -1)).relu();
        self.fc3.forward(&self.fc2.forward(&x).relu())
    }
}
