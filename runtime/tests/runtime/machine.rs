//! Hand-assembled kernels over i64 elements, for each architecture, and the parts every test artifact has. What must not be here: tests.

use std::io::Write;
use std::sync::Arc;

use tgc_runtime::*;

/// The numbers of the kernels.
pub const ADD1: u32 = 0;
pub const HEAD: u32 = 1;
pub const IOTA: u32 = 2;
pub const ADD: u32 = 3;
pub const DOUBLE: u32 = 4;

/// The least target of this architecture, a feature it needs, and an architecture that this is not.
#[cfg(target_arch = "x86_64")]
pub const TARGET: (&str, &str, &str) = ("x86-64", "sse2", "aarch64");
#[cfg(target_arch = "aarch64")]
pub const TARGET: (&str, &str, &str) = ("aarch64", "neon", "x86_64");

/// `add1(x, y; n)`: y = x + 1, fails with site 1 at a negative element. `head(x, y)`: y[0] = x[0]. `iota(y; start, n)`:
/// y[i] = start + i. `add(a, b, y; n)`. `double(x, y; n)`: y = x + x by way of scratch.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub const CODE: [u8; 181] = [
    // add1, at 0x0
    0x4c, 0x8b, 0x0f, 0x4c, 0x8b, 0x57, 0x08, 0x4c, 0x39, 0xc1, 0x7d, 0x15, 0x49, 0x8b, 0x04, 0xc9, 0x48, 0x85, 0xc0, 0x78,
    0x0f, 0x48, 0xff, 0xc0, 0x49, 0x89, 0x04, 0xca, 0x48, 0xff, 0xc1, 0xeb, 0xe6, 0x31, 0xc0, 0xc3, 0xb8, 0x01, 0x00, 0x00,
    0x00, 0xc3, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00,
    // head, at 0x30
    0x4c, 0x8b, 0x0f, 0x4c, 0x8b, 0x57, 0x08, 0x49, 0x8b, 0x01, 0x49, 0x89, 0x02, 0x31, 0xc0, 0xc3,
    // iota, at 0x40
    0x4c, 0x8b, 0x17, 0x4c, 0x8b, 0x1e, 0x4c, 0x39, 0xc1, 0x7d, 0x0d, 0x49, 0x8d, 0x04, 0x0b, 0x49, 0x89, 0x04, 0xca, 0x48,
    0xff, 0xc1, 0xeb, 0xee, 0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00,
    // add, at 0x60
    0x4c, 0x8b, 0x0f, 0x4c, 0x8b, 0x57, 0x08, 0x4c, 0x8b, 0x5f, 0x10, 0x4c, 0x39, 0xc1, 0x7d, 0x11, 0x49, 0x8b, 0x04, 0xc9,
    0x49, 0x03, 0x04, 0xca, 0x49, 0x89, 0x04, 0xcb, 0x48, 0xff, 0xc1, 0xeb, 0xea, 0x31, 0xc0, 0xc3, 0x66, 0x66, 0x2e, 0x0f,
    0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
    // scratch, at 0x90
    0x4c, 0x8b, 0x0f, 0x4c, 0x8b, 0x57, 0x08, 0x4c, 0x39, 0xc1, 0x7d, 0x16, 0x49, 0x8b, 0x04, 0xc9, 0x48, 0x89, 0x02, 0x48,
    0x8b, 0x02, 0x48, 0x01, 0xc0, 0x49, 0x89, 0x04, 0xca, 0x48, 0xff, 0xc1, 0xeb, 0xe5, 0x31, 0xc0, 0xc3,
];

#[cfg(target_arch = "x86_64")]
const OFFSETS: [u64; 5] = [0, 0x30, 0x40, 0x60, 0x90];

#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
const WORDS: [u32; 52] = [
    // add1, at 0x0
    0xa940_1805, 0xeb04_007f, 0x5400_00ea, 0xf863_78a7, 0xb7f8_00e7, 0x9100_04e7, 0xf823_78c7, 0x9100_0463, 0x17ff_fff9,
    0x5280_0000, 0xd65f_03c0, 0x5280_0020, 0xd65f_03c0,
    // head, at 0x34
    0xa940_1805, 0xf940_00a7, 0xf900_00c7, 0x5280_0000, 0xd65f_03c0,
    // iota, at 0x48
    0xf940_0006, 0xf940_0025, 0xeb04_007f, 0x5400_00aa, 0x8b03_00a7, 0xf823_78c7, 0x9100_0463, 0x17ff_fffb, 0x5280_0000,
    0xd65f_03c0,
    // add, at 0x70
    0xa940_1805, 0xf940_0808, 0xeb04_007f, 0x5400_00ea, 0xf863_78a7, 0xf863_78c9, 0x8b09_00e7, 0xf823_7907, 0x9100_0463,
    0x17ff_fff9, 0x5280_0000, 0xd65f_03c0,
    // scratch, at 0xa0
    0xa940_1805, 0xeb04_007f, 0x5400_010a, 0xf863_78a7, 0xf900_0047, 0xf940_0047, 0x8b07_00e7, 0xf823_78c7, 0x9100_0463,
    0x17ff_fff8, 0x5280_0000, 0xd65f_03c0,
];

