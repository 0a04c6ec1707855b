//! Properties of the text form: generated graphs print and read back to the same text; no bytes and no damaged text make
//! the parser, or anything it calls, panic.

use proptest::prelude::*;
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Guard, Value};
use tgc_ir::module::Module;
use tgc_ir::ops::{
    Add, BindDim, Cast, Concat, ConstDims, Constant, Fused, Gather, Iota, Matmul, Mul, Op, Pad, ReduceSum,
    Relu, Reshape, Softmax, TopK, Transpose,
};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::text::{parse_graph, parse_module, print_graph, print_module};
use tgc_ir::types::{DType, Dim, Pred, SymInfo, Type};
use tgc_ir::verify::verify;

/// A step of a random program over a growing list of values; numbers are taken modulo what there is.
type Step = (u8, usize, usize, i64);

fn dim(n: i64) -> Dim {
    let (a, b) = (Dim::sym("n"), Dim::sym("odd name"));
    match n.rem_euclid(7) {
        0 => a,
        1 => b,
        2 => a + b,
        3 => (a * Dim::from(3) + Dim::from(1)).floordiv(&Dim::from(2)),
        4 => a.dmin(&b),
        _ => Dim::from(n.rem_euclid(5)),
    }
}

fn build(inputs: &[(u8, Vec<i64>)], steps: &[Step]) -> Graph {
    let mut g = Graph::new("main");
    g.symbols.insert("odd name", SymInfo { lo: 1, hi: 9, named: false });
    g.symbols.insert("n", SymInfo::default());
    g.symbols.insert("k", SymInfo::default());
    let types = [DType::F32, DType::I64, DType::BF16, DType::Bool, DType::U8];
    let mut values: Vec<Value> = Vec::new();
    for (i, (t, shape)) in inputs.iter().enumerate() {
        let ty = Type::new(types[usize::from(*t) % types.len()], shape.iter().map(|d| dim(*d)).collect());
        let name = ["a", "in.1", "a", ""][i % 4];
        values.push(g.input(name, ty, Loc::default()));
    }
    for (i, s) in steps.iter().enumerate() {
        step(&mut g, &mut values, *s, i);
    }
    for (i, v) in values.iter().rev().take(3).enumerate() {
        g.output(&format!("y{}", i * 2), *v);
    }
    g
}

