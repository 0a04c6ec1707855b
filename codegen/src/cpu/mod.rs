//! Machine code for CPUs: one kernel and its schedule to vector IR by LLVM, to one object, and all objects to one
//! position-independent image by a linker of our own. What is computed is the kernel's business, how it is tiled the
//! schedule's; nothing here decides either.
//!
//! Fast-math flags are never set and LLVM may not contract, vectorise, unroll or call anything: the bits are those of the
//! kernel interpreter (on targets with fused multiply-add).

mod build;
mod contract;
mod emit;
mod index;
mod inside;
mod link;
mod memory;
mod reduce;
mod scalar;
mod stage;
mod target;
#[cfg(test)]
mod testrun;
#[cfg(test)]
pub(crate) mod tests;

pub use link::{Image, link};
pub use target::Target;

use crate::kernel::Kernel;
use crate::schedule::Schedule;
use build::Build;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use object::{Object as _, ObjectSymbol as _};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::Once;
use tgc_ir::diag::{Diag, Loc};

/// Passes over a kernel's function: stack slots to registers, common parts once, loop-invariant parts out of loops.
const PASSES: &str =
    "mem2reg,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse<memssa>,adce";

/// Why emission ended.
enum Fail {
    /// A diagnostic for the user.
    Refused(Box<Diag>),
    /// What LLVM's builder said: a bug here.
    Llvm(String),
}

impl From<BuilderError> for Fail {
    fn from(e: BuilderError) -> Fail {
        Fail::Llvm(e.to_string())
    }
}

fn of_kernel(k: &Kernel) -> Loc {
    Loc::new(format!("kernel {}", k.name))
}

/// Something code generation for CPUs does not do yet.
fn refused(k: &Kernel, what: &str) -> Fail {
    Fail::Refused(Box::new(
        Diag::error("E-CPU-002", format!("code for CPUs is not built yet for {what}"))
            .at(&of_kernel(k))
            .help("change the model or the kernel so that this is not needed"),
    ))
}

/// A bug, or a kernel that has not been verified.
fn internal(k: &Kernel, what: &str) -> Fail {
    Fail::Llvm(format!("{what} (kernel {})", k.name))
}

fn bug(k: &Kernel, what: &str) -> Diag {
    Diag::error("E-CPU-009", format!("internal error in code generation: {what}"))
        .at(&of_kernel(k))
        .help("please report it with the output of --emit kernels")
}

/// Compiles one kernel to an object file that defines one symbol, the kernel's name.
pub fn compile(kernel: &Kernel, schedule: &Schedule, target: &Target) -> Result<Vec<u8>, Diag> {
    let object = generate(kernel, schedule, target, Some(FileType::Object))?;
    let file = object::File::parse(&object[..])
        .map_err(|e| bug(kernel, &format!("LLVM's object cannot be read: {e}")))?;
    match file.symbols().find(|s| s.is_undefined() && !s.name_bytes().is_ok_and(<[u8]>::is_empty)) {
        None => Ok(object),
        Some(s) => {
            Err(bug(kernel, &format!("the code calls `{}`, which no artifact has", s.name().unwrap_or("?"))))
        }
    }
}

/// The code of one kernel as text: LLVM IR, or assembly.
pub fn text(kernel: &Kernel, schedule: &Schedule, target: &Target, assembly: bool) -> Result<String, Diag> {
    let bytes = generate(kernel, schedule, target, assembly.then_some(FileType::Assembly))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Compiles all kernels on `jobs` threads (0: one a core) and links them; the image does not depend on `jobs`.
pub fn compile_all(kernels: &[(Kernel, Schedule)], target: &Target, jobs: usize) -> Result<Image, Diag> {
    compile_each(kernels, target, jobs, &|| ())
}

/// As [`compile_all`]; `compiled` is called after every kernel, from any thread.
pub fn compile_each(
    kernels: &[(Kernel, Schedule)],
    target: &Target,
    jobs: usize,
    compiled: &(dyn Fn() + Sync),
) -> Result<Image, Diag> {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(jobs.min(kernels.len().max(1))).build().map_err(|e| {
            Diag::error("E-CPU-004", format!("{jobs} compiler threads cannot be had: {e}"))
                .help("use --jobs 1")
        })?;
    let objects: Vec<Result<Vec<u8>, Diag>> = pool
        .install(|| kernels.par_iter().map(|(k, s)| compile(k, s, target).inspect(|_| compiled())).collect());
    let mut named = Vec::with_capacity(objects.len());
    for ((k, _), o) in kernels.iter().zip(objects) {
        named.push((k.name.clone(), o?));
    }
    link(&named)
}

fn generate(k: &Kernel, s: &Schedule, target: &Target, file: Option<FileType>) -> Result<Vec<u8>, Diag> {
    if let Some(d) = crate::kernel::verify::verify(k).into_iter().next() {
        return Err(d);
    }
    s.check(k, target.isa)?;
    catch_fatal_errors(&k.name);
    let machine = target.machine()?;
    let ctx = Context::create();
    let ir = emit::emit(&ctx, k, s, target).map_err(|f| match f {
        Fail::Refused(d) => *d,
        Fail::Llvm(what) => bug(k, &what),
    })?;
    finish(k, &ir, &machine, file)
}

fn finish(
    k: &Kernel,
    ir: &Build<'_>,
    machine: &TargetMachine,
    file: Option<FileType>,
) -> Result<Vec<u8>, Diag> {
    let m = &ir.module;
    m.set_triple(&machine.get_triple());
    m.set_data_layout(&machine.get_target_data().get_data_layout());
    m.verify().map_err(|e| bug(k, &format!("LLVM refuses the code: {}", e.to_string_lossy())))?;
    m.run_passes(PASSES, machine, PassBuilderOptions::create()).map_err(|e| bug(k, &e.to_string_lossy()))?;
    match file {
        None => Ok(m.print_to_string().to_bytes().to_vec()),
        Some(f) => {
            let buffer = machine.write_to_memory_buffer(m, f).map_err(|e| bug(k, &e.to_string_lossy()))?;
            Ok(buffer.as_slice().to_vec())
        }
    }
}

thread_local! {
    static COMPILING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// LLVM ends the process on errors it cannot report; say for which kernel, and end with the code of a bug.
#[allow(unsafe_code)]
fn catch_fatal_errors(kernel: &str) {
    extern "C" fn handler(message: *const std::ffi::c_char) {
        // SAFETY: LLVM passes a C string that lives during the call.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        let kernel = COMPILING.with(|c| c.try_borrow().map(|c| c.clone()).unwrap_or_default());
        eprintln!(
            "error[E-CPU-009]: internal error in code generation: LLVM: {message}\n  at: kernel {kernel}"
        );
        std::process::exit(3);
    }
    static ONCE: Once = Once::new();
    COMPILING.with(|c| kernel.clone_into(&mut c.borrow_mut()));
    // SAFETY: the handler touches nothing of LLVM; it is installed once, before any code is made.
    ONCE.call_once(|| unsafe { inkwell::support::error_handling::install_fatal_error_handler(handler) });
}
