//! Values inside the interpreter: typed dense storage, strided runs over it, conversion from and to tensors. No
//! operation is known here.

use crate::diag::Diag;
use crate::scalar::Scalar;
use crate::tensor::{Data, Tensor};
use crate::types::DType;
use half::{bf16, f16};

/// Elements. f32, f16 and bf16 are held as f32, f64 as f64, everything else as i64: bool 0 or 1, integers sign- or
/// zero-extended (u64 as its bits), storage-only floats as raw bits.
#[derive(Clone, Debug)]
pub(crate) enum Buf {
    F32(Vec<f32>),
    F64(Vec<f64>),
    Int(Vec<i64>),
}

/// A dense row-major value with, in bounded runs, an error bound for each element (None: exact).
#[derive(Clone, Debug)]
pub(crate) struct Val {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) buf: Buf,
    pub(crate) err: Option<Vec<f64>>,
}

/// Row-major strides of a shape.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1usize; shape.len()];
    for i in (1..shape.len()).rev() {
        out[i - 1] = out[i].saturating_mul(shape[i]);
    }
    out
}

/// A vector of `n` copies; running out of memory is a diagnostic.
pub(crate) fn filled<T: Clone>(n: usize, v: T) -> Result<Vec<T>, Diag> {
    let mut out = Vec::new();
    out.try_reserve_exact(n).map_err(|_| {
        Diag::error("E-RUN-010", format!("no memory for a tensor of {n} elements")).help("use smaller sizes")
    })?;
    out.resize(n, v);
    Ok(out)
}

/// Checks that the run `start, start + stride, ..` of `len` elements lies in `0..total`; gives the start.
pub(crate) fn check_run(start: i64, stride: i64, len: usize, total: usize) -> Result<usize, Diag> {
    let span = stride.checked_mul(len.saturating_sub(1) as i64);
    let last = span.and_then(|s| start.checked_add(s));
    let ok = |v: i64| usize::try_from(v).is_ok_and(|v| v < total);
    match last {
        Some(last) if len == 0 || (ok(start) && ok(last)) => Ok(start.max(0) as usize),
        _ => Err(Diag::error(
            "E-RUN-011",
            format!("an index map reads outside its operand: elements {start} step {stride} times {len} of {total}"),
        )
        .help("this is a fault in the op's lowering; please report it")),
    }
}

/// Sign- or zero-extends the low bits of `v` as type `d` holds them (bool: not zero).
pub(crate) fn wrap(d: DType, v: i64) -> i64 {
    match d {
        DType::I32 => i64::from(v as i32),
        DType::I16 => i64::from(v as i16),
        DType::I8 => i64::from(v as i8),
        DType::I4 => (v << 60) >> 60,
        DType::I2 => (v << 62) >> 62,
        DType::U32 => i64::from(v as u32),
        DType::U16 => i64::from(v as u16),
        DType::U8 => i64::from(v as u8),
        DType::U4 => v & 15,
        DType::U2 => v & 3,
        DType::Bool => i64::from(v != 0),
        _ => v,
    }
}

/// The number an integer element stands for.
pub(crate) fn wide(d: DType, v: i64) -> i128 {
    if d == DType::U64 { i128::from(v as u64) } else { i128::from(v) }
}

/// Rounds to a float type (other types: unchanged).
pub(crate) fn round(d: DType, v: f64) -> f64 {
    match d {
        DType::F32 => f64::from(v as f32),
        DType::F16 | DType::BF16 => Scalar::from_f64(d, v).as_f64(),
        _ => v,
    }
}