fn step(g: &mut Graph, values: &mut Vec<Value>, (kind, a, b, n): Step, i: usize) {
    let pick = |k: usize| if values.is_empty() { None } else { Some(values[k % values.len()]) };
    let (x, y) = (pick(a), pick(b));
    let two: Vec<Value> = x.into_iter().chain(y).collect();
    let one: Vec<Value> = x.into_iter().collect();
    let rank = x.and_then(|x| g.ty(x)).map_or(0, Type::rank);
    let mut regions = Vec::new();
    let scalar = Scalar::from_f64(DType::F32, n as f64 / 3.0);
    let (op, operands): (Op, Vec<Value>) = match kind % 20 {
        0 => (Add {}.into(), two),
        1 => (Mul {}.into(), two),
        2 => (Matmul {}.into(), two),
        3 => (Relu {}.into(), one),
        4 => (ReduceSum { axes: vec![n % 3], keepdims: n % 2 == 0 }.into(), one),
        5 => (Transpose { perm: (0..rank as i64).rev().collect() }.into(), one),
        6 => (Reshape { shape: vec![x.and_then(|x| g.ty(x)).map_or(Dim::from(1), Type::numel)] }.into(), one),
        7 => (Softmax { axis: n % 3 }.into(), one),
        8 => (Cast { to: if n % 2 == 0 { DType::F16 } else { DType::I32 } }.into(), one),
        9 => (Constant::scalar(scalar).into(), vec![]),
        10 => {
            let value = Tensor::from_scalars(DType::F32, &[], [scalar]);
            (Constant { value, shape: Some(vec![dim(n), Dim::from(2)]) }.into(), vec![])
        }
        11 => {
            let v: Vec<i64> = (0..n.rem_euclid(6)).collect();
            (Constant { value: Tensor::from_ints(DType::I64, &[v.len()], &v), shape: None }.into(), vec![])
        }
        12 => {
            (ConstDims { dims: vec![dim(n), Dim::from(n)], dtype: DType::I64, scalar: false }.into(), vec![])
        }
        13 => (Iota { axis: 0, shape: vec![dim(n), dim(n + 1)], dtype: DType::I64 }.into(), vec![]),
        14 => (Concat { axis: n % 2 }.into(), two),
        15 => (Gather { axis: 0 }.into(), two),
        16 => (TopK { axis: -1, k: dim(n), largest: n % 2 == 0 }.into(), one),
        17 => {
            let ends = |k: i64| vec![dim(k); rank];
            (Pad { before: ends(n), after: ends(5), value: scalar }.into(), one)
        }
        18 => (BindDim { symbol: "k".into() }.into(), one),
        _ => {
            let mut r = Graph::region(&g.symbols);
            let inner: Vec<Value> = two
                .iter()
                .filter_map(|v| g.ty(*v).cloned())
                .map(|t| r.input("", t, Loc::default()))
                .collect();
            let Some(&first) = inner.first() else { return };
            let out = r.op(Add {}, &[first, first], &Loc::new("inside")).unwrap_or(first);
            r.output("y0", out);
            regions.push(r);
            (Fused {}.into(), two)
        }
    };
    let mut loc = Loc::new(if i.is_multiple_of(3) { String::new() } else { format!("node `N_{i}`\t\"q\"") });
    if i.is_multiple_of(4) {
        loc.rules = vec!["rule_a".into(), "rule_b".into()];
    }
    if n % 5 == 0 {
        let pred = Pred::all([Pred::Le(Dim::from(n), dim(n)), Pred::Not(Box::new(Pred::Eq(dim(1), dim(n))))]);
        g.guard(Guard { pred, why: format!("because {n}"), at: loc.clone() });
    }
    // steps that do not fit are left out: the rules of ops are not what is tested here
    if let Ok(id) = g.add(op, &operands, regions, loc) {
        let results = g.node(id).map_or(0, |n| n.results.len());
        values.extend((0..results as u32).map(|result| Value { node: id, result }));
    }
}

fn arb_graph() -> impl Strategy<Value = Graph> {
    let inputs = prop::collection::vec((any::<u8>(), prop::collection::vec(0i64..20, 0..4)), 1..4);
    let step = (any::<u8>(), any::<usize>(), any::<usize>(), -9i64..30);
    (inputs, prop::collection::vec(step, 0..24)).prop_map(|(i, s)| build(&i, &s))
}

/// Every fixture of the repository.
fn fixtures() -> &'static [String] {
    static ALL: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    ALL.get_or_init(find_fixtures)
}

fn find_fixtures() -> Vec<String> {
    fn walk(dir: &std::path::Path, out: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        let mut paths: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        paths.sort();
        for p in paths {
            if p.is_dir() {
                walk(&p, out);
            } else if p.extension().is_some_and(|e| e == "tgir") {
                out.extend(std::fs::read_to_string(p));
            }
        }
    }
    let mut out = Vec::new();
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    ["text", "ops", "passes", "diag"].iter().for_each(|d| walk(&tests.join(d), &mut out));
    assert!(!out.is_empty(), "no fixtures found");
    out
}

/// Reads, and if that works also verifies and prints twice.
fn digest(text: &str) {
    let data = |_: &str| None;
    match parse_module(text, &data) {
        Ok(m) => {
            verify(&m);
            let printed = print_module(&m);
            let again = parse_module(&printed, &|n| m.weights.get(n).cloned());
            let again = again.unwrap_or_else(|e| panic!("{}\n{printed}", e[0].render(Some(&printed))));
            assert_eq!(print_module(&again), printed);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|d| assert!(!d.render(Some(text)).is_empty()));
        }
    }
}

