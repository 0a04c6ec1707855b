//! Damaged artifacts: whatever is cut or changed gives an error, never a panic, a hang or a wild allocation.

use tgc_runtime::*;

use crate::machine::*;

fn artifact() -> Vec<u8> {
    let mut m = simple();
    m.images.push(image("x86-64-v3", &["avx2"]));
    m.weights.push(WeightDecl {
        name: "w".into(),
        dtype: DType::I64,
        dims: vec![20],
        offset: 0,
        blocks: vec![],
    });
    build_with(&m, &[(0..20).collect()])
}

fn rows(bytes: &[u8]) -> Vec<(usize, u32, usize, usize)> {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let count = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    (0..count).map(|i| 32 + 32 * i).map(|r| (r, u32::from(bytes[r]), u64_at(r + 8), u64_at(r + 16))).collect()
}

/// Makes the checksums right again, so that damage reaches what is behind them.
fn reseal(bytes: &mut [u8]) {
    for (row, kind, offset, len) in rows(bytes) {
        if kind != 2 {
            let crc = crc32c(&bytes[offset..offset + len]);
            bytes[row + 4..row + 8].copy_from_slice(&crc.to_le_bytes());
        }
    }
    reseal_header(bytes);
}

fn reseal_header(bytes: &mut [u8]) {
    let count = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    let end = (32 + 32 * count.min(258)).min(bytes.len());
    bytes[20..24].fill(0);
    let crc = crc32c(&bytes[..end]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
}

/// Loads and, where that works, binds: never runs, since the code may be anything.
fn survives(bytes: &[u8]) -> bool {
    let loaded = Loader::default().from_bytes(bytes);
    let inspected = Loader { inspect: true, ..Loader::default() }.from_bytes(bytes);
    if let Ok(m) = &inspected {
        let _ = m.check_weights();
    }
    let Ok(model) = loaded else { return false };
    let options = SessionOptions { threads: Some(1), pool: None, mem_limit: Some(1 << 24) };
    for e in &model.manifest().entries {
        let Ok(mut s) = Session::new(&model, &e.name, &options) else { continue };
        for batch in [0usize, 1, 3, 65, 1 << 40] {
            let shapes: Vec<(&str, Vec<usize>)> =
                e.inputs.iter().map(|p| (p.name.as_str(), vec![batch, 2])).collect();
            let shapes: Vec<(&str, &[usize])> = shapes.iter().map(|(n, s)| (*n, &s[..])).collect();
            let _ = s.bind(&shapes);
        }
    }
    true
}

#[test]
fn resealing_is_right() {
    let whole = artifact();
    let mut again = whole.clone();
    reseal(&mut again);
    assert_eq!(whole, again);
    assert!(survives(&whole));
}

#[test]
fn every_cut_is_an_error() {
    let whole = artifact();
    let mut random = Random(1);
    let ends = [0, 1, 31, 32, 100, 65535, 65536, whole.len() - 1].into_iter();
    let cuts: Vec<usize> = ends.chain((0..300).map(|_| random.below(whole.len() as u64) as usize)).collect();
    for cut in cuts {
        assert!(!survives(&whole[..cut]), "cut at {cut}");
    }
    let mut longer = whole;
    longer.push(0);
    assert!(!survives(&longer));
}

#[test]
fn every_flip_outside_the_weights_is_an_error() {
    let whole = artifact();
    let weights = rows(&whole).into_iter().find(|r| r.1 == 2).unwrap();
    let mut random = Random(2);
    let near = (0..192).chain(65536..65536 + CODE.len()).chain(whole.len() - 400..whole.len());
    let far = (0..400).map(|_| random.below(whole.len() as u64) as usize);
    for at in near.chain(far).collect::<Vec<_>>() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let inside = (weights.2..weights.2 + weights.3).contains(&at);
        assert_eq!(survives(&bytes), inside, "flip at {at}");
        if inside {
            let e = load(&bytes).unwrap().check_weights().unwrap_err();
            assert_eq!(e.faults[0].code, Code::Damaged);
        }
    }
}

