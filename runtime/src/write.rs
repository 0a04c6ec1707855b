//! Assembles an artifact: header, code images, weights, manifest. The same manifest, code and weights give the same bytes.
//! What must not be here: reading (load.rs) or the manifest's encoding (codec.rs).
//!
//! ```text
//! 0   magic [8]            16  number of sections u32     32  section table, 32 bytes each:
//! 8   format version u32   20  CRC-32C of the header           kind u32, CRC-32C u32, offset u64, length u64, 0 u64
//! 12  kernel ABI u32       24  length of the file u64
//! ```
//! The header's sum covers it all with the sum itself as 0. Sections follow in order of offset; bytes between them are 0.
//! Code begins at multiples of 64 KiB, weights at 4096, the manifest comes last: it holds the sums of the weights, which are
//! thus written in one pass.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::abi::ABI_VERSION;
use crate::checksum::{Crc, crc32c};
use crate::codec;
use crate::error::{Code, Error};
use crate::format::{Manifest, WeightDecl};
use crate::validate;

pub(crate) const MAGIC: [u8; 8] = *b"\x7fTGCART\n";
pub(crate) const FORMAT_VERSION: u32 = 2;
pub(crate) const HEADER: usize = 32;
pub(crate) const ROW: usize = 32;
pub(crate) const CODE_ALIGN: u64 = 64 << 10;
pub(crate) const WEIGHTS_ALIGN: u64 = 4096;
pub(crate) const WEIGHT_ALIGN: u64 = 64;
pub(crate) const BLOCK: usize = 1 << 20;
pub(crate) const MAX_SECTIONS: usize = 258;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// `manifest`, `code` or `weights`.
    pub kind: &'static str,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// Its CRC-32C; 0 for weights, whose sums are in the manifest.
    pub crc: u32,
}

pub(crate) const KINDS: [&str; 3] = ["manifest", "code", "weights"];

/// See `write`.
type WeightBytes<'a> = dyn FnMut(usize, &mut dyn Write) -> io::Result<()> + 'a;

/// The bytes of a weight as declared.
pub(crate) fn weight_len(w: &WeightDecl) -> Option<u64> {
    let count = w.dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
    count.checked_mul(w.dtype.size() as u64).filter(|n| *n <= i64::MAX as u64)
}

/// Writes an artifact to `out`, from its beginning. `code[i]` is the code of `manifest.images[i]`. `weights(i, w)` writes
/// all bytes of weight `i` to `w`, in order; it is called once for each weight, by number. Offsets and sums of the
/// weights are filled in; the rest of the manifest must be complete and consistent.
pub fn write<W: Write + Seek>(
    manifest: &Manifest,
    code: &[&[u8]],
    weights: &mut dyn FnMut(usize, &mut dyn Write) -> io::Result<()>,
    out: &mut W,
) -> Result<(), Error> {
    let mut manifest = manifest.clone();
    let weights_len = place_weights(&mut manifest)?;
    let code_lens: Vec<u64> = code.iter().map(|c| c.len() as u64).collect();
    // What the reader would refuse, as too deep nesting, is refused here, not after delivery.
    validate::manifest(&manifest, &code_lens, weights_len)
        .and_then(|()| codec::decode(&codec::encode(&manifest)))
        .map_err(inconsistent)?;
    assemble(&mut manifest, code, weights_len, weights, out).map_err(|e| {
        Error::new(
            Code::Io,
            format!("the artifact could not be written: {e}"),
            "free space, or write elsewhere",
        )
    })
}

/// A fault the reader would call damage, in the words of the writer.
fn inconsistent(error: Error) -> Error {
    let what = error.faults.iter().map(|f| f.message.trim_start_matches("the artifact is damaged: "));
    let what: Vec<&str> = what.collect();
    Error::new(Code::Usage, format!("the manifest is inconsistent: {}", what.join("; ")), "")
}

/// Gives every weight its offset; returns the length of the section.
fn place_weights(manifest: &mut Manifest) -> Result<u64, Error> {
    let mut at = 0u64;
    for w in &mut manifest.weights {
        let too_large =
            || Error::new(Code::Size, format!("weight `{}` is too large: {:?}", w.name, w.dims), "");
        let len = weight_len(w).ok_or_else(too_large)?;
        w.offset = at.next_multiple_of(WEIGHT_ALIGN);
        w.blocks = vec![0; len.div_ceil(BLOCK as u64) as usize];
        at = w.offset.checked_add(len).filter(|e| *e <= i64::MAX as u64).ok_or_else(too_large)?;
    }
    Ok(at)
}

