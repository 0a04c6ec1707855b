//! Random kernels with arguments, for property tests of the interpreter, the text form, schedules and code generators:
//! every stage kind, index maps, fills, traps, locals, loops, reducers and element types. Deterministic by seed.

mod pieces;
mod shapes;

use super::{Arg, Buf, Kernel, Role};
use std::sync::Arc;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Atom, DType, Dim};

/// A small generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x2545_f491_4f6c_dd1d))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A kernel in primitive operations with everything a launch needs. Output arguments hold what is there before.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// A verified kernel.
    pub(crate) kernel: Kernel,
    /// Values of its parameters.
    pub(crate) params: Vec<i64>,
    /// Its arguments.
    pub(crate) args: Vec<Tensor>,
}

/// What an argument's elements are.
#[derive(Clone)]
enum Content {
    Any,
    /// Indices into an extent, from its negative; sometimes one that is out of range.
    Index(Dim, bool),
}

/// A kernel under construction.
struct Gen {
    r: Rng,
    k: Kernel,
    params: Vec<i64>,
    content: Vec<Content>,
    next_label: u32,
    /// A bad index has been planted; a second one would make the failing site depend on the schedule.
    bad: bool,
}

/// The random kernel of a seed.
pub(crate) fn case(seed: u64) -> Case {
    let mut r = Rng::new(seed);
    let shape = r.below(shapes::SHAPES.len());
    let k = Kernel {
        name: format!("k{seed}"),
        params: Vec::new(),
        args: Vec::new(),
        grid: Vec::new(),
        locals: Vec::new(),
        body: Vec::new(),
        sites: Vec::new(),
    };
    let mut g = Gen { r, k, params: Vec::new(), content: Vec::new(), next_label: 0, bad: false };
    shapes::SHAPES[shape](&mut g);
    g.finish()
}

const EXTENTS: [i64; 12] = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 40];

impl Gen {
    /// An extent: a number, a new parameter or one already there. Parameters may be 0.
    fn extent(&mut self) -> Dim {
        match self.r.below(5) {
            0 | 1 => Dim::from(self.r.pick(&EXTENTS)),
            2 if !self.params.is_empty() => {
                let i = self.r.below(self.params.len());
                Dim::sym(&self.k.params[i].clone())
            }
            _ => {
                let zero = self.r.once_in(16);
                self.params.push(if zero { 0 } else { self.r.pick(&EXTENTS) });
                let name = format!("d{}", self.params.len() - 1);
                self.k.params.push(Arc::from(name.as_str()));
                Dim::sym(&name)
            }
        }
    }

    fn value(&self, d: &Dim) -> i64 {
        let leaf = |a: &Atom| match a {
            Atom::Sym(s) => self.k.params.iter().position(|p| p == s).map(|i| self.params[i]),
            _ => None,
        };
        d.eval(&leaf).unwrap_or(0)
    }

    /// `n` grid axes, or fewer when one large one is enough; returns their labels and extents.
    fn grid(&mut self, n: usize) -> Vec<(u32, Dim)> {
        let mut points = 1;
        for _ in 0..n {
            let d = self.extent();
            if points * self.value(&d) > 1500 {
                break;
            }
            points *= self.value(&d).max(1);
            self.k.grid.push(d);
        }
        self.next_label = self.k.grid.len() as u32;
        self.axes()
    }

    fn axes(&self) -> Vec<(u32, Dim)> {
        self.k.grid.iter().enumerate().map(|(i, d)| (i as u32, d.clone())).collect()
    }

    fn label(&mut self) -> u32 {
        self.next_label += 1;
        self.next_label - 1
    }

    fn arg(&mut self, role: Role, dtype: DType, dims: Vec<Dim>, content: Content) -> Buf {
        let letter = if role == Role::Out { "y" } else { "x" };
        let name = format!("{letter}{}", self.k.args.len());
        self.k.args.push(Arg { name, dtype, dims, role, packed: None });
        self.content.push(content);
        Buf::Arg(self.k.args.len() as u32 - 1)
    }

