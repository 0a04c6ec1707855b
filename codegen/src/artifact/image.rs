//! Compiling the kernels for each target and putting the artifact together.

use super::cost::{self, Cost};
use super::formula;
use super::program::{Lowered, Stored, decl};
use super::reuse;
use crate::cpu::{self, Target};
use crate::kernel::Kernel;
use crate::lower::math::lower_kernel;
use crate::schedule::{self, Schedule};
use std::path::Path;
use tgc_ir::diag::Diag;
use tgc_ir::types::Dim;
use tgc_runtime as rt;

/// A complete artifact in memory; weights are still where the module has them.
pub struct Artifact {
    pub(super) manifest: rt::Manifest,
    pub(super) images: Vec<Vec<u8>>,
    pub(super) weights: Vec<Stored>,
}

/// Compiles `lowered` for every target (best first). `replace` holds hand-edited kernels that take the place of the
/// generated ones of the same name and signature. `options` is recorded as text. The result does not depend on `jobs`.
/// `compiled` is called after each kernel for each target, from any thread.
pub fn compile(
    mut lowered: Lowered,
    targets: &[Target],
    replace: &[Kernel],
    jobs: usize,
    options: &str,
    compiled: &(dyn Fn() + Sync),
) -> Result<Artifact, Vec<Diag>> {
    substitute(&mut lowered.kernels, replace)?;
    let mut faults = Vec::new();
    let mut plain = lowered.kernels.clone();
    for k in &mut plain {
        faults.extend(lower_kernel(k).err());
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let entries = lowered.manifest.entries.iter_mut().flat_map(|e| &mut e.variants);
    for program in entries.filter_map(|v| v.body.as_mut().ok()) {
        reuse::share(program, &plain);
    }
    let costs: Vec<Cost> = plain.iter().map(cost::of).collect();
    lowered.manifest.kernels =
        lowered.kernels.iter().zip(&costs).map(|(k, c)| decl(k, &c.flops(), &c.bytes)).collect();
    let mut images = Vec::new();
    for target in targets {
        let work: Vec<(Kernel, Schedule)> =
            plain.iter().map(|k| (k.clone(), Schedule::default_for(k, target.isa))).collect();
        for (k, s) in &work {
            s.check(k, target.isa).map_err(|d| vec![d])?;
        }
        let mut image = cpu::compile_each(&work, target, jobs, compiled).map_err(|d| vec![d])?;
        if image.bytes.is_empty() {
            // a model that only copies has no kernel, but a section of the file is never empty
            image.bytes.push(0);
        }
        lowered.manifest.images.push(describe(&work, &costs, target, &image).map_err(|d| vec![d])?);
        images.push(image.bytes);
    }
    lowered.manifest.producer = concat!("tgc ", env!("CARGO_PKG_VERSION")).to_string();
    lowered.manifest.options = options.to_string();
    lowered.manifest.verification = "not verified".to_string();
    Ok(Artifact { manifest: lowered.manifest, images, weights: lowered.weights })
}

/// What code generation for one target gives for every kernel, as text: its schedule, then LLVM IR or assembly.
pub fn code_text(lowered: &Lowered, target: &Target, assembly: bool) -> Result<String, Vec<Diag>> {
    let mut out = String::new();
    for k in &lowered.kernels {
        let mut k = k.clone();
        lower_kernel(&mut k).map_err(|d| vec![d])?;
        let schedule = Schedule::default_for(&k, target.isa);
        let text = cpu::text(&k, &schedule, target, assembly).map_err(|d| vec![d])?;
        let comment = if assembly { '#' } else { ';' };
        out.push_str(&format!("{comment} {} for {}: {schedule}\n{text}\n", k.name, target.name));
    }
    Ok(out)
}

impl Artifact {
    /// Records what was verified, and on what.
    pub fn set_verification(&mut self, text: String) {
        self.manifest.verification = text;
    }

    /// What was verified, as recorded.
    pub fn verification(&self) -> &str {
        &self.manifest.verification
    }

    /// Its code images, as the file describes them.
    pub fn images(&self) -> &[rt::Image] {
        &self.manifest.images
    }

    /// The file in memory, for a loader that opens bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, rt::Error> {
        let code: Vec<&[u8]> = self.images.iter().map(Vec::as_slice).collect();
        let mut weights = |i: usize, out: &mut dyn std::io::Write| out.write_all(&self.weights[i].bytes());
        let mut file = std::io::Cursor::new(Vec::new());
        rt::write(&self.manifest, &code, &mut weights, &mut file)?;
        Ok(file.into_inner())
    }

    /// Writes the file, through a temporary one in the same folder.
    pub fn write(&self, path: &Path) -> Result<(), rt::Error> {
        let code: Vec<&[u8]> = self.images.iter().map(Vec::as_slice).collect();
        let mut weights = |i: usize, out: &mut dyn std::io::Write| out.write_all(&self.weights[i].bytes());
        rt::write_file(path, &self.manifest, &code, &mut weights)
    }
}

fn describe(
    work: &[(Kernel, Schedule)],
    costs: &[Cost],
    target: &Target,
    image: &cpu::Image,
) -> Result<rt::Image, Diag> {
    let mut kernels = Vec::new();
    for (i, ((k, s), cost)) in work.iter().zip(costs).enumerate() {
        let f = |d: &Dim| formula::expr(d, &|name| k.slot(name));
        let offset = image.symbols.iter().find(|x| x.0 == k.name).map(|x| x.1);
        kernels.push(rt::ImageKernel {
            kernel: i as u32,
            offset: offset.ok_or_else(|| {
                Diag::error("E-CG-030", format!("the image has no code for kernel `{}`", k.name))
            })?,
            tiles: f(&schedule::tile_count(k, s))?,
            grain: f(&cost::grain(k, s, cost)).unwrap_or(rt::Expr::Const(1)),
            scratch: f(&schedule::scratch(k, s))?,
        });
    }
    Ok(rt::Image {
        target: target.name.clone(),
        arch: target.arch.to_string(),
        features: target.features.to_vec(),
        kernels,
    })
}

/// Puts hand-edited kernels in the place of generated ones.
fn substitute(kernels: &mut [Kernel], replace: &[Kernel]) -> Result<(), Vec<Diag>> {
    let mut faults = Vec::new();
    let names: Vec<String> = kernels.iter().map(|k| k.name.clone()).collect();
    for new in replace {
        let Some(old) = kernels.iter_mut().find(|k| k.name == new.name) else {
            faults.push(
                Diag::error("E-CG-031", format!("no kernel of this model is called `{}`", new.name))
                    .help(format!("kernels: {}", names.join(", "))),
            );
            continue;
        };
        let same =
            old.params == new.params
                && old.args.len() == new.args.len()
                && old.sites.len() == new.sites.len()
                && old.args.iter().zip(&new.args).all(|(a, b)| {
                    (a.dtype, a.role, &a.dims, &a.packed) == (b.dtype, b.role, &b.dims, &b.packed)
                });
        if !same {
            faults.push(
                Diag::error(
                    "E-CG-032",
                    format!("kernel `{}` has another signature than the generated one", new.name),
                )
                .help("keep its dim parameters, arguments and sites as printed by --emit kernels"),
            );
            continue;
        }
        faults.extend(crate::kernel::verify::verify(new));
        *old = new.clone();
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