fn assemble<W: Write + Seek>(
    manifest: &mut Manifest,
    code: &[&[u8]],
    weights_len: u64,
    weights: &mut WeightBytes<'_>,
    out: &mut W,
) -> io::Result<()> {
    let mut sections = Vec::new();
    let has_weights = weights_len > 0;
    let mut at = (HEADER + ROW * (code.len() + 1 + usize::from(has_weights))) as u64;
    out.seek(SeekFrom::Start(0))?;
    zeros(out, at)?;
    for image in code {
        let offset = at.next_multiple_of(CODE_ALIGN);
        zeros(out, offset - at)?;
        out.write_all(image)?;
        sections.push(Section { kind: "code", offset, len: image.len() as u64, crc: crc32c(image) });
        at = offset + image.len() as u64;
    }
    if has_weights {
        let offset = at.next_multiple_of(WEIGHTS_ALIGN);
        zeros(out, offset - at)?;
        let mut within = 0;
        for (i, w) in manifest.weights.iter_mut().enumerate() {
            zeros(out, w.offset - within)?;
            within = w.offset + stream_weight(i, w, weights, out)?;
        }
        sections.push(Section { kind: "weights", offset, len: weights_len, crc: 0 });
        at = offset + weights_len;
    }
    let body = codec::encode(manifest);
    let offset = at.next_multiple_of(8);
    zeros(out, offset - at)?;
    out.write_all(&body)?;
    sections.push(Section { kind: "manifest", offset, len: body.len() as u64, crc: crc32c(&body) });
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header(&sections, offset + body.len() as u64))?;
    out.flush()
}

fn stream_weight<W: Write>(
    i: usize,
    w: &mut WeightDecl,
    weights: &mut WeightBytes<'_>,
    out: &mut W,
) -> io::Result<u64> {
    let expected = weight_len(w).unwrap_or(0);
    let mut sums = Sums { out, crc: Crc::new(), filled: 0, total: 0, blocks: Vec::new() };
    weights(i, &mut sums)?;
    if sums.filled > 0 {
        sums.blocks.push(sums.crc.value());
    }
    if sums.total != expected {
        let text = format!("weight `{}` has {} bytes, its declaration says {expected}", w.name, sums.total);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    w.blocks = sums.blocks;
    Ok(expected)
}

/// Passes bytes on and sums them by block.
struct Sums<'a, W> {
    out: &'a mut W,
    crc: Crc,
    filled: usize,
    total: u64,
    blocks: Vec<u32>,
}

impl<W: Write> Write for Sums<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(BLOCK - self.filled);
        self.out.write_all(&bytes[..n])?;
        self.crc.update(&bytes[..n]);
        self.filled += n;
        self.total += n as u64;
        if self.filled == BLOCK {
            self.blocks.push(self.crc.value());
            self.crc = Crc::new();
            self.filled = 0;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn zeros<W: Write>(out: &mut W, mut n: u64) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while n > 0 {
        let part = n.min(ZEROS.len() as u64);
        out.write_all(&ZEROS[..part as usize])?;
        n -= part;
    }
    Ok(())
}

fn header(sections: &[Section], file_len: u64) -> Vec<u8> {
    let mut h = Vec::with_capacity(HEADER + ROW * sections.len());
    h.extend_from_slice(&MAGIC);
    h.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    h.extend_from_slice(&ABI_VERSION.to_le_bytes());
    h.extend_from_slice(&(sections.len() as u32).to_le_bytes());
    h.extend_from_slice(&[0; 4]);
    h.extend_from_slice(&file_len.to_le_bytes());
    for s in sections {
        let kind = KINDS.iter().take_while(|k| **k != s.kind).count() as u32;
        h.extend_from_slice(&kind.to_le_bytes());
        h.extend_from_slice(&s.crc.to_le_bytes());
        h.extend_from_slice(&s.offset.to_le_bytes());
        h.extend_from_slice(&s.len.to_le_bytes());
        h.extend_from_slice(&[0; 8]);
    }
    let crc = crc32c(&h);
    h[20..24].copy_from_slice(&crc.to_le_bytes());
    h
}

/// Writes an artifact to a file: to a temporary one in the same folder that then takes its place.
pub fn write_file(
    path: &Path,
    manifest: &Manifest,
    code: &[&[u8]],
    weights: &mut dyn FnMut(usize, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let refuse = |e: io::Error| {
        let text = format!("{} could not be written: {e}", path.display());
        Error::new(Code::Io, text, "check the folder and its permissions")
    };
    let name = path.file_name().ok_or_else(|| refuse(io::Error::from(io::ErrorKind::InvalidInput)))?;
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        let text = format!("{} is no regular file", path.display());
        return Err(Error::new(Code::Io, text, "an artifact is written to a file: give the name of one"));
    }
    let mut temporary = name.to_os_string();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary: PathBuf = path.with_file_name(temporary);
    let mut out = BufWriter::new(File::create(&temporary).map_err(refuse)?);
    let written =
        write(manifest, code, weights, &mut out).and_then(|()| fs::rename(&temporary, path).map_err(refuse));
    if written.is_err() {
        // The file is ours and incomplete; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}
