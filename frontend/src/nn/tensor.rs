//! The tensor handle: a known value, a value of the trace under way, or the cell of a parameter. Also element types of
//! mixed operands, and how a tensor prints. Operations live in `ops`.

use super::dim::{Dim, IntoShape};
use super::error::{end, report};
use super::exec;
use super::module::Cell;
use super::trace;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use tgc_ir::diag::Diag;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Cast, ConstDims};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::{Data as Bytes, Tensor as Data};
use tgc_ir::types::{DType, Type};

/// A tensor: any rank and element type. Cloning is cheap and shares the value.
#[derive(Clone)]
pub struct Tensor(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    /// A known value.
    Held(Data),
    /// A value of a trace.
    Node(Node),
    /// A parameter, buffer or state.
    Cell(Arc<Cell>),
    /// The result of something that failed; what is computed from it fails silently.
    Failed,
}

/// A value of a trace.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) trace: u64,
    /// The entry, branch or body it belongs to.
    pub(crate) region: u64,
    pub(crate) value: Value,
    pub(crate) ty: Arc<Type>,
}

/// Numbers that tensors are made of: the element type of `Tensor::from`.
pub trait Element: Copy {
    /// Its element type.
    const DTYPE: DType;
    /// As the IR has it.
    fn scalar(self) -> Scalar;
}

macro_rules! elements {
    ($($t:ty, $d:expr, $f:expr;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = $d;
            fn scalar(self) -> Scalar {
                $f(self)
            }
        }
    )* };
}
elements! {
    f32, DType::F32, |x: f32| Scalar::from_f64(DType::F32, f64::from(x));
    f64, DType::F64, |x: f64| Scalar::from_f64(DType::F64, x);
    i64, DType::I64, |x: i64| Scalar::from_int(DType::I64, i128::from(x));
    i32, DType::I32, |x: i32| Scalar::from_int(DType::I32, i128::from(x));
    i16, DType::I16, |x: i16| Scalar::from_int(DType::I16, i128::from(x));
    i8, DType::I8, |x: i8| Scalar::from_int(DType::I8, i128::from(x));
    u8, DType::U8, |x: u8| Scalar::from_int(DType::U8, i128::from(x));
    bool, DType::Bool, Scalar::bool;
}

impl Tensor {
    pub(crate) const FAILED: Tensor = Tensor(Repr::Failed);

    /// A tensor of these elements in row-major order.
    #[track_caller]
    pub fn from_slice<E: Element>(elements: &[E], shape: impl IntoShape) -> Tensor {
        let at = Location::caller();
        let Some(shape) = known_shape(shape, "from_slice", at) else { return Tensor::FAILED };
        let n: usize = shape.iter().product();
        if n != elements.len() {
            let m = format!("{} elements are given for the shape {shape:?}, which has {n}", elements.len());
            report(
                Diag::error("E-NN-060", m).help("give a shape whose product is the number of elements"),
                at,
            );
            return Tensor::FAILED;
        }
        Tensor(Repr::Held(Data::from_scalars(E::DTYPE, &shape, elements.iter().map(|e| e.scalar()))))
    }

    /// A tensor of rank 0.
    pub fn scalar<E: Element>(x: E) -> Tensor {
        Tensor(Repr::Held(Data::from_scalars(E::DTYPE, &[], [x.scalar()])))
    }

