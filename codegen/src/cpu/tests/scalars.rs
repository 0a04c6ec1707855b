//! Every scalar operation and conversion on every element type.

use super::*;

pub(super) fn unary_map(from: DType, to: DType, f: impl Fn(&mut Expr, u32) -> u32) -> Kernel {
    let mut e = Expr::default();
    let x = e.arg(0, from);
    let y = f(&mut e, x);
    e.roots = vec![y];
    let st = stage("map", &[0], Kind::Map, vec![load(0, &[l(0)])], e, vec![store(1, &[l(0)], 0)]);
    kernel(
        &[],
        vec![arg("x", from, &[n(203)], Role::In), arg("y", to, &[n(203)], Role::Out)],
        &[n(203)],
        vec![st],
    )
}

fn check_wide(k: &Kernel) {
    let mut r = Stream(31);
    let args: Vec<Tensor> = k.args.iter().map(|a| r.tensor(a.dtype, &[203])).collect();
    check(k, &[], &args, &[one(&[203], plain(Some(0), 8, 1))]);
}

const CASTABLE: [DType; 13] = [
    DType::F64,
    DType::F32,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
    DType::BF16,
];

#[test]
fn conversions_follow_the_scalar_table() {
    for from in CASTABLE {
        for to in CASTABLE.into_iter().filter(|t| *t != from) {
            check_wide(&unary_map(from, to, |e, x| e.cast(to, x)));
        }
    }
}

#[test]
fn unary_operations_follow_the_scalar_table() {
    for d in CASTABLE {
        for op in [Un::Neg, Un::Abs, Un::Not, Un::IsNan, Un::Sqrt, Un::Floor, Un::Ceil, Un::Round, Un::Trunc]
        {
            let Some(to) = op.result(d) else { continue };
            check_wide(&unary_map(d, to, |e, x| e.un(op, x)));
        }
    }
}

#[test]
fn binary_operations_follow_the_scalar_table() {
    for d in CASTABLE {
        for (op, _) in tgc_ir::scalar::BINARY {
            let Some(to) = op.result(d) else { continue };
            if op == Bin::Pow || (d.is_float() && matches!(op, Bin::Rem | Bin::Mod)) {
                continue;
            }
            let mut e = Expr::default();
            let (a, b) = (e.arg(0, d), e.arg(1, d));
            e.roots = vec![e.bin(op, a, b)];
            let st = stage(
                "map",
                &[0],
                Kind::Map,
                vec![load(0, &[l(0)]), load(2, &[l(0)])],
                e,
                vec![store(1, &[l(0)], 0)],
            );
            let args = vec![
                arg("x", d, &[n(203)], Role::In),
                arg("y", to, &[n(203)], Role::Out),
                arg("z", d, &[n(203)], Role::In),
            ];
            check_wide(&kernel(&[], args, &[n(203)], vec![st]));
        }
    }
}
