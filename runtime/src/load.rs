//! Opens an artifact: maps it, checks everything but the weights, picks the code image for this CPU and maps it executable.
//! What must not be here: binding and running (session.rs, exec.rs), or the rules of a manifest (validate.rs).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut, MmapOptions};

use crate::abi::{ABI_VERSION, KernelFn, Ptr};
use crate::checksum::crc32c;
use crate::codec;
use crate::error::{Code, Error, Fault};
use crate::features::host_features;
use crate::format::{Entry, Image, Manifest, Step};
use crate::validate;
use crate::write::*;

/// How to open an artifact. The default is right for running it.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    /// The CPU features to choose an image by, if not those of this CPU.
    pub features: Option<Vec<String>>,
    /// Copy the code to anonymous memory even where it can be mapped from the file.
    pub copy_code: bool,
    /// Only read and check it: no image needs to fit, and no session can be made.
    pub inspect: bool,
}

/// An opened artifact, shared by its sessions. The file must not be changed while it is open.
pub struct Model {
    manifest: Manifest,
    sections: Vec<Section>,
    file: Mmap,
    weights_at: usize,
    image: usize,
    code: Option<Mmap>,
    /// For each declared kernel its place in the chosen image's list.
    by_kernel: Vec<usize>,
}

impl Loader {
    /// Opens a file.
    pub fn open(&self, path: &Path) -> Result<Arc<Model>, Error> {
        let refuse = |e: io::Error| {
            let text = format!("{} cannot be read: {e}", path.display());
            Error::new(Code::Io, text, "check the path and its permissions")
        };
        let file = File::open(path).map_err(refuse)?;
        let meta = file.metadata().map_err(refuse)?;
        if !meta.is_file() {
            return Err(refuse(io::Error::other("not a regular file")));
        }
        if meta.len() < HEADER as u64 {
            return Err(not_artifact(&path.display().to_string()));
        }
        // SAFETY: the mapping is private and read-only; that nobody changes the file meanwhile is part of `Model`'s contract.
        let map = unsafe { MmapOptions::new().map_copy_read_only(&file) }.map_err(refuse)?;
        self.load(map, Some(&file), &path.display().to_string())
    }

    /// Opens an artifact in memory; the bytes are copied.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Arc<Model>, Error> {
        if bytes.len() < HEADER {
            return Err(not_artifact("the bytes given"));
        }
        let refuse = |e: io::Error| Error::new(Code::Memory, format!("no memory for the artifact: {e}"), "");
        let mut map = MmapMut::map_anon(bytes.len()).map_err(refuse)?;
        map.copy_from_slice(bytes);
        self.load(map.make_read_only().map_err(refuse)?, None, "the bytes given")
    }

    fn load(&self, map: Mmap, file: Option<&File>, name: &str) -> Result<Arc<Model>, Error> {
        let sections = read_header(&map, name)?;
        let (manifest, weights_at) = read_manifest(&map, &sections)?;
        let mut model = Model {
            manifest,
            sections,
            file: map,
            weights_at,
            image: usize::MAX,
            code: None,
            by_kernel: Vec::new(),
        };
        if !self.inspect {
            refuse_unbuilt(&model.manifest)?;
            model.image = self.choose(&model.manifest.images)?;
            model.code = Some(self.map_code(&model, file)?);
            let kernels = &model.manifest.images[model.image].kernels;
            model.by_kernel = vec![0; kernels.len()];
            for (place, k) in kernels.iter().enumerate() {
                model.by_kernel[k.kernel as usize] = place;
            }
        }
        Ok(Arc::new(model))
    }

    /// The first image whose features are all there.
    fn choose(&self, images: &[Image]) -> Result<usize, Error> {
        let have: Vec<String> = match &self.features {
            Some(features) => features.clone(),
            None => host_features().iter().map(|f| f.to_string()).collect(),
        };
        let mut reasons = Vec::new();
        for (i, image) in images.iter().enumerate() {
            if image.arch != std::env::consts::ARCH {
                reasons.push(format!("{} is for {}", image.target, image.arch));
                continue;
            }
            let lacking: Vec<&str> =
                image.features.iter().filter(|f| !have.contains(f)).map(String::as_str).collect();
            if lacking.is_empty() {
                return Ok(i);
            }
            reasons.push(format!("{} needs {}", image.target, lacking.join(", ")));
        }
        if reasons.is_empty() {
            reasons.push("it has no code at all".into());
        }
        Err(Error::new(
            Code::NoImage,
            format!(
                "no code in the artifact runs on this {} CPU, which lacks what each image needs: {}",
                std::env::consts::ARCH,
                reasons.join("; ")
            ),
            match std::env::consts::ARCH {
                "aarch64" => "build it with --target aarch64, which every such CPU has, or with several",
                _ => "build it with a --target that this machine has, such as x86-64-v3, or with several",
            },
        ))
    }

    fn map_code(&self, model: &Model, file: Option<&File>) -> Result<Mmap, Error> {
        let mut codes = model.sections.iter().filter(|s| s.kind == "code");
        let Some(section) = codes.nth(model.image) else {
            return Err(Error::damaged("an image has no code section"));
        };
        let len = section.len as usize;
        let from_file = match file {
            Some(file) if !self.copy_code => {
                let mut options = MmapOptions::new();
                options.offset(section.offset).len(len);
                // SAFETY: as for the whole file above; the range lies inside it (checked with the header).
                unsafe { options.map_exec(file) }.map_err(|e| e.to_string())
            }
            _ => Err("not asked for".to_string()),
        };
        let why_not_file = match from_file {
            Ok(code) => return Ok(code),
            Err(e) => e,
        };
        let copy = MmapMut::map_anon(len).and_then(|mut memory| {
            memory.copy_from_slice(&model.file[section.offset as usize..][..len]);
            make_fetchable(&memory);
            memory.make_exec()
        });
        copy.map_err(|why_not_copy| {
            Error::new(
                Code::CodeMap,
                format!(
                    "the system refuses to run the artifact's code: mapped from the file: {why_not_file}; \
                     copied to memory: {why_not_copy}"
                ),
                "put the file on a file system mounted without `noexec`, or allow executable memory",
            )
        })
    }
}

