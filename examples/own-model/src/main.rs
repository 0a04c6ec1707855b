//! A model of one's own, from Rust to a compiled artifact:
//!
//! ```text
//! cargo new digits && cd digits && cargo add --path .../tgc/frontend tgc-frontend     # and this file as src/main.rs
//! cargo run -- digits.tgir                    # or with weights that were trained elsewhere: digits.tgir w.safetensors
//! tgc build digits.tgir -o digits.tgc
//! tgc-run run digits.tgc --input x=x.npy -o y.npz
//! ```

use tgc_frontend::nn::layers::{Dropout, Linear};
use tgc_frontend::nn::*;

#[derive(Module)]
struct Digits {
    fc1: Linear,
    fc2: Linear,
    drop: Dropout,
}

impl Digits {
    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let h = self.drop.forward(&self.fc1.forward(x).relu());
        self.fc2.forward(&h).softmax(-1)
    }
}

fn main() -> Result<(), Errors> {
    let mut args = std::env::args().skip(1);
    manual_seed(1);
    let model = Digits { fc1: Linear::new(784, 128), fc2: Linear::new(128, 10), drop: Dropout::new(0.5) };
    let output = args.next().unwrap_or_else(|| "digits.tgir".into());
    if let Some(weights) = args.next() {
        model.load(weights)?;
    }
    model.eval();
    println!("{}", model.forward(&Tensor::zeros((1, 784), F32)));
    let x = spec("x", F32, (dim("batch").range(1..=64), 784));
    trace(&model, [x], |m, [x]| m.forward(&x))?.save(output)
}
