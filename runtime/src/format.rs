//! What an artifact says, as plain data: the manifest with its entries, programs, kernels, images and weights.
//! What must not be here: bytes (codec.rs, write.rs), rules (validate.rs), or any behaviour.

use crate::dtype::DType;
use crate::expr::{Expr, Pred};

/// Everything an artifact holds besides code and weight bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The compiler that wrote it, with its version.
    pub producer: String,
    /// The options that shaped the result, as text.
    pub options: String,
    /// What was verified, on what, with what result; "not verified" says so.
    pub verification: String,
    /// The ways to call the model.
    pub entries: Vec<Entry>,
    /// What persists between calls.
    pub states: Vec<StateDecl>,
    /// Constant tensors in the file.
    pub weights: Vec<WeightDecl>,
    /// The kernels, the same for every image.
    pub kernels: Vec<KernelDecl>,
    /// The code, best first; image `i` is the file's code section `i`.
    pub images: Vec<Image>,
}

/// One way to call the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its name: `forward`.
    pub name: String,
    /// The sizes that vary. Formulas in this entry refer to slots of this table.
    pub symbols: Vec<Symbol>,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// States it reads (indices into the manifest's).
    pub reads: Vec<u32>,
    /// States it changes.
    pub writes: Vec<u32>,
    /// Conditions on sizes, checked when bound.
    pub guards: Vec<Guard>,
    /// Programs by condition; the first whose condition holds is run.
    pub variants: Vec<Variant>,
}

/// A size that is known only at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The least value allowed.
    pub lo: i64,
    /// The greatest value allowed.
    pub hi: i64,
    /// Whether the name is the user's (a contract) or was made up.
    pub named: bool,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The model's own name for it.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes; in an input a plain symbol gives the symbol its value.
    pub dims: Vec<Expr>,
    /// For an input that may be left out: the weight that is used then.
    pub default: Option<u32>,
}

/// A condition on sizes with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// What must hold.
    pub pred: Pred,
    /// Where it comes from, in the user's terms.
    pub message: String,
}

/// A program with the condition under which it is the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The condition; `None` always holds.
    pub when: Option<Pred>,
    /// The program, or why there is none for these sizes.
    pub body: Result<Program, String>,
}

/// Buffers and the steps over them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Every buffer the steps name, by index.
    pub buffers: Vec<Buffer>,
    /// Parts that each bind when their symbols are known.
    pub segments: Vec<Segment>,
}

/// Where a buffer's bytes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// The caller's, input `i` of the entry; read only.
    Input(u32),
    /// The caller's, output `i` of the entry.
    Output(u32),
    /// State `i`, kept by the session.
    State(u32),
    /// Weight `i`, mapped from the file; read only.
    Weight(u32),
    /// The arena's, placed by the planner.
    Temp,
}

/// A range of bytes with a lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// A name for reports.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Where it lives.
    pub kind: BufferKind,
    /// Its size in bytes; for all but `Temp` exactly the size of what it stands for.
    pub size: Expr,
    /// For `Temp`: alignment, a power of two from 1 to 4096.
    pub align: u32,
    /// Buffers of one class share their bytes; at most one of them is not `Temp`, and then the others live in its bytes.
    pub alias: Option<u32>,
    /// The first step that touches it, counting top-level steps over all segments.
    pub first: u32,
    /// The last step that touches it. A buffer that gives a symbol its value lives at least to the last step of the
    /// segment before.
    pub last: u32,
}

/// A run of steps whose sizes are all known at its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// Symbols that get their value at the segment's start.
    pub binds: Vec<Bind>,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A symbol that gets its value from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The slot in the entry's symbol table.
    pub symbol: u32,
    /// The buffer whose first element, an i64, is the value.
    pub buffer: u32,
}

/// One thing the executor does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Runs a kernel over all its tiles.
    Launch {
        /// Index of the kernel.
        kernel: u32,
        /// One buffer for each declared argument.
        args: Vec<u32>,
        /// The kernel's dims, evaluated once when bound.
        dims: Vec<Expr>,
        /// What return codes 1, 2 ... mean in this launch.
        sites: Vec<Site>,
        /// What it computes, in the user's terms, for reports.
        label: String,
    },
    /// Copies the first bytes of one buffer to another.
    Copy {
        /// From.
        src: u32,
        /// To.
        dst: u32,
        /// How many bytes.
        bytes: Expr,
    },
    /// Runs a kernel of the runtime's own, by name.
    Opaque {
        /// Its name.
        op: String,
        /// Its buffers.
        args: Vec<u32>,
    },
    /// Runs one of two lists of steps.
    If {
        /// A bool buffer with one element.
        cond: u32,
        /// Run when it is true.
        then: Vec<Step>,
        /// Run when it is false.
        otherwise: Vec<Step>,
    },
    /// Repeats steps.
    Loop {
        /// An i64 buffer with the greatest number of rounds.
        trip: Option<u32>,
        /// A bool buffer tested before each round.
        cond: Option<u32>,
        /// An i64 buffer that receives the number of the round.
        index: Option<u32>,
        /// The steps of one round.
        body: Vec<Step>,
    },
}

/// A place in the model where a kernel can fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The node's name in the user's model.
    pub node: String,
    /// The operator.
    pub op: String,
    /// Where it was written, if known.
    pub source: String,
    /// What is wrong when it fails.
    pub message: String,
}

/// A tensor that persists between calls.
#[derive(Clone, Debug, PartialEq)]
pub struct StateDecl {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Vec<u64>,
    /// The weight it starts from; zeros without.
    pub init: Option<u32>,
}

/// A constant tensor in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightDecl {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes as stored (a packed form counts its padding).
    pub dims: Vec<u64>,
    /// Where it begins in the weights section, a multiple of 64. The writer fills it in.
    pub offset: u64,
    /// CRC-32C of each MiB. The writer fills it in.
    pub blocks: Vec<u32>,
}

/// What a kernel does to an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads it.
    In,
    /// Writes it.
    Out,
    /// Reads and writes it.
    InOut,
    /// Reads it; it is the same in every call.
    Const,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgDecl {
    /// Its name in the kernel's text.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Read or written.
    pub role: Role,
}

/// A kernel's interface.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelDecl {
    /// Its name.
    pub name: String,
    /// Its arguments in order.
    pub args: Vec<ArgDecl>,
    /// How many dims it takes.
    pub dims: u32,
    /// Operations on elements of one launch, over its dims: `Sym(i)` is `dims[i]`. For reports.
    pub flops: Expr,
    /// Bytes of buffers that one launch reads and writes, each counted once. For reports.
    pub bytes: Expr,
    /// Identifies the kernel's text.
    pub text_hash: [u8; 16],
}

/// Code for one kind of CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// The target as the user names it: `x86-64-v3`.
    pub target: String,
    /// The architecture: `x86_64` or `aarch64`.
    pub arch: String,
    /// CPU features it needs, by LLVM's names.
    pub features: Vec<String>,
    /// Where each kernel is; one for every declared kernel.
    pub kernels: Vec<ImageKernel>,
}

/// A kernel in an image. Its formulas are over the kernel's dims: `Sym(i)` is `dims[i]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageKernel {
    /// Index of the kernel.
    pub kernel: u32,
    /// Where its code begins.
    pub offset: u64,
    /// The number of schedule tiles.
    pub tiles: Expr,
    /// The least number of tiles worth giving to a worker; `Const(1)` if unknown.
    pub grain: Expr,
    /// Bytes of scratch for each worker.
    pub scratch: Expr,
}
