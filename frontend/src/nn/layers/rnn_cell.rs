//! One step of recurrent layers.

use crate::nn::ops::functional::{self, any_failed, refuse};
use crate::nn::{Module, Param, Tensor, Visitor, enter, init};

/// What a plain recurrent step ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RnnNonlinearity {
    /// Hyperbolic tangent.
    #[default]
    Tanh,
    /// `max(x, 0)`.
    Relu,
}

/// How states follow from a step's operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rnn(RnnNonlinearity),
    Lstm,
    Gru,
}

impl Kind {
    /// Vectors of the hidden width that the weights give.
    pub(super) fn gates(self) -> usize {
        match self {
            Kind::Rnn(_) => 1,
            Kind::Lstm => 4,
            Kind::Gru => 3,
        }
    }

    /// Tensors of a state.
    pub(super) fn states(self) -> usize {
        if self == Kind::Lstm { 2 } else { 1 }
    }

    /// The states after a step, of what the input's and the hidden state's weights give; the first is the output.
    #[track_caller]
    pub(super) fn step(self, states: &[Tensor], input: &Tensor, hidden: &Tensor) -> Vec<Tensor> {
        if any_failed(&[input, hidden]) || any_failed(&states.iter().collect::<Vec<_>>()) {
            return vec![Tensor::FAILED; self.states()];
        }
        match self {
            Kind::Rnn(RnnNonlinearity::Tanh) => vec![(input + hidden).tanh()],
            Kind::Rnn(RnnNonlinearity::Relu) => vec![(input + hidden).relu()],
            Kind::Lstm => {
                let [i, f, g, o] = (input + hidden).chunk(-1);
                let c = f.sigmoid() * &states[1] + i.sigmoid() * g.tanh();
                vec![o.sigmoid() * c.tanh(), c]
            }
            Kind::Gru => {
                let ([ri, zi, ni], [rh, zh, nh]) = (input.chunk(-1), hidden.chunk(-1));
                let (r, z) = ((ri + rh).sigmoid(), (zi + zh).sigmoid());
                let n = (ni + r * nh).tanh();
                vec![(&states[0] - &n) * z + n]
            }
        }
    }
}

/// The weights of a step.
#[derive(Clone)]
pub(super) struct Gates {
    weight_ih: Param,
    weight_hh: Param,
    bias: Option<(Param, Param)>,
}

impl Gates {
    pub(super) fn new(kind: Kind, input: usize, hidden: usize, bias: bool) -> Gates {
        let (rows, bound) = (kind.gates() * hidden, 1.0 / (hidden.max(1) as f64).sqrt());
        let fresh = |shape: &[usize]| Param::new(init::uniform(shape, -bound, bound));
        Gates {
            weight_ih: fresh(&[rows, input]),
            weight_hh: fresh(&[rows, hidden]),
            bias: bias.then(|| (fresh(&[rows]), fresh(&[rows]))),
        }
    }

    /// Visits the weights with something behind their names.
    pub(super) fn visit(&self, v: &mut Visitor<'_>, suffix: &str) {
        v.child(&format!("weight_ih{suffix}"), &self.weight_ih);
        v.child(&format!("weight_hh{suffix}"), &self.weight_hh);
        if let Some((ih, hh)) = &self.bias {
            v.child(&format!("bias_ih{suffix}"), ih);
            v.child(&format!("bias_hh{suffix}"), hh);
        }
    }

    #[track_caller]
    pub(super) fn of_input(&self, x: &Tensor) -> Tensor {
        functional::linear(x, &self.weight_ih, self.bias.as_ref().map(|b| &*b.0))
    }

    #[track_caller]
    pub(super) fn of_hidden(&self, h: &Tensor) -> Tensor {
        functional::linear(h, &self.weight_hh, self.bias.as_ref().map(|b| &*b.1))
    }
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident $kind:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            gates: Gates,
            kind: Kind,
            sizes: [usize; 2],
        }

        impl $name {
            /// With biases.
            pub fn new(input_size: usize, hidden_size: usize) -> $name {
                let gates = Gates::new($kind, input_size, hidden_size, true);
                $name { gates, kind: $kind, sizes: [input_size, hidden_size] }
            }

            /// Without biases.
            pub fn no_bias(mut self) -> $name {
                self.gates.bias = None;
                self
            }

            #[track_caller]
            fn step(&self, x: &Tensor, states: Vec<Option<&Tensor>>) -> Vec<Tensor> {
                let at = std::panic::Location::caller();
                let _entered = enter(self);
                let failed = vec![Tensor::FAILED; states.len()];
                if x.failed() {
                    return failed;
                }
                if !matches!(x.dim(), 1 | 2) {
                    let m = format!("{} of {x:#}", stringify!($name));
                    refuse("E-NN-103", m, "give [batch, input], or [input]", at);
                    return failed;
                }
                let mut shape = x.shape();
                shape.pop();
                shape.push(self.sizes[1].into());
                let zeros = Tensor::zeros(shape, x.dtype());
                let all: Vec<Tensor> = states.into_iter().map(|s| s.unwrap_or(&zeros).clone()).collect();
                self.kind.step(&all, &self.gates.of_input(x), &self.gates.of_hidden(&all[0]))
            }
        }

        impl Module for $name {
            fn visit(&self, v: &mut Visitor<'_>) {
                self.gates.visit(v, "");
            }
        }
    )* };
}
cells! {
    /// A step of a plain recurrent layer.
    RNNCell Kind::Rnn(RnnNonlinearity::Tanh);
    /// A step of a long short-term memory.
    LSTMCell Kind::Lstm;
    /// A step of gated recurrent units.
    GRUCell Kind::Gru;
}

impl RNNCell {
    /// What the step ends with (tanh else).
    pub fn nonlinearity(mut self, nonlinearity: RnnNonlinearity) -> RNNCell {
        self.kind = Kind::Rnn(nonlinearity);
        self
    }

    /// The next hidden state; without one given it is zeros.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, h: Option<&Tensor>) -> Tensor {
        self.step(x, vec![h]).swap_remove(0)
    }
}

impl GRUCell {
    /// The next hidden state; without one given it is zeros.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, h: Option<&Tensor>) -> Tensor {
        self.step(x, vec![h]).swap_remove(0)
    }
}

impl LSTMCell {
    /// The next hidden and cell states; without any given they are zeros.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, states: Option<(&Tensor, &Tensor)>) -> (Tensor, Tensor) {
        let mut next = self.step(x, vec![states.map(|s| s.0), states.map(|s| s.1)]);
        let h = next.swap_remove(0);
        (h, next.swap_remove(0))
    }
}