/// The same kernels.
#[cfg(target_arch = "aarch64")]
pub const CODE: [u8; 4 * WORDS.len()] = {
    let (mut bytes, mut at) = ([0; 4 * WORDS.len()], 0);
    while at < bytes.len() {
        bytes[at] = WORDS[at / 4].to_le_bytes()[at % 4];
        at += 1;
    }
    bytes
};

#[cfg(target_arch = "aarch64")]
const OFFSETS: [u64; 5] = [0, 0x34, 0x48, 0x70, 0xa0];

pub fn sym(i: u32) -> Expr {
    Expr::Sym(i)
}

pub fn mul(factors: &[Expr]) -> Expr {
    Expr::Mul(factors.to_vec())
}

fn decl(name: &str, reads: &[&str], dims: u32) -> KernelDecl {
    let arg = |name: &str, role| ArgDecl { name: name.into(), dtype: DType::I64, role };
    let mut args: Vec<ArgDecl> = reads.iter().map(|r| arg(r, Role::In)).collect();
    args.push(arg("y", Role::Out));
    // `n`, the number of elements, is the last dim.
    let n = if dims == 0 { Expr::Const(1) } else { sym(dims - 1) };
    let bytes = mul(&[Expr::Const(8 * args.len() as i64), n.clone()]);
    KernelDecl { name: name.into(), args, dims, flops: n, bytes, text_hash: [7; 16] }
}

pub fn image(target: &str, features: &[&str]) -> Image {
    let tiles = [sym(0), Expr::Const(1), sym(1), sym(0), sym(0)];
    let kernels = tiles.into_iter().enumerate().map(|(i, tiles)| ImageKernel {
        kernel: i as u32,
        offset: OFFSETS[i],
        tiles,
        grain: Expr::Const(1),
        scratch: Expr::Const(if i as u32 == DOUBLE { 8 } else { 0 }),
    });
    Image {
        target: target.into(),
        arch: std::env::consts::ARCH.into(),
        features: features.iter().map(|f| f.to_string()).collect(),
        kernels: kernels.collect(),
    }
}

/// A manifest with the kernels, one image, and this entry.
pub fn manifest(entry: Entry) -> Manifest {
    Manifest {
        producer: "test".into(),
        options: String::new(),
        verification: "not verified".into(),
        entries: vec![entry],
        kernels: vec![
            decl("add1", &["x"], 1),
            decl("head", &["x"], 0),
            decl("iota", &[], 2),
            decl("add", &["a", "b"], 1),
            decl("double", &["x"], 1),
        ],
        images: vec![image(TARGET.0, &[TARGET.1])],
        ..Manifest::default()
    }
}

pub fn symbol(name: &str, lo: i64, hi: i64) -> Symbol {
    Symbol { name: name.into(), lo, hi, named: true }
}

pub fn port(name: &str, dims: &[Expr]) -> Port {
    Port { name: name.into(), dtype: DType::I64, dims: dims.to_vec(), default: None }
}

pub fn buffer(name: &str, kind: BufferKind, size: Expr, first: u32, last: u32) -> Buffer {
    Buffer { name: name.into(), dtype: DType::I64, kind, size, align: 64, alias: None, first, last }
}

pub fn launch(kernel: u32, args: &[u32], dims: &[Expr]) -> Step {
    let site = Site {
        node: "n1".into(),
        op: "AddOne".into(),
        source: "model.rs:3".into(),
        message: "a negative element".into(),
    };
    Step::Launch {
        kernel,
        args: args.to_vec(),
        dims: dims.to_vec(),
        sites: vec![site],
        label: "node `n1`".into(),
    }
}

pub fn program(buffers: Vec<Buffer>, steps: Vec<Step>) -> Vec<Variant> {
    let program = Program { buffers, segments: vec![Segment { binds: vec![], steps }] };
    vec![Variant { when: None, body: Ok(program) }]
}

/// `forward(x [batch, 2]) -> y`: y = 2 * (x + 1).
pub fn simple() -> Manifest {
    let dims = [sym(0), Expr::Const(2)];
    let (n, bytes) = (mul(&dims), mul(&[sym(0), Expr::Const(16)]));
    let buffers = vec![
        buffer("x", BufferKind::Input(0), bytes.clone(), 0, 0),
        buffer("t", BufferKind::Temp, bytes.clone(), 0, 1),
        buffer("y", BufferKind::Output(0), bytes, 1, 1),
    ];
    let steps = vec![launch(ADD1, &[0, 1], std::slice::from_ref(&n)), launch(DOUBLE, &[1, 2], &[n])];
    manifest(Entry {
        name: "forward".into(),
        symbols: vec![symbol("batch", 0, 64)],
        inputs: vec![port("x", &dims)],
        outputs: vec![port("y", &dims)],
        variants: program(buffers, steps),
        ..Entry::default()
    })
}

