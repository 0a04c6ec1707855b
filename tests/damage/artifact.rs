//! Damaged artifacts: damage that checksums show, and damage behind checksums that are right again. What loads is bound at
//! several sizes. What still has its own manifest and code is run; with its own weights it must compute what it did.

use crate::mutate::{self, Damaged};
use crate::rng::Rng;
use crate::verdict::{Verdict, finding};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tgc::runtime::{
    Code, DType, Error, Loader, Manifest, Model, Pool, Session, SessionOptions, Tensor, write,
};

/// CRC-32C bit by bit: the format's sum, from its definition.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut c, b| {
        c ^= u32::from(*b);
        for _ in 0..8 {
            c = if c & 1 == 1 { (c >> 1) ^ 0x82f6_3b78 } else { c >> 1 };
        }
        c
    })
}

/// A row of the section table.
struct Row {
    at: usize,
    kind: u32,
    range: Range<usize>,
}

const HEADER: usize = 32;
const ROW: usize = 32;

/// A whole artifact and what is known of it.
pub struct Artifact {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    manifest: Manifest,
    /// What it computes, for each entry.
    results: Vec<Vec<(String, Vec<u8>)>>,
    pool: Arc<Pool>,
}

/// What has been changed.
#[derive(Clone, Copy, PartialEq)]
enum Seal {
    /// Bytes; the sums are those of the whole file.
    Broken,
    /// The manifest or the header, with right sums.
    Manifest,
    /// Code, with right sums: loaded, never run.
    Code,
    /// Weights, with right sums.
    Weights,
}

fn rows(bytes: &[u8]) -> Vec<Row> {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let count = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    (0..count)
        .map(|i| {
            let at = HEADER + ROW * i;
            let (offset, len) = (u64_at(at + 8), u64_at(at + 16));
            Row { at, kind: u32::from(bytes[at]), range: offset..offset + len }
        })
        .collect()
}

impl Artifact {
    pub fn read(path: &Path) -> Artifact {
        let bytes = std::fs::read(path).unwrap();
        let model = Loader::default().from_bytes(&bytes).unwrap();
        let pool = Arc::new(Pool::new(1).unwrap());
        let manifest = model.manifest().clone();
        let results = manifest.entries.iter().map(|e| run(&model, &e.name, 3, &pool).unwrap()).collect();
        Artifact { rows: rows(&bytes), manifest, results, bytes, pool }
    }

    fn row(&self, kind: u32) -> Option<&Row> {
        self.rows.iter().find(|r| r.kind == kind)
    }

    /// Header, table and manifest: where few bytes mean much.
    fn focus(&self) -> Vec<Range<usize>> {
        let table = 0..HEADER + ROW * self.rows.len();
        // the manifest is larger than the table by far, and would get all
        let mut all = vec![table; 8];
        all.extend(self.row(0).map(|r| r.range.clone()));
        all
    }

    fn damage(&self, rng: &mut Rng) -> (Damaged, Seal) {
        match rng.below(12) {
            0..=3 => (mutate::bytes(rng, &self.bytes, &self.focus()), Seal::Broken),
            4..=7 => (self.other_manifest(rng), Seal::Manifest),
            8 => (self.other_header(rng), Seal::Manifest),
            9 | 10 => (self.other_weights(rng), Seal::Weights),
            _ => (self.other_code(rng), Seal::Code),
        }
    }

