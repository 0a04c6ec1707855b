//! Lowering classes: the eight shapes of computation every core op takes, with their payloads. Interpreter, fusion and
//! code generators match on these and never on ops. Index maps are [`Dim`]s over labels; nothing here names an op.
//!
//! Labels: in `Map` and `View` label `#i` is output axis i. In the others each payload says what its labels are.

use crate::scalar::{Bin, ENode, Expr, Scalar};
use crate::types::{DType, Dim, Pred};

/// How an op computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Class {
    /// Elementwise.
    Map(Map),
    /// Reduction over axes.
    Reduce(Reduce),
    /// Sum of products over labels.
    Contract(Contract),
    /// Rearrangement without arithmetic.
    View(View),
    /// Reduction over window labels.
    Window(Window),
    /// Reads or writes at positions that are data.
    Index(Index),
    /// Prefix operation.
    Cumulate(Cumulate),
    /// One of the runtime's closed list of kernels.
    Opaque(Opaque),
}

/// `out[#..] = expr(operand_0[#..], ...)`: `Arg(i)` is operand i, read with right-aligned numpy broadcasting to the
/// output shape; `Dim` nodes may use the labels. One root per result; results have equal shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The scalar program.
    pub expr: Expr,
}

/// An associative reduction with state.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// Initial state, an identity of `combine`.
    pub init: Vec<Scalar>,
    /// Args: state.., inputs.., then the element's position in the reduction (i64, row-major). Roots: new state.
    pub step: Expr,
    /// Args: earlier state.., later state.. Roots: joined state.
    pub combine: Expr,
    /// Args: state.. Roots: results.
    pub finish: Expr,
}

/// Reduction over `axes` in row-major order of the axes as listed. Partial `j` of `lanes` takes the elements whose
/// index on the last listed axis is j modulo `lanes`, ascending; the partials that exist are joined by a fixed tree
/// (halving: partial i joins i + s for s = lanes/2 .. 1). This order is normative for code; the graph interpreter
/// accumulates floats in f64.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// Reduced axes of the operands (all operands have one shape).
    pub axes: Vec<usize>,
    /// Keep reduced axes with extent 1.
    pub keepdims: bool,
    /// What is computed.
    pub reducer: Reducer,
    /// Number of partials: 64 if the innermost axis is reduced, else 8.
    pub lanes: u32,
}

/// Where an operand is read: one index expression an axis, over labels. Where `when` is false the operand reads zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Index on each axis of the operand.
    pub index: Vec<Dim>,
    /// Condition for reading at all (padding of convolutions).
    pub when: Pred,
}

/// `out[labels out] = sum over labels red of a[..] * b[..]`. Normative order for code: one ascending FMA chain in `acc`
/// over the red labels in listed order (last fastest), in chunks of `chunk`, chunk sums added ascending. The red labels'
/// linear position counts; padded positions multiply by zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// Extent of each label.
    pub extents: Vec<Dim>,
    /// Label of each output axis.
    pub out: Vec<u32>,
    /// Summed labels, outermost first.
    pub red: Vec<u32>,
    /// Reads of operands 0 and 1.
    pub operands: [Access; 2],
    /// Accumulator type; the operands are converted to it, the result from it to the output type.
    pub acc: DType,
    /// Length of one chain.
    pub chunk: u32,
}

/// One box of a view's output and where its elements come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// First output index of the box on each axis.
    pub lo: Vec<Dim>,
    /// One past the last output index on each axis.
    pub hi: Vec<Dim>,
    /// Operand read.
    pub operand: usize,
    /// Index on each axis of the operand, over output labels.
    pub index: Vec<Dim>,
}

/// Output elements are copied from the piece whose box holds them (boxes are disjoint), or are `fill`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Boxes.
    pub pieces: Vec<Piece>,
    /// Value outside every box; None when the boxes cover the output.
    pub fill: Option<Scalar>,
}