/// Lets instruction fetches see code that was written to memory: where data and instructions have caches of their own, the
/// former's lines are written back and the latter's dropped, before the memory becomes executable.
#[cfg(target_arch = "aarch64")]
fn make_fetchable(code: &[u8]) {
    use std::arch::asm;
    let sizes: usize;
    // SAFETY: reads a register that programs may read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags)) };
    let lines = |field: u32| {
        let size = 4usize << (sizes >> field & 15);
        let (first, end) = (code.as_ptr().addr() & !(size - 1), code.as_ptr().addr() + code.len());
        (first..end).step_by(size)
    };
    // SAFETY: the addresses lie in the mapping of `code`, and no instruction changes what is in memory.
    unsafe {
        lines(16).for_each(|at| asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags)));
        asm!("dsb ish", options(nostack, preserves_flags));
        lines(0).for_each(|at| asm!("ic ivau, {}", in(reg) at, options(nostack, preserves_flags)));
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "aarch64"))]
fn make_fetchable(_: &[u8]) {}

fn not_artifact(name: &str) -> Error {
    Error::new(
        Code::NotArtifact,
        format!("{name} is not a tgc artifact"),
        "give a file written by `tgc build MODEL -o FILE`",
    )
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    let mut v = [0; 4];
    v.copy_from_slice(&b[at..at + 4]);
    u32::from_le_bytes(v)
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    let mut v = [0; 8];
    v.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(v)
}

/// Checks the header and the bounds of all sections.
fn read_header(file: &[u8], name: &str) -> Result<Vec<Section>, Error> {
    if file[..8] != MAGIC {
        return Err(not_artifact(name));
    }
    let (format, abi) = (u32_at(file, 8), u32_at(file, 12));
    if format != FORMAT_VERSION || abi != ABI_VERSION {
        let found = format!("format {format}, kernel interface {abi}");
        let text = format!(
            "{name} has {found}; this runtime reads format {FORMAT_VERSION}, kernel interface {ABI_VERSION}"
        );
        return Err(Error::new(Code::Version, text, "use the tgc and tgc-run of one release"));
    }
    let count = u32_at(file, 16) as usize;
    let table_end = HEADER + ROW * count.min(MAX_SECTIONS);
    if count > MAX_SECTIONS || table_end > file.len() {
        return Err(Error::damaged(format_args!("{name} says it has {count} sections")));
    }
    let len = u64_at(file, 24);
    if len != file.len() as u64 {
        return Err(Error::damaged(format_args!("{name} has {} bytes, its header says {len}", file.len())));
    }
    let mut head = file[..table_end].to_vec();
    head[20..24].fill(0);
    if crc32c(&head) != u32_at(file, 20) {
        return Err(Error::damaged("its header does not match its checksum"));
    }
    let mut sections = Vec::new();
    let mut at = table_end;
    for row in head[HEADER..].chunks_exact(ROW) {
        let (kind, crc) = (u32_at(row, 0) as usize, u32_at(row, 4));
        let (offset, len) = (u64_at(row, 8), u64_at(row, 16));
        let end = offset.checked_add(len).filter(|e| *e <= file.len() as u64);
        let align = [8, CODE_ALIGN, WEIGHTS_ALIGN].get(kind).copied();
        let (Some(end), Some(align)) = (end, align) else {
            return Err(Error::damaged("a section lies outside the file or is of an unknown kind"));
        };
        if !offset.is_multiple_of(align) || offset < at as u64 || len == 0 || u64_at(row, 24) != 0 {
            return Err(Error::damaged("sections overlap, are empty or misplaced"));
        }
        if file[at..offset as usize].iter().any(|b| *b != 0) {
            return Err(Error::damaged("there are bytes between its sections"));
        }
        at = end as usize;
        sections.push(Section { kind: KINDS[kind], offset, len, crc });
    }
    if at != file.len() {
        return Err(Error::damaged("there are bytes after its last section"));
    }
    Ok(sections)
}

