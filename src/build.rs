//! The way from a module to an artifact: pipeline, lowering, compilation.

use crate::verify::Job;
use std::path::PathBuf;
use tgc_codegen::artifact::{self, Artifact, Lowered};
use tgc_codegen::cpu::Target;
use tgc_codegen::kernel;
use tgc_ir::diag::Diag;
use tgc_ir::module::Module;
use tgc_passes as passes;

/// What to build.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Targets, best first.
    pub targets: Vec<String>,
    /// Compile threads; 0 is one for each core.
    pub jobs: usize,
    /// File with hand-edited kernels.
    pub kernels: Option<PathBuf>,
    /// Verify the graph after each pass.
    pub verify_each: bool,
    /// The options as text, recorded in the artifact.
    pub record: String,
    /// Whether to compare the artifact with the interpreter on random inputs; [`build`] fails if they differ.
    pub verify: Verify,
    /// See [`passes::Options::sabotage`]; `codegen` makes the kernels compute tanh where the graph says erf.
    pub sabotage: Option<String>,
}

/// How much of an artifact is compared with the interpreter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing.
    #[default]
    Never,
    /// What a budget of operations allows, and nothing where kernels are edited by hand; the artifact's record says what was
    /// left out.
    Auto,
    /// Everything: all of the build's code that this machine can run, however long it takes. An error if there is none, or
    /// if the model refuses all inputs that are tried.
    Always,
}

impl BuildOptions {
    pub(crate) fn passes(&self) -> passes::Options {
        passes::Options {
            verify_each: self.verify_each,
            sabotage: self.sabotage.clone(),
            ..passes::Options::default()
        }
    }
}

/// Stages of a build, reported as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Stage {
    Optimize,
    Lower,
    /// With the number of kernels, once for each target.
    Compile(usize),
    Verify,
}

/// Runs the pipeline in place.
pub fn optimize(module: &mut Module, options: &BuildOptions) -> Result<passes::Report, Vec<Diag>> {
    let faults = tgc_ir::verify::verify(module);
    if !faults.is_empty() {
        return Err(faults);
    }
    passes::run_pipeline(module, &options.passes())
}

/// Optimizes and lowers a module; the result holds the kernels.
pub fn lower(
    module: &mut Module,
    options: &BuildOptions,
    at: &mut dyn FnMut(Stage),
) -> Result<Lowered, Vec<Diag>> {
    at(Stage::Optimize);
    optimize(module, options)?;
    at(Stage::Lower);
    let mut lowered = artifact::lower_module(module)?;
    if options.sabotage.as_deref() == Some("codegen") {
        lowered.kernels = sabotage(&lowered.kernels)?;
    }
    for k in &lowered.kernels {
        if let Some(d) = kernel::verify::verify(k).into_iter().next() {
            let text = format!("a generated kernel is wrong\n{d}\n{}", kernel::text::print(k));
            return Err(vec![Diag::error("E-BUG", text)]);
        }
    }
    Ok(lowered)
}

/// The kernels with tanh in the place of erf.
fn sabotage(kernels: &[kernel::Kernel]) -> Result<Vec<kernel::Kernel>, Vec<Diag>> {
    let texts: Vec<String> = kernels.iter().map(kernel::text::print).collect();
    kernel::text::parse(&texts.join("\n").replace("= erf ", "= tanh "))
}

/// Schedule and code of every kernel for the first target, as text: LLVM IR or assembly.
pub fn code_text(lowered: &Lowered, options: &BuildOptions, assembly: bool) -> Result<String, Vec<Diag>> {
    let name = options.targets.first().map_or("native", String::as_str);
    artifact::code_text(lowered, &Target::parse(name).map_err(|d| vec![d])?, assembly)
}

/// Builds an artifact in memory; `compiled` is called after every kernel, from any thread.
pub fn build(
    module: &mut Module,
    options: &BuildOptions,
    at: &mut dyn FnMut(Stage),
    compiled: &(dyn Fn() + Sync),
) -> Result<Artifact, Vec<Diag>> {
    let mut targets = Vec::new();
    for t in &options.targets {
        targets.push(Target::parse(t).map_err(|d| vec![d])?);
    }
    // who edits kernels may mean to change results
    let edited = options.verify == Verify::Auto && options.kernels.is_some();
    let given = (options.verify != Verify::Never && !edited).then(|| module.clone());
    let lowered = lower(module, options, at)?;
    let replace = match &options.kernels {
        None => Vec::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| {
                vec![Diag::error("E-CLI-002", format!("--kernels: {} cannot be read: {e}", path.display()))]
            })?;
            let kernels = kernel::text::parse(&text).map_err(|d| with_text(d, &text))?;
            if kernels.is_empty() {
                let m = format!("--kernels: {} holds no kernel", path.display());
                return Err(vec![
                    Diag::error("E-CLI-012", m)
                        .help("--emit kernels prints those of the model, to be edited"),
                ]);
            }
            kernels
        }
    };
    at(Stage::Compile(lowered.kernels.len() * targets.len()));
    let mut artifact =
        artifact::compile(lowered, &targets, &replace, options.jobs, &options.record, compiled)?;
    if edited {
        artifact.set_verification("not verified: hand-edited kernels are in use".to_string());
    }
    if let Some(given) = given {
        at(Stage::Verify);
        let job = Job { given: &given, optimized: module, options, replace: &replace };
        artifact.set_verification(crate::verify::verify(&job, &artifact)?);
    }
    Ok(artifact)
}

/// Diagnostics with spans, drawn against their text now, as the text is not kept.
fn with_text(diags: Vec<Diag>, text: &str) -> Vec<Diag> {
    let draw = |d: Diag| {
        let drawn = d.render(Some(text));
        let lines: Vec<&str> =
            drawn.lines().skip(1).take_while(|l| l.starts_with("  -->") || l.starts_with("   |")).collect();
        let notes = lines.iter().map(|l| l.trim_end().to_string()).collect::<Vec<_>>();
        Diag { notes: notes.into_iter().chain(d.notes).collect(), at: Default::default(), ..d }
    };
    diags.into_iter().map(draw).collect()
}