#[test]
fn damage_behind_right_checksums_never_panics() {
    let whole = artifact();
    let (_, _, offset, len) = rows(&whole).into_iter().find(|r| r.1 == 0).unwrap();
    let mut random = Random(3);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = offset + random.below(len as u64) as usize;
            bytes[at] = match random.below(4) {
                0 => bytes[at] ^ (1 << random.below(8)),
                1 => 0xff,
                2 => bytes[at].wrapping_add(1),
                _ => random.below(256) as u8,
            };
        }
        reseal(&mut bytes);
        if survives(&bytes) { accepted += 1 } else { refused += 1 }
    }
    assert!(refused > 1000 && accepted > 100, "{refused} refused, {accepted} accepted");
}

#[test]
fn damage_to_the_header_behind_a_right_checksum_never_panics() {
    let whole = artifact();
    let mut random = Random(4);
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        let at = 8 + random.below(32 + 32 * 4 - 8) as usize;
        bytes[at] = random.below(256) as u8;
        reseal_header(&mut bytes);
        survives(&bytes);
    }
}

/// The CPU time of this thread in seconds: other tests, and other programs, do not count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Loads and binds in a time that cannot be that of a square of the file's size.
fn is_quick(what: &str, m: &Manifest) {
    let began = cpu_seconds();
    survives(&build(m));
    let took = cpu_seconds() - began;
    assert!(took < 10.0, "{what}: {took} s");
}

#[test]
fn files_made_to_take_long_do_not() {
    let many = 16_000u32;
    let with = |change: &dyn Fn(&mut Manifest, &mut Program)| {
        let mut m = simple();
        let Ok(mut p) = m.entries[0].variants[0].body.clone() else { unreachable!() };
        change(&mut m, &mut p);
        m.entries[0].variants[0].body = Ok(p);
        m
    };
    let temps = |p: &mut Program| {
        let temp = |i| buffer(&format!("t{i}"), BufferKind::Temp, Expr::Const(8), i % 7, i % 7 + i % 3);
        p.buffers.extend((0..many).map(temp));
        let copy = Step::Copy { src: 0, dst: 2, bytes: Expr::Const(0) };
        p.segments[0].steps.extend(std::iter::repeat_n(copy, 9));
    };
    is_quick("buffers", &with(&|_, p| temps(p)));
    is_quick(
        "segments of nothing, and buffers",
        &with(&|_, p| {
            temps(p);
            p.segments.extend(std::iter::repeat_n(Segment::default(), 100_000));
        }),
    );
    is_quick(
        "states, and buffers that stand for them",
        &with(&|m, p| {
            let state = StateDecl { name: String::new(), dtype: DType::I64, dims: vec![1], init: None };
            m.states = vec![state; many as usize];
            m.entries[0].reads = (0..many).collect();
            m.entries[0].writes = (0..many).collect();
            let state = |i| buffer("s", BufferKind::State(i), Expr::Const(8), 0, 0);
            p.buffers.extend((0..many).map(state));
        }),
    );
    let named = |m: &mut Manifest| {
        m.entries[0].symbols.extend((0..many).map(|i| symbol(&format!("n{i}"), 0, 9)));
        let dims: Vec<Expr> = (1..=many).map(sym).collect();
        m.entries[0].inputs.extend(dims.iter().map(|d| port(&d.show(&[]), std::slice::from_ref(d))));
    };
    is_quick(
        "guards that fail, and symbols",
        &with(&|m, _| {
            named(m);
            let guard = Guard { pred: Pred::Le(sym(0), Expr::Const(-1)), message: "no".into() };
            m.entries[0].guards = vec![guard; many as usize];
        }),
    );
}

#[test]
fn an_entry_has_few_variants() {
    let mut m = simple();
    let variant = m.entries[0].variants[0].clone();
    m.entries[0].variants.extend(std::iter::repeat_n(variant, 256));
    let mut out = std::io::Cursor::new(Vec::new());
    let e = write(&m, &[&CODE], &mut |_, _| Ok(()), &mut out).unwrap_err();
    assert!(e.to_string().contains("has 257 variants"), "{e}");
}