/// Pieces that the grammar is made of, to be strung together at random.
const PIECES: [&str; 60] = [
    "graph ",
    "@f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "->",
    ":",
    ",",
    "=",
    "..",
    "^",
    "-",
    "*",
    "+",
    "%x",
    "%0",
    "%1 = ",
    "add ",
    "constant ",
    "splat ",
    "weight ",
    "state ",
    "dim ",
    "guard ",
    "variant when ",
    "fails ",
    "return ",
    "fused",
    "cond",
    "bind_dim ",
    "slice ",
    "floordiv(",
    "min(",
    "bcast(",
    "eq(",
    "and(",
    "not(",
    "true",
    "nan",
    "inf",
    "f32",
    "i64",
    "bool",
    "n",
    "dense",
    "file",
    "loc ",
    "via ",
    "in ",
    "anonymous",
    "\"s\"",
    "0.5",
    "9223372036854775808",
    "0x1f",
    "\n",
];

/// 300 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|v| v.parse().ok());
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(given.unwrap_or(300)) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn graphs_read_back(g in arb_graph()) {
        let text = print_graph(&g);
        let again = parse_graph(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].render(Some(&text))));
        prop_assert_eq!(print_graph(&again), text);
        let (a, b) = (verify(&Module::single(g)).len(), verify(&Module::single(again)).len());
        prop_assert_eq!(a, b);
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        digest(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn pieces_never_panic(at in prop::collection::vec(0..PIECES.len(), 0..80)) {
        digest(&at.iter().map(|&i| PIECES[i]).collect::<String>());
    }

    #[test]
    fn damaged_fixtures_never_panic(which in any::<prop::sample::Index>(), cuts in prop::collection::vec((any::<prop::sample::Index>(), 0u8..6, 0..PIECES.len(), -3i64..3), 1..6)) {
        let mut text = which.get(fixtures()).clone().into_bytes();
        for (at, kind, piece, delta) in cuts {
            let i = at.index(text.len().max(1)).min(text.len().saturating_sub(1));
            match kind {
                0 => { text.truncate(i); }
                1 => { text.splice(i..i, PIECES[piece].bytes()); }
                2 if !text.is_empty() => { text.remove(i); }
                3 => { let end = (i + 12).min(text.len()); let part: Vec<u8> = text[i..end].to_vec(); text.splice(i..i, part); }
                // a digit becomes another number
                _ => if let Some(b) = text.iter().skip(i).position(|b| b.is_ascii_digit()) {
                    let number = match delta { -3 => "-1".into(), -2 => "4611686018427387904".into(), -1 => "0".into(), d => d.to_string() };
                    text.splice(i + b..=i + b, number.bytes());
                },
            }
        }
        digest(&String::from_utf8_lossy(&text));
    }
}

#[test]
fn repeated_brackets_do_not_overflow_the_stack() {
    for open in ["(", "[", "{", "floordiv(", "not(", "{ ^():", "dense<[", "graph @f(%x: f32["] {
        digest(&open.repeat(20_000));
        digest(&format!("graph @f(%x: f32[n]) -> () {{ %0 = constant {}", open.repeat(20_000)));
    }
}

#[test]
fn a_long_chain_of_broadcasts_is_refused_or_read() {
    let ins: Vec<String> = (0..3000).map(|i| format!("%x{i}: f32[s{i}]")).collect();
    let mut text = format!("graph @f({}) -> f32[1] {{\n", ins.join(", "));
    let mut shape = "s0".to_string();
    for i in 1..3000 {
        let (a, b) = (shape.clone(), format!("s{i}"));
        shape = if i < 20 { format!("bcast({a}, {b})") } else { "s0".into() };
        let from = if i == 1 { "x0".to_string() } else { format!("{}", i - 1) };
        text += &format!("  %{i} = add %{from}, %x{i} : f32[{shape}]\n");
    }
    digest(&text);
}
