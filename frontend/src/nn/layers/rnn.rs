//! Recurrent layers over a sequence.

use super::rnn_cell::{Gates, Kind, RnnNonlinearity};
use crate::nn::control::scan;
use crate::nn::ops::functional::{self, At, any_failed, refuse};
use crate::nn::{Module, Tensor, Training, Visitor, enter};

/// Layers and directions of one kind.
#[derive(Clone)]
struct Stack {
    /// Layer by layer, forwards and backwards.
    cells: Vec<Gates>,
    kind: Kind,
    sizes: [usize; 2],
    layers: usize,
    both: bool,
    bias: bool,
    batch_first: bool,
    dropout: f64,
    training: Training,
}

impl Stack {
    fn new(kind: Kind, sizes: [usize; 2]) -> Stack {
        let mut s = Stack {
            cells: Vec::new(),
            kind,
            sizes,
            layers: 1,
            both: false,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            training: Training::default(),
        };
        s.begin();
        s
    }

    fn directions(&self) -> usize {
        1 + usize::from(self.both)
    }

    fn begin(&mut self) {
        let [input, hidden] = self.sizes;
        let mut cells = Vec::new();
        for layer in 0..self.layers {
            let from = if layer == 0 { input } else { hidden * self.directions() };
            cells.extend((0..self.directions()).map(|_| Gates::new(self.kind, from, hidden, self.bias)));
        }
        self.cells = cells;
    }

    fn visit(&self, v: &mut Visitor<'_>) {
        for (i, c) in self.cells.iter().enumerate() {
            let (layer, back) = (i / self.directions(), i % self.directions() == 1);
            c.visit(v, &format!("_l{layer}{}", if back { "_reverse" } else { "" }));
        }
        v.child("training", &self.training);
    }

    /// The outputs of all times and the states at the end; `init` are states of [layers, batch, hidden].
    #[track_caller]
    fn run(&self, x: &Tensor, init: &[&Tensor], at: At) -> (Tensor, Vec<Tensor>) {
        let failed = || (Tensor::FAILED, vec![Tensor::FAILED; self.kind.states()]);
        if x.failed() || any_failed(init) {
            return failed();
        }
        let lone = x.dim() == 2;
        if !matches!(x.dim(), 2 | 3) || init.iter().any(|s| s.dim() != x.dim()) {
            let m = format!("a recurrent layer over {x:#} with the states {init:?}");
            refuse("E-NN-103", m, "give [time, batch, input] or [time, input], and states of one rank", at);
            return failed();
        }
        let swapped = self.batch_first && !lone;
        let x = match (lone, swapped) {
            (true, _) => x.unsqueeze(1),
            (_, true) => x.transpose(0, 1),
            _ => x.clone(),
        };
        let mut states = Vec::new();
        for s in init {
            states.push(if lone { s.unsqueeze(1) } else { (*s).clone() });
        }
        if states.is_empty() {
            let zeros = Tensor::zeros((self.cells.len(), x.size(1), self.sizes[1]), x.dtype());
            states = vec![zeros; self.kind.states()];
        }
        let (y, ends) = self.layers(&x, &states);
        let drop_batch = |t: Tensor| if lone && !t.failed() { functional::squeezed(&t, 1) } else { t };
        let y = if swapped { y.transpose(0, 1) } else { drop_batch(y) };
        (y, ends.into_iter().map(drop_batch).collect())
    }

    /// Over x [time, batch, input].
    #[track_caller]
    fn layers(&self, x: &Tensor, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        let mut ends: Vec<Vec<Tensor>> = vec![Vec::new(); states.len()];
        let mut x = x.clone();
        for layer in 0..self.layers {
            let mut sides = Vec::new();
            for direction in 0..self.directions() {
                let cell = layer * self.directions() + direction;
                let mut first = Vec::new();
                for s in states {
                    first.push(s.select(0, cell));
                }
                let (last, y) = self.over(&self.cells[cell], first, &x, direction == 1);
                last.iter().zip(&mut ends).for_each(|(s, all)| all.push(s.unsqueeze(0)));
                sides.push(y);
            }
            x = if sides.len() == 1 { sides.swap_remove(0) } else { joined(&sides, -1) };
            if self.dropout > 0.0 && layer + 1 < self.layers {
                x = functional::dropout(&x, self.dropout, self.training.on());
            }
        }
        let mut all = Vec::new();
        for e in &ends {
            all.push(joined(e, 0));
        }
        (x, all)
    }

