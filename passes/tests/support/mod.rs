//! Inputs for graphs, and comparison of what two graphs made of them.

use tgc_ir::interp::Bounded;
use tgc_ir::module::Module;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Atom, DType};

/// Small inputs from a seed, every symbol being `size`.
pub fn inputs(m: &Module, size: i64, seed: u64) -> Vec<Tensor> {
    let g = &m.entries["main"].body;
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i64
    };
    let leaf = |a: &Atom| matches!(a, Atom::Sym(_)).then_some(size);
    let mut tensor = |ty: &tgc_ir::types::Type| {
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.eval(&leaf).unwrap() as usize).collect();
        let n = shape.iter().product();
        let elem = |i: usize, r: i64| match ty.dtype {
            d if d.is_float() => {
                Scalar::from_f64(d, if i == 0 { -0.0 } else { (r % 4001 - 2000) as f64 / 1000.0 })
            }
            DType::Bool => Scalar::bool(r % 2 == 0),
            d => Scalar::from_int(d, i128::from(r)),
        };
        Tensor::from_scalars(ty.dtype, &shape, (0..n).map(|i| elem(i, next())).collect::<Vec<_>>())
    };
    let types = g.inputs().iter().map(|&i| g.node(i).unwrap().results[0].ty.clone());
    types.collect::<Vec<_>>().iter().map(&mut tensor).collect()
}

/// The results agree within the error bounds of both runs.
pub fn same(before: &[Bounded], after: &[Bounded], what: &str) {
    assert_eq!(before.len(), after.len(), "{what}");
    for (b, a) in before.iter().zip(after) {
        assert_eq!(b.tensor.ty(), a.tensor.ty(), "{what}");
        for (i, (x, y)) in b.tensor.scalars().zip(a.tensor.scalars()).enumerate() {
            let allowed = b.bound[i] + a.bound[i];
            let near = (x.as_f64() - y.as_f64()).abs() <= allowed && allowed > 0.0;
            assert!(x == y || near, "{what}: element {i}: {x} became {y}, allowed {allowed:e}");
        }
    }
}
