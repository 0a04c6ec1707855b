//! Modules made of a list of others.

use crate::nn::{Forward, Module, Tensor, Visitor, enter};

/// Layers one after another; their names are their indices.
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Forward + Send + Sync>>);

impl Sequential {
    /// Without layers.
    pub fn new() -> Sequential {
        Sequential(Vec::new())
    }

    /// With one more layer at the end.
    pub fn push(mut self, layer: impl Forward + Send + Sync + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }

    /// Number of layers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The result of the last layer.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        let mut x = x.clone();
        for layer in &self.0 {
            x = layer.forward(&x);
        }
        x
    }
}

impl Module for Sequential {
    fn visit(&self, v: &mut Visitor<'_>) {
        for (i, m) in self.0.iter().enumerate() {
            v.child(&i.to_string(), &**m);
        }
    }
}

impl Forward for Sequential {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Sequential::forward(self, x)
    }
}