/// Reduction over a window: labels `#0..#rank` are the output axes, the following ones the window's, with `extents`.
/// Positions where the access does not apply are skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Extents of the window labels.
    pub extents: Vec<Dim>,
    /// Read of operand 0.
    pub access: Access,
    /// What is computed; elements in row-major order of the window labels, one chain (no partials).
    pub reducer: Reducer,
}

/// Indirect reads and writes. `reads[k]` is where index operand `1 + operand` is read, over the labels; its value is
/// `$k` in `at`. Values in [-bound, bound) are allowed, negative ones count from the end, others are an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Reads of index operands: (operand number, index expressions, bound).
    pub reads: Vec<(usize, Vec<Dim>, Dim)>,
    /// Gather: index into operand 0 for each output element (labels: output axes). Scatter: index into the output for
    /// each update element (labels: axes of the updates, the last operand).
    pub at: Vec<Dim>,
    /// None: gather. Some: scatter; the output starts as operand 0, updates come in ascending row-major order.
    pub scatter: Option<Combine>,
}

/// How a scatter joins an update with the element there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Combine {
    Set,
    Add,
    Mul,
    Min,
    Max,
}

/// Prefix operation along one axis with a reducer's step, ascending (or descending when `reverse`).
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulate {
    /// Axis.
    pub axis: usize,
    /// From the last element to the first.
    pub reverse: bool,
    /// Element i holds the state before it is added.
    pub exclusive: bool,
    /// What is computed.
    pub reducer: Reducer,
}

/// The closed list of runtime kernels; none does floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// Indices of the elements that are not zero: (indices i64[rank, numel] padded with 0, count i64[]).
    NonZero,
    /// The k greatest (or smallest) along an axis, sorted: (values, indices i64). Ties keep the lower index first; NaN
    /// counts as greatest.
    TopK {
        /// Axis.
        axis: usize,
        /// Greatest, else smallest.
        largest: bool,
    },
}

impl Reducer {
    /// A reducer of one state of type `acc` and one input: `state = op(state, cast(input))`.
    pub fn simple(op: Bin, input: DType, acc: DType, init: Scalar, result: DType) -> Reducer {
        let mut step = Expr::default();
        let s = step.arg(0, acc);
        let x = step.arg(1, input);
        let x = step.cast(acc, x);
        step.roots = vec![step.bin(op, s, x)];
        let mut combine = Expr::default();
        let (a, b) = (combine.arg(0, acc), combine.arg(1, acc));
        combine.roots = vec![combine.bin(op, a, b)];
        let mut finish = Expr::default();
        let a = finish.arg(0, acc);
        finish.roots = vec![finish.cast(result, a)];
        Reducer { init: vec![init], step, combine, finish }
    }

    /// The operation when this is one [`Reducer::simple`] could have made, whatever its pre- and post-processing.
    pub(crate) fn as_simple(&self) -> Option<Bin> {
        match (&self.combine.nodes[..], self.init.len()) {
            ([(ENode::Arg(0), _), (ENode::Arg(1), _), (ENode::Bin(op, 0, 1), _)], 1) => Some(*op),
            _ => None,
        }
    }
}

impl Access {
    /// An unconditional read.
    pub fn plain(index: Vec<Dim>) -> Access {
        Access { index, when: Pred::True }
    }
}

/// Index map of an operand of shape `from` read at labels of an output of shape `to`, right-aligned numpy broadcasting:
/// axes of extent 1 read 0, equal ones the label, unknown ones `label * min(1, d - 1)`.
pub fn broadcast_index(from: &[Dim], to: &[Dim]) -> Vec<Dim> {
    let skip = to.len().saturating_sub(from.len());
    from.iter()
        .zip(&to[skip..])
        .enumerate()
        .map(|(i, (d, t))| {
            let label = Dim::label((i + skip) as u32);
            if d.is(1) {
                Dim::from(0)
            } else if d == t || d.as_const().is_some() {
                label
            } else {
                label * (d.clone() - Dim::from(1)).dmin(&Dim::from(1))
            }
        })
        .collect()
}