/// `forward(x [k]) -> y [n], z [k]` with n = x[0] + 1: y[i] = 2 * (10 + i), z = x + 1 kept across the segments.
pub fn by_data() -> Manifest {
    let eight = |s| mul(&[sym(s), Expr::Const(8)]);
    let buffers = vec![
        buffer("x", BufferKind::Input(0), eight(0), 0, 1),
        buffer("len", BufferKind::Temp, Expr::Const(8), 0, 0),
        buffer("keep", BufferKind::Temp, eight(0), 1, 4),
        buffer("t", BufferKind::Temp, eight(1), 2, 3),
        buffer("y", BufferKind::Output(0), eight(1), 3, 3),
        buffer("z", BufferKind::Output(1), eight(0), 4, 4),
    ];
    let first = vec![launch(ADD1, &[0, 2], &[sym(0)]), launch(HEAD, &[2, 1], &[])];
    let mut buffers = buffers;
    (buffers[1].first, buffers[1].last, buffers[2].first) = (1, 1, 0);
    let second = vec![
        launch(IOTA, &[3], &[Expr::Const(10), sym(1)]),
        launch(ADD, &[3, 3, 4], &[sym(1)]),
        Step::Copy { src: 2, dst: 5, bytes: eight(0) },
    ];
    let segments = vec![
        Segment { binds: vec![], steps: first },
        Segment { binds: vec![Bind { symbol: 1, buffer: 1 }], steps: second },
    ];
    manifest(Entry {
        name: "forward".into(),
        symbols: vec![symbol("k", 1, 100), symbol("n", 0, 100_000)],
        inputs: vec![port("x", &[sym(0)])],
        outputs: vec![port("y", &[sym(1)]), port("z", &[sym(0)])],
        variants: vec![Variant { when: None, body: Ok(Program { buffers, segments }) }],
        ..Entry::default()
    })
}

pub fn weight(name: &str, dims: &[u64]) -> WeightDecl {
    let dtype = DType::I64;
    WeightDecl { name: name.into(), dtype, dims: dims.to_vec(), offset: 0, blocks: vec![] }
}

/// `forward(a [n], optional) -> y`: y = a + w. With the values of its weights.
pub fn with_default() -> (Manifest, Vec<Vec<i64>>) {
    let bytes = mul(&[sym(0), Expr::Const(8)]);
    let buffers = vec![
        buffer("a", BufferKind::Input(0), bytes.clone(), 0, 0),
        buffer("w", BufferKind::Weight(1), Expr::Const(24), 0, 0),
        buffer("y", BufferKind::Output(0), bytes, 0, 0),
    ];
    let mut a = port("a", &[sym(0)]);
    a.default = Some(0);
    let mut m = manifest(Entry {
        name: "forward".into(),
        symbols: vec![symbol("n", 1, 3)],
        inputs: vec![a],
        outputs: vec![port("y", &[sym(0)])],
        variants: program(buffers, vec![launch(ADD, &[0, 1, 2], &[sym(0)])]),
        ..Entry::default()
    });
    m.weights = vec![weight("a.default", &[2]), weight("w", &[3])];
    (m, vec![vec![1, 2], vec![10, 20, 30]])
}

pub fn bytes_of(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn build_with(m: &Manifest, weights: &[Vec<i64>]) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let code: Vec<&[u8]> = m.images.iter().map(|_| &CODE[..]).collect();
    write(m, &code, &mut |i, w: &mut dyn Write| w.write_all(&bytes_of(&weights[i])), &mut out).unwrap();
    out.into_inner()
}

pub fn build(m: &Manifest) -> Vec<u8> {
    build_with(m, &[])
}

pub fn load(bytes: &[u8]) -> Result<Arc<Model>, Error> {
    Loader::default().from_bytes(bytes)
}

pub fn tensor(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::new(DType::I64, shape, &bytes_of(values)).unwrap()
}

pub fn values(t: &Tensor) -> Vec<i64> {
    t.to_f64().into_iter().map(|v| v as i64).collect()
}

/// CRC-32C bit by bit, not the runtime's own.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut c = !0u32;
    for b in bytes {
        c ^= u32::from(*b);
        for _ in 0..8 {
            c = if c & 1 == 1 { (c >> 1) ^ 0x82F6_3B78 } else { c >> 1 };
        }
    }
    !c
}

/// A small generator of random numbers with a fixed seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
}
