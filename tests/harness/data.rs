//! Sizes and values for running graphs: seeded, or as a fixture writes them.

use crate::header::Header;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::graph::{Graph, Value};
use tgc_ir::interp;
use tgc_ir::ops::Op;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::text::parse_module;
use tgc_ir::types::{Atom, DType, Type};

/// A small generator of numbers (splitmix64).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `lo` to `hi`, both included.
    pub fn within(&mut self, lo: i64, hi: i64) -> i64 {
        let span = i128::from(hi) - i128::from(lo) + 1;
        lo + (i128::from(self.next()) % span.max(1)) as i64
    }
}

/// Sizes by symbol.
pub type Sizes = BTreeMap<String, i64>;

/// Name and type of each input.
pub fn inputs(g: &Graph) -> Vec<(String, Type)> {
    let one = |&id: &tgc_ir::graph::NodeId| {
        let ty = g.ty(Value { node: id, result: 0 })?.clone();
        match g.op_of(id)? {
            op if op.name() == "input" => {
                let Op::Input(i) = op else { return None };
                Some((i.name.clone(), ty))
            }
            _ => None,
        }
    };
    g.inputs().iter().filter_map(one).collect()
}

/// Symbols that only running gives a value.
fn bound_inside(g: &Graph) -> BTreeSet<String> {
    let symbol = |id| if let Some(Op::BindDim(b)) = g.op_of(id) { Some(b.symbol.clone()) } else { None };
    g.ids().into_iter().filter_map(symbol).collect()
}

/// A type's dims for given sizes; None when one cannot be computed.
pub fn shape(t: &Type, sizes: &Sizes) -> Option<Vec<usize>> {
    let leaf = |a: &Atom| if let Atom::Sym(s) = a { sizes.get(&**s).copied() } else { None };
    t.shape.iter().map(|d| d.eval(&leaf).ok().and_then(|v| usize::try_from(v).ok())).collect()
}

/// Two (or as many as the header asks for) choices of sizes that the graph accepts; one where nothing can be chosen.
pub fn choose_sizes(g: &Graph, h: &Header, rng: &mut Rng) -> Result<Vec<Sizes>, String> {
    let inside = bound_inside(g);
    let open: Vec<(String, i64, i64)> = g
        .symbols
        .iter()
        .filter(|(s, _)| !inside.contains(&***s))
        .map(|(s, i)| (s.to_string(), i.lo, i.hi))
        .collect();
    let accepted = |s: &Sizes| {
        let shapes: Option<Vec<Vec<usize>>> = inputs(g).iter().map(|(_, t)| shape(t, s)).collect();
        shapes.is_some_and(|s| interp::bind(g, &s).is_ok())
    };
    let mut out: Vec<Sizes> = Vec::new();
    if !h.sizes.is_empty() {
        for s in &h.sizes {
            if let Some((n, _, _)) = open.iter().find(|(n, _, _)| !s.contains_key(n)) {
                return Err(format!("`sizes` lacks `{n}`"));
            }
            if !accepted(s) {
                return Err(format!("graph @{} does not accept sizes {s:?}", g.name));
            }
            out.push(s.clone());
        }
        return Ok(out);
    }
    for attempt in 0..2000 {
        // sizes of 1 and above first, wider and narrower ones when that finds nothing
        let spread = 2 + attempt / 100;
        let pick = |(n, lo, hi): &(String, i64, i64), rng: &mut Rng| {
            let least = if attempt < 400 {
                (*lo).max(2).min(*hi)
            } else {
                (*lo).max(i64::from(attempt % 2 == 0)).min(*hi)
            };
            (n.clone(), rng.within(least, least.saturating_add(spread).min(*hi)))
        };
        let s: Sizes = open.iter().map(|o| pick(o, rng)).collect();
        if accepted(&s) && !out.contains(&s) {
            out.push(s);
        }
        if out.len() == 2 || (out.len() == 1 && (open.is_empty() || attempt >= 1000)) {
            return Ok(out);
        }
    }
    match out.is_empty() {
        true => Err(format!("no sizes that graph @{} accepts were found; give `// sizes: n=2, ...`", g.name)),
        false => Ok(out),
    }
}

/// Seeded values of one input.
pub fn tensor(dtype: DType, shape: &[usize], range: Option<(i64, i64)>, rng: &mut Rng) -> Tensor {
    let n: usize = shape.iter().product();
    let mut one = || match (dtype, range) {
        (d, Some((lo, hi))) if d.is_float() => {
            let t = rng.within(0, 1 << 20) as f64 / f64::from(1 << 20);
            Scalar::from_f64(d, lo as f64 + t * (hi - lo) as f64)
        }
        (d, None) if d.is_float() => {
            Scalar::from_f64(d, rng.within(-2 << 16, 2 << 16) as f64 / f64::from(1 << 16))
        }
        (DType::Bool, _) => Scalar::bool(rng.within(0, 1) == 1),
        (d, Some((lo, hi))) => Scalar::from_int(d, i128::from(rng.within(lo, hi))),
        (d, None) if d.is_unsigned() => Scalar::from_int(d, i128::from(rng.within(0, 3))),
        (d, None) if d.is_signed() => Scalar::from_int(d, i128::from(rng.within(-2, 3))),
        (d, None) => Scalar { dtype: d, bits: rng.next() & ((1 << d.bits()) - 1) },
    };
    Tensor::from_scalars(dtype, shape, (0..n).map(|_| one()).collect::<Vec<_>>())
}

/// A tensor written as a nested list.
pub fn written(dtype: DType, text: &str) -> Result<Tensor, String> {
    let shape = nesting(text);
    let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let item = format!("weight \"v\" : {dtype}[{}] = dense<{text}>", dims.join(", "));
    let m = parse_module(&item, &|_| None).map_err(|e| format!("value `{text}`: {}", e[0].message))?;
    m.weights.get("v").cloned().ok_or_else(|| format!("value `{text}` cannot be read"))
}

/// Lengths of the lists in a nested list, outermost first. An empty list has length 0.
fn nesting(text: &str) -> Vec<usize> {
    let Some(inner) = text.trim().strip_prefix('[') else { return Vec::new() };
    let (mut depth, mut items, mut first) = (0, 0usize, String::new());
    let mut empty = true;
    for c in inner.chars() {
        match c {
            ']' if depth == 0 => break,
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                items += 1;
                empty = true;
                continue;
            }
            _ => {}
        }
        if items == 0 {
            first.push(c);
        }
        empty = empty && c.is_whitespace();
    }
    let mut shape = vec![items + usize::from(!empty)];
    shape.extend(nesting(&first));
    shape
}
