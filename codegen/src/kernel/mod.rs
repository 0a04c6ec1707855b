//! The kernel IR: what one launch computes, as a grid of parallel tiles and an ordered list of stages over arguments and
//! tile-local buffers. Both code generators read it and nothing else. How it is tiled and vectorised is a `Schedule`,
//! kept apart; no schedule changes a result. No op of the tensor IR is known here.
//!
//! Labels: `#0 .. #G-1` are the grid axes; inner, reduction and loop labels have higher numbers, each used once in a
//! kernel. Index expressions and extents are [`Dim`]s over labels and the kernel's dim parameters (symbols `d0`, `d1` ..).
//!
//! Meaning of a stage: for every point of its grid labels (restricted to the tile) and inner labels, its loads and
//! expression are evaluated in node order and the results stored. `Reduce` and `Contract` stages also run over the
//! reduction labels, in the normative order of `tgc_ir::class`. All stages of a tile run in order, each complete before
//! the next begins.

mod bounds;
pub mod interp;
mod packed;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod reuse;
pub mod text;
pub mod verify;

pub use packed::Packed;

use std::sync::Arc;
use tgc_ir::class::{Combine, Reducer};
use tgc_ir::scalar::{Expr, Scalar};
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// One kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name, unique in an artifact.
    pub name: String,
    /// Names of the dim parameters, whose values each launch computes at bind. All are at least 0.
    pub params: Vec<Arc<str>>,
    /// Buffers read and written, in ABI order.
    pub args: Vec<Arg>,
    /// Extent of each grid axis, over the parameters. No axes: one tile of one point.
    pub grid: Vec<Dim>,
    /// Tile-local buffers.
    pub locals: Vec<Local>,
    /// Stages and loops in order.
    pub body: Vec<Item>,
    /// What each trap site says when an index is out of range; site ids are 1-based positions.
    pub sites: Vec<String>,
}

/// A buffer argument: dense row-major unless packed.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Name in text form.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dims over the parameters.
    pub dims: Vec<Dim>,
    /// Use.
    pub role: Role,
    /// Layout of a packed weight; None is row-major.
    pub packed: Option<Packed>,
}

/// How an argument is used. An output overlaps no other argument, but may lie exactly on an input that the kernel reads
/// in step with it (`reuse::in_place`); so nothing but final values is stored to an output, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    In,
    Out,
    InOut,
    /// A weight.
    Const,
}

/// A buffer that lives for one tile (scratch memory of the worker).
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// Name in text form.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Axes, outermost first.
    pub axes: Vec<LocalAxis>,
}

/// Extent of a local's axis.
#[derive(Clone, Debug, PartialEq)]
pub enum LocalAxis {
    /// The tile's part of a grid axis with a halo: indices `tile.lo - lo .. tile.hi + hi`; indexed by absolute position.
    Tile {
        /// Grid axis.
        grid: u32,
        /// Elements before the tile.
        lo: u32,
        /// Elements after the tile.
        hi: u32,
    },
    /// A whole extent, over the parameters.
    Full(Dim),
    /// The last n positions of something longer; indexed modulo n.
    Ring(u32),
}

/// A step of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all are stages
pub enum Item {
    /// A loop nest.
    Stage(Stage),
    /// A sequential loop. Locals outlive iterations: they carry state.
    Loop {
        /// Label of the loop variable.
        var: u32,
        /// First value, over parameters and outer loop labels.
        lo: Dim,
        /// One past the last value.
        hi: Dim,
        /// Steps of an iteration.
        body: Vec<Item>,
    },
}

/// One loop nest.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Name for profiles and text, for example the op it comes from.
    pub name: String,
    /// The stage runs only where this holds (over parameters and loop labels).
    pub when: Pred,
    /// Grid axes it runs over, ascending. Others are not iterated.
    pub over: Vec<u32>,
    /// Inner labels with extents (over parameters and loop labels), outermost first.
    pub inner: Vec<(u32, Dim)>,
    /// Reduction labels with extents, outermost first; empty for `Map`.
    pub red: Vec<(u32, Dim)>,
    /// What is done over the reduction labels.
    pub kind: Kind,
    /// Reads; load i is `Arg(i)` of `expr`.
    pub loads: Vec<Load>,
    /// Map: roots are the results. Reduce: roots are the reducer's inputs. Contract: roots are a and b, of one type,
    /// the accumulator's.
    pub expr: Expr,
    /// Applied to the results: `Arg(r)` is result r, `Arg(results + i)` is load i (which must not use reduction labels
    /// or node values). Its roots are what is stored. None: the results are stored as they are. Not for `Map`.
    pub post: Option<Expr>,
    /// Writes.
    pub stores: Vec<Store>,
}

/// Kind of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One evaluation a point.
    Map,
    /// `reducer` over the reduction labels with `lanes` partials along the last label; results are its `finish`.
    Reduce {
        /// What is computed; its step's position argument counts all reduction labels row-major.
        reducer: Reducer,
        /// Number of partials.
        lanes: u32,
    },
    /// One FMA chain (multiply and add wrapping for integers) over the reduction labels in chunks; the one result is the
    /// accumulator.
    Contract {
        /// Length of a chain.
        chunk: u32,
    },
}

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buf {
    /// Argument by position.
    Arg(u32),
    /// Local by position.
    Local(u32),
}