/// Checks the sums of manifest and code, decodes and validates; gives the manifest and the weights' offset.
fn read_manifest(file: &[u8], sections: &[Section]) -> Result<(Manifest, usize), Error> {
    let of = |kind: &str| sections.iter().filter(|s| s.kind == kind).collect::<Vec<_>>();
    let (manifests, weights) = (of("manifest"), of("weights"));
    let ([body], true) = (&manifests[..], weights.len() <= 1) else {
        return Err(Error::damaged("it does not have one manifest and at most one weights section"));
    };
    for s in sections.iter().filter(|s| s.kind != "weights") {
        if crc32c(&file[s.offset as usize..][..s.len as usize]) != s.crc {
            return Err(Error::damaged(format_args!("its {} does not match its checksum", s.kind)));
        }
    }
    let manifest = codec::decode(&file[body.offset as usize..][..body.len as usize])?;
    let code: Vec<u64> = of("code").iter().map(|s| s.len).collect();
    validate::manifest(&manifest, &code, weights.first().map_or(0, |s| s.len))?;
    Ok((manifest, weights.first().map_or(0, |s| s.offset as usize)))
}

/// Names the steps that the format has and the executor does not run yet.
fn refuse_unbuilt(m: &Manifest) -> Result<(), Error> {
    let mut faults = Vec::new();
    for e in &m.entries {
        let programs = e.variants.iter().filter_map(|v| v.body.as_ref().ok());
        for step in programs.flat_map(|p| &p.segments).flat_map(|s| &s.steps) {
            let what = match step {
                Step::Launch { .. } | Step::Copy { .. } => continue,
                Step::Opaque { op, .. } => format!("the runtime kernel `{op}`"),
                Step::If { .. } => "a branch on data (If)".into(),
                Step::Loop { .. } => "a loop (Loop)".into(),
            };
            faults.push(Fault {
                code: Code::NotBuilt,
                message: format!("entry `{}` needs {what}, which this runtime has not built yet", e.name),
                help: "use a newer runtime, or a model without it".into(),
            });
        }
    }
    Error::collect(faults)
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({} bytes, image {:?})", self.file.len(), self.image().map(|i| &i.target))
    }
}

impl Model {
    /// Opens a file to run it on this CPU.
    pub fn open(path: &Path) -> Result<Arc<Model>, Error> {
        Loader::default().open(path)
    }

    /// What the artifact says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The parts of the file.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The entry of this name.
    pub(crate) fn entry(&self, name: &str) -> Result<&Entry, Error> {
        self.manifest.entries.iter().find(|e| e.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.manifest.entries.iter().map(|e| e.name.as_str()).collect();
            Error::new(
                Code::EntryName,
                format!("there is no entry `{name}`"),
                format!("the artifact has: {}", names.join(", ")),
            )
        })
    }

    /// The image that was chosen; none after `inspect`.
    pub fn image(&self) -> Option<&Image> {
        self.manifest.images.get(self.image)
    }

    /// Compares all weights with their sums; reads every byte of them.
    pub fn check_weights(&self) -> Result<(), Error> {
        let mut faults = Vec::new();
        for (i, w) in self.manifest.weights.iter().enumerate() {
            for (b, (block, sum)) in self.weight(i).chunks(BLOCK).zip(&w.blocks).enumerate() {
                if crc32c(block) != *sum {
                    let what = format_args!("weight `{}`, MiB {b} does not match its checksum", w.name);
                    faults.extend(Error::damaged(what).faults);
                }
            }
        }
        Error::collect(faults)
    }

    /// The bytes of a weight.
    pub(crate) fn weight(&self, i: usize) -> &[u8] {
        let w = &self.manifest.weights[i];
        let len = weight_len(w).unwrap_or(0) as usize;
        &self.file[self.weights_at + w.offset as usize..][..len]
    }

    /// The address of a weight, for kernels, which only read there (validated).
    pub(crate) fn weight_ptr(&self, i: usize) -> Ptr {
        if self.weight(i).is_empty() { Ptr::NONE } else { Ptr(self.weight(i).as_ptr().cast_mut()) }
    }

    /// A kernel's code with its formulas.
    pub(crate) fn kernel(&self, kernel: u32) -> Option<(KernelFn, &crate::format::ImageKernel)> {
        let k = &self.image()?.kernels[self.by_kernel[kernel as usize]];
        let address = self.code.as_ref()?[k.offset as usize..].as_ptr();
        // SAFETY: the address lies in the executable mapping, which the model keeps; that code of this interface begins
        // there is what the artifact says, with matching version and checksum: it is trusted as a program is.
        Some((unsafe { std::mem::transmute::<*const u8, KernelFn>(address) }, k))
    }
}
