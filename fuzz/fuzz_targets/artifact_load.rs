//! Bytes as an artifact's manifest, in a file whose checksums are right: an error, or something that binds or refuses to.
//! Before the manifest the input has the number of code images and the bytes of each (16 bits), and those of the weights
//! (24 bits); code and weights are zeros, and nothing is run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tgc_runtime::{Expr, Loader, Session, SessionOptions};

const CODE: usize = 64 << 10;
const PAGE: usize = 4096;

fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let (mut c, mut k) = (i as u32, 0);
            while k < 8 {
                c = if c & 1 == 1 { (c >> 1) ^ 0x82f6_3b78 } else { c >> 1 };
                k += 1;
            }
            table[i] = c;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |c, b| (c >> 8) ^ TABLE[((c ^ u32::from(*b)) & 0xff) as usize])
}

/// The file: header, section table, code, weights, manifest.
fn file(data: &[u8]) -> Option<Vec<u8>> {
    let (images, mut rest) = data.split_first()?;
    let images = usize::from(images % 4);
    let mut parts = Vec::new();
    let mut at = 32 + 32 * (images + 1);
    let weights;
    let mut lens = Vec::new();
    for _ in 0..images {
        let (len, after) = rest.split_first_chunk::<2>()?;
        lens.push(usize::from(u16::from_le_bytes(*len)));
        rest = after;
    }
    (weights, rest) = rest.split_first_chunk::<3>()?;
    let weights = u32::from_le_bytes([weights[0], weights[1], weights[2], 0]) as usize;
    at += if weights > 0 { 32 } else { 0 };
    for len in lens {
        let offset = at.next_multiple_of(CODE);
        parts.push((1u32, offset, len));
        at = offset + len;
    }
    if weights > 0 {
        let offset = at.next_multiple_of(PAGE);
        parts.push((2, offset, weights));
        at = offset + weights;
    }
    let offset = at.next_multiple_of(8);
    parts.push((0, offset, rest.len()));
    let mut out = vec![0; offset + rest.len()];
    out[offset..].copy_from_slice(rest);
    out[..8].copy_from_slice(b"\x7fTGCART\n");
    out[8..12].copy_from_slice(&2u32.to_le_bytes());
    out[12..16].copy_from_slice(&1u32.to_le_bytes());
    out[16..20].copy_from_slice(&(parts.len() as u32).to_le_bytes());
    let len = out.len() as u64;
    out[24..32].copy_from_slice(&len.to_le_bytes());
    let table = 32 + 32 * parts.len();
    for (row, (kind, offset, len)) in parts.into_iter().enumerate() {
        let row = 32 + 32 * row;
        let sum = if kind == 2 { 0 } else { crc32c(&out[offset..offset + len]) };
        out[row..row + 4].copy_from_slice(&kind.to_le_bytes());
        out[row + 4..row + 8].copy_from_slice(&sum.to_le_bytes());
        out[row + 8..row + 16].copy_from_slice(&(offset as u64).to_le_bytes());
        out[row + 16..row + 24].copy_from_slice(&(len as u64).to_le_bytes());
    }
    let sum = crc32c(&out[..table]);
    out[20..24].copy_from_slice(&sum.to_le_bytes());
    Some(out)
}

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = file(data) else { return };
    if let Ok(m) = (Loader { inspect: true, ..Loader::default() }).from_bytes(&bytes) {
        let _ = m.check_weights();
    }
    let Ok(model) = Loader::default().from_bytes(&bytes) else { return };
    for e in &model.manifest().entries {
        let options = SessionOptions { threads: Some(1), pool: None, mem_limit: Some(1 << 24) };
        let Ok(mut session) = Session::new(&model, &e.name, &options) else { continue };
        for size in [0, 1, 3, 65, 1 << 40] {
            let symbols: Vec<Option<i64>> =
                e.symbols.iter().map(|s| Some(size.max(s.lo).min(s.hi))).collect();
            let extent = |d: &Expr| d.eval(&symbols).ok().and_then(|v| usize::try_from(v).ok()).unwrap_or(1);
            let shapes: Vec<Vec<usize>> =
                e.inputs.iter().map(|p| p.dims.iter().map(extent).collect()).collect();
            let given: Vec<(&str, &[usize])> =
                e.inputs.iter().zip(&shapes).map(|(p, s)| (p.name.as_str(), &s[..])).collect();
            let _ = session.bind(&given);
        }
    }
});