impl Buf {
    /// `n` zeros of a type.
    pub(crate) fn zeros(d: DType, n: usize) -> Result<Buf, Diag> {
        Ok(match d {
            DType::F64 => Buf::F64(filled(n, 0.0)?),
            d if d.is_float() => Buf::F32(filled(n, 0.0)?),
            _ => Buf::Int(filled(n, 0)?),
        })
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        match self {
            Buf::F32(v) => v.len(),
            Buf::F64(v) => v.len(),
            Buf::Int(v) => v.len(),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        let size = if matches!(self, Buf::F32(_)) { 4 } else { 8 };
        self.len() as u64 * size
    }

    /// Reads a checked run as f64 (u64 beyond 2^63 is not told apart; callers convert integers first).
    pub(crate) fn read_f(&self, start: usize, stride: i64, out: &mut [f64]) {
        match self {
            Buf::F32(v) => read(v, start, stride, out, f64::from),
            Buf::F64(v) => read(v, start, stride, out, |x| x),
            Buf::Int(v) => read(v, start, stride, out, |x| x as f64),
        }
    }

    /// Reads a checked run as i64 (floats are not held that way and read 0).
    pub(crate) fn read_i(&self, start: usize, stride: i64, out: &mut [i64]) {
        match self {
            Buf::Int(v) => read(v, start, stride, out, |x| x),
            _ => out.fill(0),
        }
    }

    /// Writes a checked run of floats, already rounded.
    pub(crate) fn write_f(&mut self, start: usize, stride: i64, from: &[f64]) {
        match self {
            Buf::F32(v) => write(v, start, stride, from, |x| x as f32),
            Buf::F64(v) => write(v, start, stride, from, |x| x),
            Buf::Int(v) => write(v, start, stride, from, |x| x as i64),
        }
    }

    /// Writes a checked run of integers, already wrapped.
    pub(crate) fn write_i(&mut self, start: usize, stride: i64, from: &[i64]) {
        match self {
            Buf::Int(v) => write(v, start, stride, from, |x| x),
            Buf::F32(v) => write(v, start, stride, from, |x| x as f32),
            Buf::F64(v) => write(v, start, stride, from, |x| x as f64),
        }
    }

    /// Copies a checked run from a buffer of the same kind.
    pub(crate) fn copy_run(&mut self, to: (usize, i64), src: &Buf, from: (usize, i64), len: usize) {
        match (self, src) {
            (Buf::F32(d), Buf::F32(s)) => copy(d, to, s, from, len),
            (Buf::F64(d), Buf::F64(s)) => copy(d, to, s, from, len),
            (Buf::Int(d), Buf::Int(s)) => copy(d, to, s, from, len),
            _ => {}
        }
    }
}

fn read<T: Copy, U>(v: &[T], start: usize, stride: i64, out: &mut [U], f: impl Fn(T) -> U) {
    if out.is_empty() {
        return;
    }
    if stride == 1 {
        let n = out.len();
        for (o, &x) in out.iter_mut().zip(&v[start..start + n]) {
            *o = f(x);
        }
        return;
    }
    for (k, o) in out.iter_mut().enumerate() {
        *o = f(v[(start as i64 + stride * k as i64) as usize]);
    }
}

fn write<T, U: Copy>(v: &mut [T], start: usize, stride: i64, from: &[U], f: impl Fn(U) -> T) {
    if stride == 1 {
        for (o, &x) in v[start..].iter_mut().zip(from) {
            *o = f(x);
        }
        return;
    }
    for (k, &x) in from.iter().enumerate() {
        v[(start as i64 + stride * k as i64) as usize] = f(x);
    }
}

pub(crate) fn copy<T: Copy>(d: &mut [T], to: (usize, i64), s: &[T], from: (usize, i64), len: usize) {
    if len == 0 {
        return;
    }
    if to.1 == 1 && from.1 == 1 {
        d[to.0..to.0 + len].copy_from_slice(&s[from.0..from.0 + len]);
        return;
    }
    if to.1 == 1 && from.1 == 0 {
        d[to.0..to.0 + len].fill(s[from.0]);
        return;
    }
    for k in 0..len as i64 {
        d[(to.0 as i64 + to.1 * k) as usize] = s[(from.0 as i64 + from.1 * k) as usize];
    }
}

impl Val {
    /// Zeros, exact.
    pub(crate) fn zeros(dtype: DType, shape: &[usize]) -> Result<Val, Diag> {
        let n = shape.iter().product();
        Ok(Val { dtype, shape: shape.to_vec(), buf: Buf::zeros(dtype, n)?, err: None })
    }

    /// Number of elements.
    pub(crate) fn numel(&self) -> usize {
        self.buf.len()
    }

    /// Bytes held, bounds included.
    pub(crate) fn bytes(&self) -> u64 {
        self.buf.bytes() + self.err.as_ref().map_or(0, |e| 8 * e.len() as u64)
    }

    /// From a tensor; its data must have the right length.
    pub(crate) fn from_tensor(t: &Tensor) -> Result<Val, Diag> {
        let b = t.data.bytes();
        let want = t.shape.iter().try_fold(t.dtype.size(), |a, &d| a.checked_mul(d));
        if want != Some(b.len()) {
            let msg = format!("a tensor {}{:?} comes with {} bytes", t.dtype, t.shape, b.len());
            return Err(Diag::error("E-RUN-012", msg)
                .help("the data must have exactly as many bytes as the elements need"));
        }
        let ints = |v: Vec<i64>| Buf::Int(v);
        let (b2, b4, b8) =
            (b.as_chunks::<2>().0.iter(), b.as_chunks::<4>().0.iter(), b.as_chunks::<8>().0.iter());
        let buf = match t.dtype {
            DType::F64 => Buf::F64(b8.map(|c| f64::from_le_bytes(*c)).collect()),
            DType::F32 => Buf::F32(b4.map(|c| f32::from_le_bytes(*c)).collect()),
            DType::F16 => Buf::F32(b2.map(|c| f16::from_le_bytes(*c).to_f32()).collect()),
            DType::BF16 => Buf::F32(b2.map(|c| bf16::from_le_bytes(*c).to_f32()).collect()),
            DType::I64 | DType::U64 => ints(b8.map(|c| i64::from_le_bytes(*c)).collect()),
            DType::I32 => ints(b4.map(|c| i64::from(i32::from_le_bytes(*c))).collect()),
            DType::U32 => ints(b4.map(|c| i64::from(u32::from_le_bytes(*c))).collect()),
            DType::I16 => ints(b2.map(|c| i64::from(i16::from_le_bytes(*c))).collect()),
            DType::U16 => ints(b2.map(|c| i64::from(u16::from_le_bytes(*c))).collect()),
            DType::I8 => ints(b.iter().map(|&c| i64::from(c as i8)).collect()),
            DType::Bool => ints(b.iter().map(|&c| i64::from(c & 1)).collect()),
            d => ints(b.iter().map(|&c| wrap(d, i64::from(c))).collect()),
        };
        Ok(Val { dtype: t.dtype, shape: t.shape.clone(), buf, err: None })
    }