    fn finish(mut self) -> Case {
        // the products only use operations that have a lowering
        let lowered = crate::lower::math::lower_kernel(&mut self.k);
        debug_assert!(lowered.is_ok(), "{lowered:?}");
        let mut args = Vec::new();
        for i in 0..self.k.args.len() {
            let (dtype, dims) = (self.k.args[i].dtype, self.k.args[i].dims.clone());
            let shape: Vec<usize> = dims.iter().map(|d| self.value(d).max(0) as usize).collect();
            let n: usize = shape.iter().product();
            let content = self.content[i].clone();
            let mut v: Vec<Scalar> = (0..n).map(|_| self.element(dtype, &content)).collect();
            if let Content::Index(d, true) = &content
                && n > 0
            {
                let at = self.r.below(n);
                v[at] = Scalar::from_int(dtype, i128::from(self.value(d)) + self.r.below(3) as i128);
            }
            args.push(Tensor::from_scalars(dtype, &shape, v));
        }
        Case { kernel: self.k, params: self.params, args }
    }

    fn element(&mut self, d: DType, content: &Content) -> Scalar {
        if let Content::Index(bound, _) = content {
            let n = self.value(bound).max(1);
            return Scalar::from_int(d, self.r.below(2 * n as usize) as i128 - i128::from(n));
        }
        if d == DType::Bool {
            return Scalar::bool(self.r.once_in(2));
        }
        if d.is_float() {
            return match self.r.below(60) {
                0 => {
                    Scalar::from_f64(d, self.r.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]))
                }
                1 => Scalar { dtype: d, bits: self.r.bits() >> (64 - d.bits()) },
                2 => Scalar::from_f64(d, self.r.pick(&[1e-41, -3e-39, 6e-8, 1e30, -65504.0])),
                _ => Scalar::from_f64(d, (self.r.bits() >> 40) as f64 / f64::from(1u32 << 21) - 4.0),
            };
        }
        let bits = self.r.bits();
        if self.r.once_in(4) {
            Scalar::from_int(d, i128::from(bits as i64))
        } else {
            Scalar::from_int(d, bits as i128 % 21 - 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::interp::{Stop, run, run_tiled};
    use crate::kernel::text::{parse, print};
    use crate::kernel::verify::verify;
    use crate::schedule::{Isa, Schedule};

    const CASES: u64 = 400;

    #[test]
    fn random_kernels_verify_and_print_both_ways() {
        for seed in 0..CASES {
            let c = case(seed);
            let text = print(&c.kernel);
            let faults = verify(&c.kernel);
            assert!(faults.is_empty(), "seed {seed}: {}\n{text}", faults[0]);
            let back =
                parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e[0].render(Some(&text))));
            assert_eq!(back.len(), 1);
            assert!(back[0] == c.kernel, "seed {seed}:\n{text}\n{}", print(&back[0]));
        }
    }

    #[test]
    fn tiles_do_not_matter() {
        let (mut trapped, mut empty) = (0, 0);
        for seed in 0..CASES {
            let c = case(seed);
            let mut whole = c.args.clone();
            let got = run(&c.kernel, &c.params, &mut whole);
            assert!(!matches!(got, Err(Stop::Fault(_))), "seed {seed}: {got:?}\n{}", print(&c.kernel));
            trapped += u32::from(got.is_err());
            empty += u32::from(c.args.iter().any(|a| a.numel() == 0));
            for tile in [1, 3] {
                let mut args = c.args.clone();
                let tiles = vec![tile; c.kernel.grid.len()];
                assert_eq!(run_tiled(&c.kernel, &c.params, &mut args, Some(&tiles)), got, "seed {seed}");
                if got.is_ok() {
                    for (a, b) in args.iter().zip(&whole) {
                        assert!(a.scalars().eq(b.scalars()), "seed {seed} tile {tile}\n{}", print(&c.kernel));
                    }
                }
            }
        }
        assert!(trapped > 3 && empty > 8, "{trapped} trapped, {empty} with empty arguments");
    }

    #[test]
    fn default_and_random_schedules_are_valid() {
        for (vector_bytes, seed) in [16, 32, 64].into_iter().cycle().zip(0..CASES) {
            let (c, isa) = (case(seed), Isa { vector_bytes, fma: true });
            let s = Schedule::default_for(&c.kernel, isa);
            assert_eq!(s.check(&c.kernel, isa), Ok(()), "seed {seed}: {s}\n{}", print(&c.kernel));
            let mut r = Rng::new(seed);
            for _ in 0..5 {
                let s = Schedule::random(&c.kernel, &mut r);
                assert_eq!(s.check(&c.kernel, isa), Ok(()), "seed {seed}: {s}\n{}", print(&c.kernel));
            }
        }
    }
}
