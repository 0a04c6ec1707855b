//! Damaged models: ONNX files, `.tgir` texts with their weights, texts of kernels. What is accepted goes through the
//! pipeline and to kernels; of some, machine code is made too.

use crate::mutate::{self, Damaged};
use crate::rng::Rng;
use crate::verdict::{Verdict, finding, refused};
use crate::wire;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tgc::codegen::kernel;
use tgc::ir::module::Module;
use tgc::ir::text::{parse_module, print_module};
use tgc::{BuildOptions, LoadOptions};

/// One in so many models that give kernels is compiled.
const COMPILED: usize = 20;

fn options() -> BuildOptions {
    BuildOptions { targets: vec!["native".into()], jobs: 1, verify_each: true, ..BuildOptions::default() }
}

/// To kernels, and to machine code if `compile`.
fn build(mut module: Module, compile: bool) -> Result<Verdict, String> {
    if compile {
        let artifact = match tgc::build(&mut module, &options(), &mut |_| {}, &|| ()) {
            Ok(a) => a,
            Err(d) => return refused(&d),
        };
        let bytes = artifact.to_bytes().map_err(|e| format!("the artifact cannot be written: {e}"))?;
        return match tgc::runtime::Loader::default().from_bytes(&bytes) {
            Ok(_) => Ok(Verdict::Accepted("compiled")),
            Err(e) => finding(&format!("the new artifact does not load: {e}")),
        };
    }
    match tgc::lower(&mut module, &options(), &mut |_| {}) {
        Ok(_) => Ok(Verdict::Accepted("lowered")),
        Err(d) => refused(&d),
    }
}

/// ONNX files, of which each case damages one.
pub struct Onnx {
    files: Vec<PathBuf>,
    /// The last one read.
    held: Option<Whole>,
}

struct Whole {
    /// Its place among the files.
    at: usize,
    bytes: Vec<u8>,
    /// The ranges that are structure.
    focus: Vec<Range<usize>>,
    tree: Option<wire::Tree>,
}

impl Onnx {
    pub fn new(files: Vec<PathBuf>) -> Onnx {
        Onnx { files, held: None }
    }

    pub fn case(&mut self, rng: &mut Rng, path: &Path) -> (String, Result<Verdict, String>) {
        let at = rng.below(self.files.len());
        let whole = match self.held.take() {
            Some(whole) if whole.at == at => whole,
            _ => {
                let bytes = std::fs::read(&self.files[at]).unwrap();
                Whole { at, focus: wire::structure(&bytes), tree: wire::parse(&bytes), bytes }
            }
        };
        let damaged = match &whole.tree {
            Some(tree) if !rng.once_in(4) => wire::damage(rng, tree),
            _ => mutate::bytes(rng, &whole.bytes, &whole.focus),
        };
        self.held = Some(whole);
        std::fs::write(path, &damaged.bytes).unwrap();
        let compile = rng.once_in(COMPILED);
        let what = format!("{}: {}", self.files[at].display(), damaged.what);
        let verdict = match tgc::load(path, &LoadOptions::default()) {
            Ok((module, _)) => build(module, compile),
            Err(d) => refused(&d),
        };
        (what, verdict)
    }
}

/// `.tgir` texts; those with weights in a side file have those damaged too.
pub struct Text {
    files: Vec<PathBuf>,
}

impl Text {
    pub fn new(files: Vec<PathBuf>) -> Text {
        Text { files }
    }

    pub fn case(&self, rng: &mut Rng, path: &Path) -> (String, Result<Verdict, String>) {
        let file = rng.pick(&self.files);
        let text = std::fs::read_to_string(file).unwrap();
        let side = std::fs::read(file.with_extension("safetensors")).ok();
        let beside = path.with_extension("safetensors");
        let _ = std::fs::remove_file(&beside);
        let mut what = file.display().to_string();
        let mut damaged = Damaged { bytes: text.clone().into_bytes(), what: String::new() };
        if let Some(mut side) = side {
            if rng.coin() {
                let header = 0..(8 + side.first_chunk().map_or(0, |n| u64::from_le_bytes(*n)) as usize);
                let hurt = mutate::bytes(rng, &side, &[header]);
                side = hurt.bytes;
                what = format!("{what}, weights: {}", hurt.what);
            } else {
                damaged = mutate::text(rng, &text);
            }
            std::fs::write(&beside, side).unwrap();
        } else {
            damaged = mutate::text(rng, &text);
        }
        std::fs::write(path, &damaged.bytes).unwrap();
        let compile = rng.once_in(COMPILED);
        (format!("{what}: {}", damaged.what), judge_text(path, compile))
    }
}

fn judge_text(path: &Path, compile: bool) -> Result<Verdict, String> {
    let module = match tgc::load(path, &LoadOptions::default()) {
        Ok((m, _)) => m,
        Err(d) => return refused(&d),
    };
    let printed = print_module(&module);
    let weights = |name: &str| module.weights.get(name).cloned();
    match parse_module(&printed, &weights) {
        Ok(again) if print_module(&again) == printed => {}
        Ok(_) => return finding("what is printed is read as something else"),
        Err(d) => {
            let said: Vec<String> = d.iter().map(|d| d.render(Some(&printed))).collect();
            return finding(&format!("what is printed cannot be read: {}", said.join("\n")));
        }
    }
    build(module, compile)
}

/// A text of kernels, as `--emit kernels` prints it and `--kernels` reads it, and the model they are of.
pub struct Kernels {
    text: String,
    module: Module,
}

impl Kernels {
    pub fn read(path: &Path, module: Module) -> Kernels {
        Kernels { text: std::fs::read_to_string(path).unwrap(), module }
    }

    pub fn case(&self, rng: &mut Rng, path: &Path) -> (String, Result<Verdict, String>) {
        let damaged = mutate::text(rng, &self.text);
        std::fs::write(path, &damaged.bytes).unwrap();
        let text = String::from_utf8_lossy(&damaged.bytes);
        let verdict = match judge_kernels(&text) {
            Ok(Verdict::Accepted(_)) if rng.once_in(COMPILED) => self.build(path),
            v => v,
        };
        (damaged.what, verdict)
    }

    fn build(&self, path: &Path) -> Result<Verdict, String> {
        let options = BuildOptions { kernels: Some(path.to_path_buf()), ..options() };
        match tgc::build(&mut self.module.clone(), &options, &mut |_| {}, &|| ()) {
            Ok(_) => Ok(Verdict::Accepted("compiled")),
            Err(d) => refused(&d),
        }
    }
}

fn judge_kernels(text: &str) -> Result<Verdict, String> {
    let kernels = match kernel::text::parse(text) {
        Ok(k) => k,
        Err(d) => return refused(&d),
    };
    for k in &kernels {
        let faults = kernel::verify::verify(k);
        if !faults.is_empty() {
            return refused(&faults);
        }
    }
    let printed: Vec<String> = kernels.iter().map(kernel::text::print).collect();
    match kernel::text::parse(&printed.join("\n")) {
        Ok(again) if again == kernels => Ok(Verdict::Accepted("verified")),
        Ok(_) => finding("what is printed is read as other kernels"),
        Err(d) => finding(&format!("what is printed cannot be read: {}", d[0].render(None))),
    }
}