    /// A tensor of raw little-endian bytes; None if their number does not fit.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Option<Tensor> {
        Data::from_bytes(dtype, shape, Bytes::new(bytes)).map(|d| Tensor(Repr::Held(d)))
    }

    pub(crate) fn number(dtype: DType, x: f64) -> Tensor {
        Tensor(Repr::Held(Data::from_scalars(dtype, &[], [Scalar::from_f64(dtype, x)])))
    }

    pub(crate) fn integer(dtype: DType, x: i64) -> Tensor {
        Tensor(Repr::Held(Data::from_ints(dtype, &[], &[x])))
    }

    /// A size as a tensor of rank 0, i64.
    #[track_caller]
    pub(crate) fn size_value(d: Dim) -> Tensor {
        Tensor::sizes_value(&[d], true)
    }

    /// Sizes as a tensor, i64.
    #[track_caller]
    pub(crate) fn sizes_value(dims: &[Dim], scalar: bool) -> Tensor {
        let at = Location::caller();
        if let Some(all) = dims.iter().map(|d| d.as_known()).collect::<Option<Vec<i64>>>() {
            let shape: &[usize] = if scalar { &[] } else { &[all.len()] };
            return Tensor(Repr::Held(Data::from_ints(DType::I64, shape, &all)));
        }
        match sizes(dims) {
            Ok(dims) => exec::apply(ConstDims { dims, dtype: DType::I64, scalar }, &[], at),
            Err(Some(d)) => {
                report(d, at);
                Tensor::FAILED
            }
            Err(None) => Tensor::FAILED,
        }
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.0, Repr::Failed)
    }

    /// Element type and dims; None of something that failed.
    pub(crate) fn ty(&self) -> Option<Type> {
        match &self.0 {
            Repr::Held(d) => Some(d.ty()),
            Repr::Node(n) => Some((*n.ty).clone()),
            Repr::Cell(c) => Some(c.value().ty()),
            Repr::Failed => None,
        }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty().map_or(DType::F32, |t| t.dtype)
    }

    /// Number of axes.
    pub fn dim(&self) -> usize {
        self.ty().map_or(0, |t| t.rank())
    }

    /// The dims, outermost first.
    pub fn shape(&self) -> Vec<Dim> {
        self.ty().map_or(Vec::new(), |t| trace::dims_of(&t))
    }

    /// The size of an axis, negative counting from the end.
    #[track_caller]
    pub fn size(&self, axis: i64) -> Dim {
        let at = Location::caller();
        let shape = self.shape();
        self.axis(axis, at).and_then(|a| shape.get(a).copied()).unwrap_or(Dim::FAILED)
    }

    /// The dims as an array: `let [b, t, c] = x.dims();`. Another rank is an error.
    #[track_caller]
    pub fn dims<const N: usize>(&self) -> [Dim; N] {
        let at = Location::caller();
        if self.failed() {
            return [Dim::FAILED; N];
        }
        let shape = self.shape();
        <[Dim; N]>::try_from(shape).unwrap_or_else(|shape| {
            let m = format!("{N} dims are taken of a tensor of rank {}: {self}", shape.len());
            report(Diag::error("E-NN-061", m).help("take as many names as the tensor has axes"), at);
            [Dim::FAILED; N]
        })
    }

    /// Number of elements.
    pub fn numel(&self) -> Dim {
        self.ty().map_or(Dim::FAILED, |t| Dim::of(&t.numel()))
    }

    /// An axis from 0; an out-of-range one is reported. None also for something that failed.
    pub(crate) fn axis(&self, axis: i64, at: &'static Location<'static>) -> Option<usize> {
        let rank = self.ty()?.rank();
        let found = resolve_axis(axis, rank);
        if found.is_none() {
            let m = format!("axis {axis} of a tensor of rank {rank}");
            let help = match rank {
                0 => "a tensor of rank 0 has no axes".to_string(),
                _ => format!("axes are -{rank} to {}", rank - 1),
            };
            report(Diag::error("E-NN-062", m).note(format!("the tensor is {self:#}")).help(help), at);
        }
        found
    }

    /// Axes from 0; none given means all. Repeated ones are reported.
    pub(crate) fn axes(&self, axes: &[i64], at: &'static Location<'static>) -> Option<Vec<usize>> {
        let rank = self.ty()?.rank();
        if axes.is_empty() {
            return Some((0..rank).collect());
        }
        let mut out = Vec::new();
        for a in axes {
            let a = self.axis(*a, at)?;
            if out.contains(&a) {
                report(
                    Diag::error("E-NN-063", format!("axis {a} is given twice")).help("give every axis once"),
                    at,
                );
                return None;
            }
            out.push(a);
        }
        Some(out)
    }

    /// The known value; reading one of a trace ends it with an error.
    #[track_caller]
    pub(crate) fn data(&self, at: &'static Location<'static>) -> Data {
        match &self.0 {
            Repr::Held(d) => d.clone(),
            Repr::Cell(c) if !trace::is_tracing() => c.value(),
            Repr::Failed => end(
                Diag::error("E-NN-064", "the value of a tensor that could not be computed is read")
                    .help("mend the errors above it first"),
                at,
            ),
            _ => {
                let m = format!("a value is read during capture: {self}");
                let d = Diag::error("E-NN-065", m).help(
                    "a trace has no values yet: use cond or where_ to choose by data, while_loop to repeat by it; \
                     eager(|| ..) computes now from known tensors",
                );
                end(d, at)
            }
        }
    }

    /// The one element as f64. Not of a tensor in a trace, which has no values.
    #[track_caller]
    pub fn item(&self) -> f64 {
        let at = Location::caller();
        let d = self.data(at);
        if d.numel() != 1 {
            let m = format!("item() of a tensor of {} elements", d.numel());
            end(Diag::error("E-NN-066", m).help("it is for one element; to_vec() gives all"), at)
        }
        d.get(0).as_f64()
    }

    /// All elements as f64, row-major. Not of a tensor in a trace.
    #[track_caller]
    pub fn to_vec(&self) -> Vec<f64> {
        self.data(Location::caller()).to_f64()
    }

    /// All elements as integers (truncated), row-major. Not of a tensor in a trace.
    #[track_caller]
    pub fn to_ints(&self) -> Vec<i64> {
        let d = self.data(Location::caller());
        d.scalars().map(|s| s.as_int().map_or(s.as_f64() as i64, |i| i as i64)).collect()
    }

    /// The value of a parameter, buffer or state as it is now; the tensor itself otherwise.
    #[track_caller]
    pub fn get(&self) -> Tensor {
        let at = Location::caller();
        match &self.0 {
            Repr::Cell(c) if !trace::is_tracing() => Tensor(Repr::Held(c.value())),
            Repr::Cell(_) => exec::placed(self, at),
            _ => self.clone(),
        }
    }

    /// The value without a history of gradients. Histories are not built, so this is [`Tensor::get`].
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.get()
    }

    /// A copy of its own, as far as one can tell: values never change in place.
    #[track_caller]
    pub fn contiguous(&self) -> Tensor {
        self.get()
    }

    #[track_caller]
    pub(crate) fn store(&self, to: &Tensor, at: &'static Location<'static>) {
        let Repr::Cell(cell) = &self.0 else { return };
        let outcome = trace::with(
            |t| {
                let loc = t.loc(at);
                Some(t.set(cell, to, &loc))
            },
            None,
        );
        match outcome {
            Some(Ok(()) | Err(None)) => {}
            Some(Err(Some(d))) => report(d, at),
            None => {
                let (new, old) = (to.data(at), cell.value());
                if new.ty() != old.ty() {
                    let m = format!("a tensor of type {} is set to {}", old.ty(), new.ty());
                    report(Diag::error("E-NN-024", m).help("its type stays: reshape or cast the value"), at);
                    return;
                }
                cell.put(new)
            }
        }
    }

    /// The same values as another element type: floats to integers truncate and saturate.
    #[track_caller]
    pub fn to_dtype(&self, dtype: DType) -> Tensor {
        let at = Location::caller();
        if self.failed() || self.dtype() == dtype {
            return self.clone();
        }
        exec::apply(Cast { to: dtype }, &[self], at)
    }
}

pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Option<usize> {
    let a = if axis < 0 { axis + rank as i64 } else { axis };
    (0..rank as i64).contains(&a).then_some(a as usize)
}

/// Dims as the IR has them.
pub(crate) fn sizes(dims: &[Dim]) -> Result<Vec<tgc_ir::types::Dim>, Option<Diag>> {
    dims.iter().map(|d| d.size()).collect()
}

fn known_shape(shape: impl IntoShape, what: &str, at: &'static Location<'static>) -> Option<Vec<usize>> {
    let shape = shape.into_shape();
    let known =
        shape.iter().map(|d| d.as_known().and_then(|n| usize::try_from(n).ok())).collect::<Option<Vec<_>>>();
    if known.is_none() {
        let m = format!("{what} takes a known shape, not {shape:?}");
        report(Diag::error("E-NN-067", m).help("zeros, ones, full and arange take symbolic sizes"), at);
    }
    known
}

impl<E: Element> From<&[E]> for Tensor {
    fn from(v: &[E]) -> Tensor {
        Tensor(Repr::Held(Data::from_scalars(E::DTYPE, &[v.len()], v.iter().map(|e| e.scalar()))))
    }
}

impl<E: Element> From<Vec<E>> for Tensor {
    fn from(v: Vec<E>) -> Tensor {
        Tensor::from(v.as_slice())
    }
}