/// A read of one element. `$n` in an index is node n of the stage's expression, which comes before the load's node.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Buffer.
    pub from: Buf,
    /// Index on each axis.
    pub index: Vec<Dim>,
    /// What if the index is not inside.
    pub mode: Mode,
}

/// How a load treats its index.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// Always inside.
    Proved,
    /// Inside where the condition (over labels and parameters) holds; elsewhere the value is read instead.
    Fill(Pred, Scalar),
    /// Checked: outside is an error at this site (1-based). Where the condition is false nothing is read or checked and
    /// the value is zero.
    Trap(u32, Pred),
}

/// A write of one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// Buffer.
    pub to: Buf,
    /// Index on each axis; `$n` is node n of the stage's expression (checked against the axis when it occurs: an index
    /// outside is an error at `site`).
    pub index: Vec<Dim>,
    /// Which result.
    pub value: u32,
    /// `Set` or a combination with what is there.
    pub op: Combine,
    /// Trap site for indices with `$n`; 0 when none occur.
    pub site: u32,
}

impl Kernel {
    /// Position of a dim parameter.
    pub(crate) fn slot(&self, param: &str) -> Option<usize> {
        self.params.iter().position(|p| **p == *param)
    }

    /// Every stage, in order, loops flattened.
    pub fn stages(&self) -> Vec<&Stage> {
        fn walk<'k>(items: &'k [Item], out: &mut Vec<&'k Stage>) {
            for i in items {
                match i {
                    Item::Stage(s) => out.push(s),
                    Item::Loop { body, .. } => walk(body, out),
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.body, &mut out);
        out
    }

    /// Type of a buffer's elements.
    pub fn dtype(&self, b: Buf) -> DType {
        match b {
            Buf::Arg(i) => self.args.get(i as usize).map_or(DType::Bool, |a| a.dtype),
            Buf::Local(i) => self.locals.get(i as usize).map_or(DType::Bool, |l| l.dtype),
        }
    }
}

/// Position of the element at `index` from a buffer's first one, where accesses can be compared by it: tiles of locals
/// count as `%tile0` .. long. None for rings and wrong numbers of indices.
pub(crate) fn flat(k: &Kernel, buf: Buf, index: &[Dim]) -> Option<Dim> {
    let (dims, packed): (Vec<Dim>, _) = match buf {
        Buf::Arg(i) => {
            let a = k.args.get(i as usize)?;
            (a.dims.clone(), a.packed.as_ref())
        }
        Buf::Local(i) => {
            let extent = |a: &LocalAxis| match a {
                LocalAxis::Tile { grid, .. } => Some(Dim::sym(&format!("%tile{grid}"))),
                LocalAxis::Full(d) => Some(d.clone()),
                LocalAxis::Ring(_) => None,
            };
            (k.locals.get(i as usize)?.axes.iter().map(extent).collect::<Option<_>>()?, None)
        }
    };
    if dims.len() != index.len() {
        return None;
    }
    Some(match packed {
        Some(p) => p.flat(index, &dims),
        None => row_major(index, &dims),
    })
}

/// Position of the element at `index` of a dense row-major buffer.
pub(crate) fn row_major(index: &[Dim], extents: &[Dim]) -> Dim {
    index.iter().zip(extents).fold(Dim::from(0), |at, (x, d)| at * d.clone() + x.clone())
}

/// `d` with `floordiv(label + r, p)` replaced by a name where it is the same for `width` neighbours that start at a multiple
/// of their number, which divides r and p. Only good for seeing how `d` moves along the label. A width of 0 is for
/// neighbours that start anywhere.
pub(crate) fn without_panels(d: &Dim, label: u32, width: u32) -> Dim {
    let width = i128::from(width);
    let still = |a: &Atom| match a {
        Atom::FloorDiv(x, p) if width > 0 && p.as_const().is_some_and(|p| i128::from(p) % width == 0) => {
            x.affine(label).is_some_and(|(c, r)| {
                c.is(1) && r.constant() % width == 0 && r.terms().all(|(k, _)| k % width == 0)
            })
        }
        _ => false,
    };
    let mut sum = Dim::from(d.constant());
    for (coeff, atoms) in d.terms() {
        let factors = atoms.iter().map(|a| if still(a) { Dim::sym("%panel") } else { Dim::atom(a.clone()) });
        sum = sum + Dim::from(coeff) * factors.product();
    }
    sum
}

/// True if some dim of the condition satisfies `uses`.
pub(crate) fn mentions(p: &Pred, uses: &dyn Fn(&Dim) -> bool) -> bool {
    let hit = std::cell::Cell::new(false);
    p.map(&|d| {
        hit.set(hit.get() || uses(d));
        d.clone()
    });
    hit.get()
}

/// The point label that a packed weight, which the stage reads, is cut along.
pub(crate) fn packed_label(k: &Kernel, s: &Stage) -> Option<u32> {
    s.loads.iter().find_map(|l| {
        let Buf::Arg(i) = l.from else { return None };
        let d = l.index.get(k.args.get(i as usize)?.packed.as_ref()?.axis as usize)?;
        let mut points = s.over.iter().copied().chain(s.inner.iter().map(|i| i.0));
        points.find(|label| *d == Dim::label(*label))
    })
}