    /// The manifest is the last section, so it may become longer or shorter.
    fn other_manifest(&self, rng: &mut Rng) -> Damaged {
        let row = self.row(0).unwrap();
        let mut body = self.bytes[row.range.clone()].to_vec();
        let what: Vec<String> = (0..1 + rng.below(3)).map(|_| mutate::change(rng, &mut body, &[])).collect();
        let mut bytes = self.bytes[..row.range.start].to_vec();
        bytes.extend_from_slice(&body);
        bytes[row.at + 4..row.at + 8].copy_from_slice(&crc32c(&body).to_le_bytes());
        bytes[row.at + 16..row.at + 24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let len = bytes.len() as u64;
        bytes[24..32].copy_from_slice(&len.to_le_bytes());
        self.seal_header(&mut bytes);
        Damaged { bytes, what: format!("sealed manifest: {}", what.join(", ")) }
    }

    fn other_header(&self, rng: &mut Rng) -> Damaged {
        let mut bytes = self.bytes.clone();
        let fields = (HEADER + ROW * self.rows.len()) / 4;
        let mut what = Vec::new();
        for _ in 0..1 + rng.below(2) {
            let width = if rng.coin() { 4 } else { 8 };
            let at = (4 * rng.below(fields)).min(4 * fields - width);
            let mut old = [0; 8];
            old[..width].copy_from_slice(&bytes[at..at + width]);
            let new = mutate::integer(rng, u64::from_le_bytes(old));
            bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
            what.push(format!("{width} bytes at {at} become {new:#x}"));
        }
        self.seal_header(&mut bytes);
        Damaged { bytes, what: format!("sealed header: {}", what.join(", ")) }
    }

    fn seal_header(&self, bytes: &mut [u8]) {
        let end = HEADER + ROW * self.rows.len();
        bytes[20..24].fill(0);
        let sum = crc32c(&bytes[..end]);
        bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    }

    fn code(&self) -> Vec<Vec<u8>> {
        self.rows.iter().filter(|r| r.kind == 1).map(|r| self.bytes[r.range.clone()].to_vec()).collect()
    }

    fn weights(&self) -> Vec<u8> {
        self.row(2).map_or(Vec::new(), |r| self.bytes[r.range.clone()].to_vec())
    }

    /// The file again, written by the format's own writer, with all sums.
    fn assemble(&self, code: &[Vec<u8>], weights: &[u8]) -> Vec<u8> {
        let code: Vec<&[u8]> = code.iter().map(Vec::as_slice).collect();
        let mut each = |i: usize, out: &mut dyn std::io::Write| {
            let w = &self.manifest.weights[i];
            let len = w.dims.iter().product::<u64>() as usize * w.dtype.size();
            out.write_all(&weights[w.offset as usize..][..len])
        };
        let mut file = std::io::Cursor::new(Vec::new());
        write(&self.manifest, &code, &mut each, &mut file).unwrap();
        file.into_inner()
    }

    fn other_code(&self, rng: &mut Rng) -> Damaged {
        let mut code = self.code();
        let image = rng.below(code.len());
        let what = mutate::change(rng, &mut code[image], &[]);
        if code[image].is_empty() {
            code[image].push(0);
        }
        let kernels = self.manifest.images[image].kernels.iter().map(|k| k.offset as usize + 1).max();
        let least = kernels.unwrap_or(1);
        if code[image].len() < least {
            code[image].resize(least, 0);
        }
        Damaged { bytes: self.assemble(&code, &self.weights()), what: format!("sealed code {image}: {what}") }
    }

    fn other_weights(&self, rng: &mut Rng) -> Damaged {
        let mut weights = self.weights();
        let len = weights.len();
        if len == 0 {
            return self.other_header(rng);
        }
        let mut what = Vec::new();
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(len);
            weights[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff, weights[at] ^ 1]);
            what.push(format!("{at}"));
        }
        let what = format!("sealed weights at {}", what.join(", "));
        Damaged { bytes: self.assemble(&self.code(), &weights), what }
    }

    /// Damages the file with this number's damage, writes it to `path` and looks what becomes of it.
    pub fn case(&self, rng: &mut Rng, path: &Path) -> (String, Result<Verdict, String>) {
        let (damaged, seal) = self.damage(rng);
        std::fs::write(path, &damaged.bytes).unwrap();
        (damaged.what, self.judge(path, &damaged.bytes, seal))
    }

    fn judge(&self, path: &Path, bytes: &[u8], seal: Seal) -> Result<Verdict, String> {
        let inspected = Loader { inspect: true, ..Loader::default() }.open(path);
        let whole_weights = match &inspected {
            Ok(m) => m.check_weights().map_err(|e| refusal(&e)).is_ok(),
            Err(_) => false,
        };
        let model = match Loader::default().open(path) {
            Ok(m) => m,
            Err(e) => return Ok(Verdict::Refused(load_refusal(&e)?)),
        };
        if inspected.is_err() {
            return finding("it loads, but cannot be inspected");
        }
        if seal == Seal::Broken && *model.manifest() != self.manifest {
            return finding("a changed manifest was taken for the whole one");
        }
        // sums of weights say nothing to kernels
        let mut found = model.manifest().clone();
        found
            .weights
            .iter_mut()
            .zip(&self.manifest.weights)
            .for_each(|(f, w)| f.blocks.clone_from(&w.blocks));
        let same = found == self.manifest;
        let kept = |r: &Row| bytes.get(r.range.clone()) == Some(&self.bytes[r.range.clone()]);
        let own = |kind: u32| self.rows.iter().filter(|r| r.kind == kind).all(kept);
        if seal == Seal::Broken && whole_weights != own(2) {
            return finding("the sums of the weights say something else than the weights");
        }
        let bound = self.bind(&model)?;
        if !same || seal == Seal::Code || !own(1) {
            return Ok(Verdict::Accepted(if bound { "loaded and bound" } else { "loaded" }));
        }
        for (e, want) in self.manifest.entries.iter().zip(&self.results) {
            match run(&model, &e.name, 3, &self.pool) {
                Ok(got) if own(2) && got != *want => {
                    return finding("the whole file computes something else");
                }
                Err(e) if own(2) => return finding(&format!("the whole file does not run: {e}")),
                Ok(_) => {}
                Err(e) => _ = refusal(&e)?,
            }
        }
        Ok(Verdict::Accepted("loaded and run"))
    }

    /// Binds every entry at several sizes; whether one bound.
    fn bind(&self, model: &Arc<Model>) -> Result<bool, String> {
        let mut bound = false;
        let entries = &model.manifest().entries;
        for e in entries {
            let options =
                SessionOptions { threads: None, pool: Some(self.pool.clone()), mem_limit: Some(256 << 20) };
            let mut s = match Session::new(model, &e.name, &options) {
                Ok(s) => s,
                Err(error) => {
                    refusal(&error)?;
                    continue;
                }
            };
            for size in [3, 1, 0, 64, 1000, 1 << 40] {
                let shapes = shapes(model, &e.name, size);
                let given: Vec<(&str, &[usize])> = shapes.iter().map(|(n, s)| (n.as_str(), &s[..])).collect();
                match s.bind(&given) {
                    Ok(()) => bound = true,
                    Err(error) => _ = refusal(&error)?,
                }
            }
        }
        Ok(bound)
    }
}