impl<E: Element, const N: usize> From<[E; N]> for Tensor {
    fn from(v: [E; N]) -> Tensor {
        Tensor::from(v.as_slice())
    }
}

impl<E: Element, const N: usize, const M: usize> From<[[E; M]; N]> for Tensor {
    fn from(v: [[E; M]; N]) -> Tensor {
        let all = v.iter().flatten().map(|e| e.scalar());
        Tensor(Repr::Held(Data::from_scalars(E::DTYPE, &[N, M], all)))
    }
}

impl<E: Element, const N: usize, const M: usize, const L: usize> From<[[[E; L]; M]; N]> for Tensor {
    fn from(v: [[[E; L]; M]; N]) -> Tensor {
        let all = v.iter().flatten().flatten().map(|e| e.scalar());
        Tensor(Repr::Held(Data::from_scalars(E::DTYPE, &[N, M, L], all)))
    }
}

impl From<&Tensor> for Tensor {
    fn from(t: &Tensor) -> Tensor {
        t.clone()
    }
}

impl From<Data> for Tensor {
    fn from(d: Data) -> Tensor {
        Tensor(Repr::Held(d))
    }
}

/// Bool, integers, floats: the kinds that promotion goes up by.
pub(crate) fn kind(d: DType) -> u8 {
    if d.is_float() { 2 } else { u8::from(d.is_int()) }
}

/// Element type of a result of two operands, by PyTorch's rules: bool, then integers, then floats; a tensor of rank 0
/// counts less than others of its kind.
pub(crate) fn promote(a: &Tensor, b: &Tensor) -> DType {
    let (x, y) = (a.dtype(), b.dtype());
    match (kind(x) == kind(y), a.dim() > 0, b.dim() > 0) {
        (true, true, false) => x,
        (true, false, true) => y,
        _ => promote_types(x, y),
    }
}

/// The element type that both fit in: bool, then integers, then floats.
pub(crate) fn promote_types(x: DType, y: DType) -> DType {
    match kind(x).cmp(&kind(y)) {
        std::cmp::Ordering::Greater => x,
        std::cmp::Ordering::Less => y,
        std::cmp::Ordering::Equal => wider(x, y),
    }
}

fn wider(x: DType, y: DType) -> DType {
    if x == y {
        return x;
    }
    if x.is_float() {
        let narrow = |d| matches!(d, DType::F16 | DType::BF16);
        return match narrow(x) && narrow(y) {
            true => DType::F32,
            false if x.bits() > y.bits() => x,
            false => y,
        };
    }
    let (big, small) = if x.bits() >= y.bits() { (x, y) } else { (y, x) };
    if big.is_signed() == small.is_signed() || (big.is_signed() && big.bits() > small.bits()) {
        return big;
    }
    match big.bits() {
        8 => DType::I16,
        16 => DType::I32,
        _ => DType::I64,
    }
}