    /// As a tensor.
    pub(crate) fn to_tensor(&self) -> Tensor {
        let mut out: Vec<u8> = Vec::with_capacity(self.numel() * self.dtype.size());
        match &self.buf {
            Buf::F64(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
            Buf::F32(v) => match self.dtype {
                DType::F16 => v.iter().for_each(|&x| out.extend_from_slice(&f16::from_f32(x).to_le_bytes())),
                DType::BF16 => {
                    v.iter().for_each(|&x| out.extend_from_slice(&bf16::from_f32(x).to_le_bytes()))
                }
                _ => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
            },
            Buf::Int(v) => {
                let (size, bits) = (self.dtype.size(), self.dtype.bits());
                let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                v.iter().for_each(|&x| out.extend_from_slice(&(x as u64 & mask).to_le_bytes()[..size]));
            }
        }
        Tensor { dtype: self.dtype, shape: self.shape.clone(), data: Data::new(out) }
    }

    /// Element `i` as a scalar.
    pub(crate) fn scalar(&self, i: usize) -> Scalar {
        match &self.buf {
            Buf::F32(v) => Scalar::from_f64(self.dtype, f64::from(v[i])),
            Buf::F64(v) => Scalar::from_f64(self.dtype, v[i]),
            Buf::Int(v) if self.dtype.is_int() || self.dtype == DType::Bool => {
                Scalar::from_int(self.dtype, i128::from(v[i]))
            }
            Buf::Int(v) => Scalar { dtype: self.dtype, bits: v[i] as u64 & ((1 << self.dtype.bits()) - 1) },
        }
    }

    /// Sets element `i`.
    pub(crate) fn set(&mut self, i: usize, s: Scalar) {
        match &mut self.buf {
            Buf::F32(v) => v[i] = s.as_f64() as f32,
            Buf::F64(v) => v[i] = s.as_f64(),
            Buf::Int(v) => v[i] = held(s),
        }
    }

    /// Element `i` as a number (64-bit integers round).
    pub(crate) fn number(&self, i: usize) -> f64 {
        match &self.buf {
            Buf::F32(v) => f64::from(v[i]),
            Buf::F64(v) => v[i],
            Buf::Int(v) => wide(self.dtype, v[i]) as f64,
        }
    }

    /// Error bound of element `i`.
    pub(crate) fn error(&self, i: usize) -> f64 {
        self.err.as_ref().map_or(0.0, |e| e[i])
    }

    /// Absolute values as f64 storage.
    pub(crate) fn magnitudes(&self) -> Buf {
        Buf::F64((0..self.numel()).map(|i| self.number(i).abs()).collect())
    }

    /// Error bounds as f64 storage.
    pub(crate) fn errors(&self) -> Result<Buf, Diag> {
        Ok(Buf::F64(match &self.err {
            Some(e) => e.clone(),
            None => filled(self.numel(), 0.0)?,
        }))
    }

    /// Marks every element as unbounded.
    pub(crate) fn unbounded(&mut self) {
        self.err = Some(vec![f64::INFINITY; self.numel()]);
    }

    /// The element of a rank-0 integer or bool.
    pub(crate) fn int(&self) -> Option<i64> {
        match &self.buf {
            Buf::Int(v) if v.len() == 1 => v.first().copied(),
            _ => None,
        }
    }
}

/// A non-float scalar as storage holds it.
pub(crate) fn held(s: Scalar) -> i64 {
    match s.as_int() {
        Some(v) => v as i64,
        None => s.bits as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_the_way_in_and_out() {
        for d in DType::all() {
            let v: Vec<Scalar> = if d.is_float() {
                [-0.0, 1.5, f64::NEG_INFINITY].iter().map(|&x| Scalar::from_f64(d, x)).collect()
            } else {
                let top =
                    Scalar { dtype: d, bits: if d.bits() == 64 { u64::MAX } else { (1 << d.bits()) - 1 } };
                let top = if d == DType::Bool { Scalar::bool(true) } else { top };
                vec![Scalar { dtype: d, bits: 0 }, Scalar { dtype: d, bits: 1 }, top]
            };
            let t = Tensor::from_scalars(d, &[3], v.clone());
            let val = Val::from_tensor(&t).unwrap();
            assert_eq!(val.to_tensor(), t, "{d}");
            for (i, s) in v.iter().enumerate() {
                assert_eq!(val.scalar(i), *s, "{d}");
            }
        }
    }

    #[test]
    fn wrong_byte_count_is_a_diagnostic() {
        let t = Tensor { dtype: DType::F32, shape: vec![3], data: Data::new(vec![0u8; 8]) };
        assert_eq!(Val::from_tensor(&t).unwrap_err().code, "E-RUN-012");
    }
}
