//! The inputs of a run: read from files, or made from a seed. What must not be here: file formats, what is done with them.

use half::{bf16, f16};
use std::fs;
use std::path::Path;
use tgc_runtime::{DType, Entry, Expr, Port, Tensor};

use crate::args::{Call, Random};
use crate::fault::{Result, SIZES, UNWRITABLE, fault, note, of_runtime};
use crate::npz;

/// Reads all input files; faults of several files are told together.
pub(crate) fn read(call: &Call, entry: &Entry) -> Result<Vec<(String, Tensor)>> {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    if let Some(path) = &call.inputs {
        match npz::read_npz(path) {
            Ok(tensors) => found.extend(tensors),
            Err(f) => faults.extend(f),
        }
    }
    for (name, path) in &call.input {
        match npz::read_npy(path) {
            Ok(t) => found.push((name.clone(), t)),
            Err(f) => faults.extend(f),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    found.into_iter().map(|(name, t)| Ok((name.clone(), fit(entry, &name, t)?))).collect()
}

/// Refuses an output that would take the place of a file that is read.
pub(crate) fn keep(call: &Call, output: &Path) -> Result<()> {
    let Ok(out) = fs::canonicalize(output) else { return Ok(()) };
    let read = [Some(&call.model), call.inputs.as_ref()].into_iter().flatten();
    let mut read = read.chain(call.input.iter().map(|(_, path)| path));
    match read.any(|i| fs::canonicalize(i).is_ok_and(|i| i == out)) {
        true => Err(fault(
            UNWRITABLE,
            format!("{} is read by this run", output.display()),
            "give the output another name",
        )),
        false => Ok(()),
    }
}

/// .npy has no bf16: f32 values are rounded where the model takes it.
fn fit(entry: &Entry, name: &str, t: Tensor) -> Result<Tensor> {
    let wanted = entry.inputs.iter().find(|p| p.name == name).map(|p| p.dtype);
    if wanted != Some(DType::BF16) || t.dtype() != DType::F32 {
        return Ok(t);
    }
    note(&format!("input `{name}` is rounded from f32 to bf16"));
    let narrow = |v: &f64| bf16::from_f64(*v).to_le_bytes();
    let bytes: Vec<u8> = t.to_f64().iter().flat_map(narrow).collect();
    Tensor::new(DType::BF16, t.shape(), &bytes).map_err(of_runtime)
}

/// Inputs that are complete, and how they came about.
pub(crate) struct Inputs {
    pub(crate) tensors: Vec<(String, Tensor)>,
    /// Every dim of the entry with its size, and whether nobody gave it.
    pub(crate) dims: Vec<(String, u64, bool)>,
    /// Names of the inputs that were made.
    pub(crate) made: Vec<String>,
    /// Whether there are integers among what was made.
    pub(crate) integers: bool,
}

impl Inputs {
    /// The bytes of each of the entry's inputs; `None` for those left out.
    pub(crate) fn in_order(&self, entry: &Entry) -> Vec<Option<&[u8]>> {
        let by_name = |name: &str| self.tensors.iter().find(|(n, _)| n == name).map(|(_, t)| t.bytes());
        entry.inputs.iter().map(|p| by_name(&p.name)).collect()
    }

    /// The same as a call takes them.
    pub(crate) fn named(&self) -> Vec<(&str, &Tensor)> {
        self.tensors.iter().map(|(n, t)| (n.as_str(), t)).collect()
    }
}

/// Reads the files given and makes the inputs that are missing; one with a default stays out.
pub(crate) fn complete(call: &Call, random: &Random, entry: &Entry) -> Result<Inputs> {
    let tensors = read(call, entry)?;
    let (syms, chosen) = sizes(entry, &tensors, random)?;
    let dims = entry.symbols.iter().zip(&syms).zip(&chosen);
    let dims = dims.map(|((s, v), c)| (s.name.clone(), v.unwrap_or(0).unsigned_abs(), *c)).collect();
    let mut out = Inputs { tensors, dims, made: Vec::new(), integers: false };
    for (i, p) in entry.inputs.iter().enumerate() {
        if p.default.is_some() || out.tensors.iter().any(|(name, _)| *name == p.name) {
            continue;
        }
        let mut numbers = Numbers(random.random ^ (i as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
        let t = make(p, &shape(entry, p, &syms)?, random.int_max, &mut numbers)?;
        out.tensors.push((p.name.clone(), t));
        out.made.push(p.name.clone());
        out.integers |= !is_float(p.dtype) && p.dtype != DType::Bool;
    }
    Ok(out)
}

/// The entry's symbols by slot, and which of them got the smallest size because nothing says another.
fn sizes(
    entry: &Entry,
    given: &[(String, Tensor)],
    random: &Random,
) -> Result<(Vec<Option<i64>>, Vec<bool>)> {
    let mut syms: Vec<Option<i64>> = vec![None; entry.symbols.len()];
    for (name, t) in given {
        let Some(p) = entry.inputs.iter().find(|p| p.name == *name) else { continue };
        for (d, &size) in p.dims.iter().zip(t.shape()) {
            if let Expr::Sym(s) = d {
                syms[*s as usize].get_or_insert(size as i64);
            }
        }
    }
    let mut faults = Vec::new();
    for (name, size) in &random.dim {
        let names: Vec<&str> = entry.symbols.iter().map(|s| s.name.as_str()).collect();
        match names.iter().position(|n| n == name) {
            None => faults.extend(fault(
                SIZES,
                format!("--dim {name}={size}: the entry has no dim of that name"),
                if names.is_empty() {
                    "it has no dims".into()
                } else {
                    format!("its dims: {}", names.join(", "))
                },
            )),
            Some(s) if syms[s].is_some_and(|v| v.unsigned_abs() != *size) => faults.extend(fault(
                SIZES,
                format!("--dim {name}={size}: the dim has another size already"),
                "give it once, and only if no file gives it",
            )),
            Some(s) => {
                let (of, size) = (&entry.symbols[s], i64::try_from(*size).unwrap_or(i64::MAX));
                if !(of.lo..=of.hi).contains(&size) {
                    let m = format!("--dim {name}={size}: the dim is from {} to {}", of.lo, of.hi);
                    faults.extend(fault(SIZES, m, "give a size in that range"));
                }
                syms[s] = Some(size);
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let chosen = syms.iter().map(Option::is_none).collect();
    for (v, s) in syms.iter_mut().zip(&entry.symbols) {
        v.get_or_insert(s.lo.max(1));
    }
    Ok((syms, chosen))
}

fn shape(entry: &Entry, p: &Port, syms: &[Option<i64>]) -> Result<Vec<usize>> {
    let names: Vec<&str> = entry.symbols.iter().map(|s| s.name.as_str()).collect();
    let size = |d: &Expr| {
        let why = match d.eval(syms) {
            Ok(v) => match usize::try_from(v) {
                Ok(v) => return Ok(v),
                Err(_) => format!("it is {v}"),
            },
            Err(why) => why.to_string(),
        };
        let what = format!("input `{}` has no size {} at these dims: {why}", p.name, d.show(&names));
        Err(fault(SIZES, what, "give other sizes with --dim"))
    };
    p.dims.iter().map(size).collect()
}

fn is_float(d: DType) -> bool {
    matches!(d, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

/// A tensor of numbers: floats of about the standard normal distribution, integers in `0..bound`, bools even chances.
fn make(p: &Port, shape: &[usize], bound: u64, numbers: &mut Numbers) -> Result<Tensor> {
    let mut t = Tensor::zeros(p.dtype, shape).map_err(of_runtime)?;
    let size = p.dtype.size();
    // What the type cannot hold would come out negative.
    let bound = if is_float(p.dtype) || size == 8 { bound } else { bound.min(1 << (8 * size - 1)) };
    for element in t.bytes_mut().chunks_exact_mut(size) {
        let bytes: [u8; 8] = match p.dtype {
            DType::F64 => numbers.normal().to_le_bytes(),
            DType::F32 => u64::from((numbers.normal() as f32).to_bits()).to_le_bytes(),
            DType::F16 => u64::from(f16::from_f64(numbers.normal()).to_bits()).to_le_bytes(),
            DType::BF16 => u64::from(bf16::from_f64(numbers.normal()).to_bits()).to_le_bytes(),
            DType::Bool => numbers.below(2).to_le_bytes(),
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => numbers.below(bound).to_le_bytes(),
        };
        element.copy_from_slice(&bytes[..size]);
    }
    Ok(t)
}

/// A stream of random numbers: SplitMix64, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// The sum of twelve parts of 0..1, less its mean: variance 1, within -6..6, and no function of a library in it.
    fn normal(&mut self) -> f64 {
        let part = |w: u64| [w & 0xffff, (w >> 16) & 0xffff, (w >> 32) & 0xffff, w >> 48];
        let sum: u64 = (0..3).flat_map(|_| part(self.next())).sum();
        sum as f64 / 65536.0 - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_distribution_they_claim() {
        let mut n = Numbers(7);
        let all: Vec<f64> = (0..20_000).map(|_| n.normal()).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / all.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        let mut seen = [0u32; 5];
        (0..5000).for_each(|_| seen[n.below(5) as usize] += 1);
        assert!(seen.iter().all(|s| (800..1200).contains(s)), "{seen:?}");
    }

    #[test]
    fn narrow_integers_stay_within_their_type() {
        let port = Port { name: "x".into(), dtype: DType::I8, dims: vec![], default: None };
        let t = make(&port, &[1000], 100_000, &mut Numbers(3)).unwrap();
        let values = t.to_f64();
        assert!(values.iter().all(|v| *v >= 0.0) && values.iter().any(|v| *v > 100.0));
    }
}