    /// One layer in one direction: the last states, and the outputs of all times in order. As many steps as are known are
    /// written one after another, others are a scan.
    #[track_caller]
    fn over(
        &self,
        cell: &Gates,
        mut states: Vec<Tensor>,
        x: &Tensor,
        backwards: bool,
    ) -> (Vec<Tensor>, Tensor) {
        let length = x.size(0);
        // all inputs at once: one product for all times
        let inputs = cell.of_input(x);
        let Some(n) = length.as_known().filter(|n| *n > 0) else {
            let order = |t: Tensor| if backwards { t.flip(&[0]) } else { t };
            let (states, outputs) = scan(states, &order(inputs), |states: Vec<Tensor>, x| {
                let states = self.kind.step(&states, &x, &cell.of_hidden(&states[0]));
                let y = states[0].clone();
                (states, y)
            });
            return (states, order(outputs));
        };
        let mut outputs = Vec::new();
        for i in 0..n {
            let time = if backwards { n - 1 - i } else { i };
            states = self.kind.step(&states, &inputs.select(0, time), &cell.of_hidden(&states[0]));
            outputs.push(states[0].unsqueeze(0));
        }
        if backwards {
            outputs.reverse();
        }
        (states, joined(&outputs, 0))
    }
}

#[track_caller]
fn joined(all: &[Tensor], axis: i64) -> Tensor {
    let parts: Vec<&Tensor> = all.iter().collect();
    if any_failed(&parts) { Tensor::FAILED } else { Tensor::cat(&parts, axis) }
}

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident $kind:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Stack);

        impl $name {
            /// One layer, forwards, with biases; time comes first. The methods change that.
            pub fn new(input_size: usize, hidden_size: usize) -> $name {
                $name(Stack::new($kind, [input_size, hidden_size]))
            }

            /// Layers one upon another. The parameters begin anew.
            pub fn num_layers(mut self, num_layers: usize) -> $name {
                self.0.layers = num_layers.max(1);
                self.0.begin();
                self
            }

            /// Also backwards in time. The parameters begin anew.
            pub fn bidirectional(mut self, bidirectional: bool) -> $name {
                self.0.both = bidirectional;
                self.0.begin();
                self
            }

            /// Without biases. The parameters begin anew.
            pub fn no_bias(mut self) -> $name {
                self.0.bias = false;
                self.0.begin();
                self
            }

            /// Whether the batch comes before time in operands and outputs; states stay [layers, batch, hidden].
            pub fn batch_first(mut self, batch_first: bool) -> $name {
                self.0.batch_first = batch_first;
                self
            }

            /// Dropout between layers while training.
            pub fn dropout(mut self, dropout: f64) -> $name {
                self.0.dropout = dropout;
                self
            }
        }

        impl Module for $name {
            fn visit(&self, v: &mut Visitor<'_>) {
                self.0.visit(v);
            }
        }
    )* };
}
layers! {
    /// Plain recurrent layers.
    RNN Kind::Rnn(RnnNonlinearity::Tanh);
    /// Long short-term memory.
    LSTM Kind::Lstm;
    /// Gated recurrent units.
    GRU Kind::Gru;
}

impl RNN {
    /// What each step ends with (tanh else).
    pub fn nonlinearity(mut self, nonlinearity: RnnNonlinearity) -> RNN {
        self.0.kind = Kind::Rnn(nonlinearity);
        self
    }
}

macro_rules! one_state {
    ($($name:ident)*) => { $(
        impl $name {
            /// The outputs of all times, and the hidden states at the end [layers * directions, batch, hidden], which
            /// begin as zeros if not given.
            #[track_caller]
            pub fn forward(&self, x: &Tensor, h: Option<&Tensor>) -> (Tensor, Tensor) {
                let at = std::panic::Location::caller();
                let _entered = enter(self);
                let (y, mut ends) = self.0.run(x, h.as_slice(), at);
                (y, ends.swap_remove(0))
            }
        }
    )* };
}
one_state!(RNN GRU);

impl LSTM {
    /// The outputs of all times, and the hidden and cell states at the end [layers * directions, batch, hidden], which
    /// begin as zeros if not given.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, states: Option<(&Tensor, &Tensor)>) -> (Tensor, (Tensor, Tensor)) {
        let at = std::panic::Location::caller();
        let _entered = enter(self);
        let init: Vec<&Tensor> = states.map_or(Vec::new(), |(h, c)| vec![h, c]);
        let (y, mut ends) = self.0.run(x, &init, at);
        let h = ends.swap_remove(0);
        (y, (h, ends.swap_remove(0)))
    }
}
