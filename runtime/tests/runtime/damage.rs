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
    let near = (0..192).chain(65536..65536 + 181).chain(whole.len() - 400..whole.len());
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