/// What stands beside a tensor in an expression: tensors, parameters, numbers and dims. Numbers take the tensor's element
/// type; a fraction beside integers gives f32.
pub trait Operand {
    /// As a tensor that computes with `like`.
    fn operand(&self, like: &Tensor) -> Tensor;
}

impl Operand for Tensor {
    fn operand(&self, _: &Tensor) -> Tensor {
        self.clone()
    }
}

impl<T: Operand + ?Sized> Operand for &T {
    fn operand(&self, like: &Tensor) -> Tensor {
        (**self).operand(like)
    }
}

macro_rules! cells {
    ($($t:ident),*) => { $(
        impl Operand for super::module::$t {
            fn operand(&self, _: &Tensor) -> Tensor {
                Tensor::clone(self)
            }
        }
        impl From<&super::module::$t> for Tensor {
            fn from(t: &super::module::$t) -> Tensor {
                Tensor::clone(t)
            }
        }
    )* };
}
cells!(Param, Buffer, State);

impl Operand for f64 {
    fn operand(&self, like: &Tensor) -> Tensor {
        let d = like.dtype();
        Tensor::number(if d.is_float() { d } else { DType::F32 }, *self)
    }
}

impl Operand for f32 {
    fn operand(&self, like: &Tensor) -> Tensor {
        f64::from(*self).operand(like)
    }
}

impl Operand for bool {
    fn operand(&self, _: &Tensor) -> Tensor {
        Tensor::scalar(*self)
    }
}

macro_rules! integers {
    ($($t:ty),*) => { $(
        impl Operand for $t {
            fn operand(&self, like: &Tensor) -> Tensor {
                let d = like.dtype();
                Tensor::integer(if d == DType::Bool { DType::I64 } else { d }, *self as i64)
            }
        }
    )* };
}
integers!(i64, i32, usize);

impl Operand for Dim {
    #[track_caller]
    fn operand(&self, like: &Tensor) -> Tensor {
        let d = like.dtype();
        Tensor::size_value(*self).to_dtype(if d == DType::Bool { DType::I64 } else { d })
    }
}

/// Values in nested brackets for a known tensor, long axes cut; the type for one of a trace. `{:#}` prints the type only.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match &self.0 {
            Repr::Failed => return f.write_str("a tensor that could not be computed"),
            Repr::Held(d) => Some(d.clone()),
            Repr::Cell(c) => (!trace::is_tracing()).then(|| c.value()),
            Repr::Node(_) => None,
        };
        let ty = self.ty().map_or(String::new(), |t| t.to_string());
        match held.filter(|_| !f.alternate()) {
            None => f.write_str(&ty),
            Some(d) => {
                write!(f, "tensor(")?;
                elements(f, &d, 0, 0)?;
                write!(f, ", {ty})")
            }
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// Elements shown at each end of an axis that is cut.
const EDGE: usize = 3;

fn elements(f: &mut fmt::Formatter<'_>, d: &Data, start: usize, axis: usize) -> fmt::Result {
    let Some(&n) = d.shape.get(axis) else {
        let s = d.get(start);
        return match (d.dtype.is_float(), s.as_int()) {
            (false, Some(i)) if d.dtype != DType::Bool => write!(f, "{i}"),
            (false, _) => write!(f, "{}", s.is_true()),
            _ => write!(f, "{:.4}", s.as_f64()),
        };
    };
    let below: usize = d.shape[axis + 1..].iter().product();
    let cut = d.numel() > 1000 && n > 2 * EDGE;
    let between = match axis + 1 == d.shape.len() {
        true => ", ".to_string(),
        false => format!(",\n{}", " ".repeat(8 + axis)),
    };
    write!(f, "[")?;
    for i in (0..n).filter(|i| !cut || *i < EDGE || *i >= n - EDGE) {
        if i > 0 {
            f.write_str(&between)?;
        }
        if cut && i == n - EDGE {
            write!(f, "...{between}")?;
        }
        elements(f, d, start + i * below, axis + 1)?;
    }
    write!(f, "]")
}