/// The code of an error, which must say what is wrong.
fn refusal(e: &Error) -> Result<String, String> {
    match e.faults.first() {
        None => Err("an error without a fault".into()),
        Some(_) if e.faults.iter().any(|f| f.message.is_empty()) => {
            Err(format!("a fault without words: {e:?}"))
        }
        Some(f) => Ok(f.code.to_string()),
    }
}

/// Of an error of loading; it must be about the file, not about the caller or the machine.
fn load_refusal(e: &Error) -> Result<String, String> {
    let code = refusal(e)?;
    let fits = |c: Code| {
        matches!(
            c,
            Code::NotArtifact | Code::Version | Code::Damaged | Code::NoImage | Code::NotBuilt | Code::Io
        )
    };
    match e.faults.iter().find(|f| !fits(f.code)) {
        None => Ok(code),
        Some(f) => Err(format!("loading ends with {}: {}", f.code, f.message)),
    }
}

/// A shape for every input, all symbols being `size`, or the least or the greatest value allowed.
fn shapes(model: &Arc<Model>, entry: &str, size: i64) -> Vec<(String, Vec<usize>)> {
    let Some(e) = model.manifest().entries.iter().find(|e| e.name == entry) else { return Vec::new() };
    let symbols: Vec<Option<i64>> = e.symbols.iter().map(|s| Some(size.max(s.lo).min(s.hi))).collect();
    let extent =
        |d: &tgc::runtime::Expr| d.eval(&symbols).ok().and_then(|v| usize::try_from(v).ok()).unwrap_or(1);
    e.inputs.iter().map(|p| (p.name.clone(), p.dims.iter().map(extent).collect())).collect()
}

/// The outputs for inputs made from the positions of elements.
fn run(
    model: &Arc<Model>,
    entry: &str,
    size: i64,
    pool: &Arc<Pool>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let options = SessionOptions { pool: Some(pool.clone()), ..SessionOptions::default() };
    let mut session = Session::new(model, entry, &options)?;
    let mut given = Vec::new();
    for (p, (name, shape)) in session.entry().inputs.iter().zip(shapes(model, entry, size)) {
        let mut t = Tensor::zeros(p.dtype, &shape)?;
        if p.dtype == DType::F32 {
            let elements = t.bytes_mut().chunks_exact_mut(4).enumerate();
            elements.for_each(|(i, e)| e.copy_from_slice(&((i % 7) as f32 * 0.25 - 0.5).to_le_bytes()));
        }
        given.push((name, t));
    }
    let given: Vec<(&str, &Tensor)> = given.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let out = session.run_owned(&given)?;
    Ok(out.into_iter().map(|(n, t)| (n, t.bytes().to_vec())).collect())
}
