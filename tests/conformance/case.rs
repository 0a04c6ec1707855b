//! One case of the suite: imported, run by the interpreter, compiled, run through the artifact, and judged by the stored
//! outputs; as the file has it, and with the sizes of its inputs as symbols.

use crate::stored::{ROUNDED, Symbols, compare, input_names, must_be_known, tensors, value, with_symbols};
use guest::host::{self, Guest};
use guest::wire::Array;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tgc::frontend::onnx::{ImportOptions, Imported, import_bytes, tensor_file};
use tgc::ir::accuracy::within;
use tgc::ir::diag::Diag;
use tgc::ir::graph::{NodeId, Value};
use tgc::ir::interp::{Bounded, run_bounded};
use tgc::ir::module::Module;
use tgc::ir::ops::Op;
use tgc::ir::scalar::Scalar;
use tgc::ir::tensor::{Data, Tensor};
use tgc::ir::types::DType;
use tgc::runtime as rt;
use tgc::{BuildOptions, ConstOption};

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Interpreter and compiled code give what is stored.
    Pass,
    /// The same, with these inputs fixed to the stored values (`--const`) because they must be known.
    PassFixed(String),
    /// A diagnostic before anything ran.
    Refused(String),
    /// Another result than the stored one, or an error while running on the stored inputs.
    Wrong(String),
    /// The process died, panicked or did not end.
    Crash(String),
    /// Not run, because the case does not pass as the file has it, or has no sizes that could be symbols.
    None,
}

impl Outcome {
    pub fn passes(&self) -> bool {
        matches!(self, Outcome::Pass | Outcome::PassFixed(_))
    }
}

/// A case's folder.
pub struct Case {
    pub folder: PathBuf,
}

impl Case {
    /// As the file has it, and with symbols.
    pub fn run(&self) -> (Outcome, Outcome) {
        let fixed = self.guarded(Symbols::Fixed);
        if !fixed.passes() {
            return (fixed, Outcome::None);
        }
        let mut refused = Outcome::None;
        for how in [Symbols::Own, Symbols::Same, Symbols::First] {
            match self.guarded(how) {
                Outcome::Refused(why) if refused == Outcome::None => refused = Outcome::Refused(why),
                Outcome::Refused(_) => {}
                other => return (fixed, other),
            }
        }
        (fixed, refused)
    }

    fn guarded(&self, how: Symbols) -> Outcome {
        guarded(&|| self.steps(how).unwrap_or_else(|o| o))
    }

    fn steps(&self, how: Symbols) -> Result<Outcome, Outcome> {
        let refused = |d: Vec<Diag>| Outcome::Refused(words(&d));
        let file =
            std::fs::read(self.folder.join("model.onnx")).map_err(|e| Outcome::Crash(e.to_string()))?;
        let Some(bytes) = with_symbols(file, how) else { return Ok(Outcome::None) };
        let mut given = tensors(&self.folder, "input").map_err(|d| refused(vec![d]))?;
        let mut names = input_names(&bytes);
        let mut options = ImportOptions::default();
        let module = loop {
            let found = import_bytes(bytes.clone().into(), Some(&self.folder), &options);
            match found {
                Ok(Imported { module, .. }) => break module,
                Err(d) => {
                    let at = must_be_known(&d).and_then(|n| names.iter().position(|i| *i == n));
                    let value = at.and_then(|i| given.get(i)).and_then(value);
                    let (Some(i), Some(value)) = (at, value) else { return Err(refused(d)) };
                    options.constants.push(ConstOption { name: names.remove(i), value });
                    given.remove(i);
                }
            }
        };
        // Compiled before anything is compared: a case that cannot be compiled counts as refused.
        let targets = ["native".to_string()].into_iter().chain(host::targets()).collect();
        let build = BuildOptions { targets, jobs: 1, ..BuildOptions::default() };
        let artifact = tgc::build(&mut module.clone(), &build, &mut |_| {}, &|| ()).map_err(refused)?;
        let inputs = given;
        let rounded = ROUNDED.iter().any(|n| self.folder.ends_with(n));
        let stored = tensors(&self.folder, "output").map_err(|d| refused(vec![d]))?;
        let wrong = |what: &str, e: String| Outcome::Wrong(format!("{what}: {e}"));
        let main = module.entries.keys().next().map_or("main", String::as_str);
        let interpreted =
            run_bounded(&module, main, &inputs).map_err(|d| wrong("interpreter", d.to_string()))?;
        compare(interpreted.iter().map(|b| &b.tensor), &stored, rounded)
            .map_err(|e| wrong("interpreter", e))?;
        let compiled = compiled(&artifact, main, &inputs).map_err(|e| wrong("compiled", e))?;
        compare(compiled.iter(), &stored, rounded).map_err(|e| wrong("compiled", e))?;
        bounded(&compiled, &interpreted).map_err(|e| wrong("compiled against interpreter", e))?;
        if !host::targets().is_empty() {
            in_guest(&artifact, main, &inputs, &compiled).map_err(|e| wrong("the guest", e))?;
        }
        let fixed: Vec<String> = options.constants.into_iter().map(|c| c.name).collect();
        Ok(if fixed.is_empty() { Outcome::Pass } else { Outcome::PassFixed(fixed.join(" ")) })
    }
}

/// A published network with made-up weights: `light_NAME.onnx` with `light_NAME_output_0.pb` beside it. There is no stored
/// input, as the output does not depend on it. Only compiled code runs it: the interpreter would take minutes.
pub fn light(suite: &Path, name: &str) -> Outcome {
    let run = || {
        let refused = |d: Vec<Diag>| Outcome::Refused(words(&d));
        let at = |file: String| suite.join("light").join(file);
        let file = std::fs::read(at(format!("{name}.onnx"))).map_err(|e| Outcome::Crash(e.to_string()))?;
        let Imported { mut module, .. } =
            import_bytes(file.into(), None, &ImportOptions::default()).map_err(refused)?;
        let build = BuildOptions { targets: vec!["native".into()], jobs: 1, ..BuildOptions::default() };
        let artifact = tgc::build(&mut module, &build, &mut |_| {}, &|| ()).map_err(refused)?;
        let stored = tensor_file(&at(format!("{name}_output_0.pb"))).map_err(|d| refused(vec![d]))?.1;
        let wrong = |e: String| Outcome::Wrong(format!("compiled: {e}"));
        let got = compiled(&artifact, "main", &ones(&module)).map_err(wrong)?;
        compare(got.iter(), &[stored], false).map_err(wrong)?;
        Ok(Outcome::Pass)
    };
    guarded(&|| run().unwrap_or_else(|o| o))
}

/// Inputs of the module's sizes, all elements 1.
fn ones(module: &Module) -> Vec<Tensor> {
    let g = &module.entries["main"].body;
    let one = |&node: &NodeId| {
        let Some(Op::Input(input)) = g.op_of(node) else { return None };
        let t = g.ty(Value { node, result: 0 })?;
        let shape: Vec<usize> =
            t.shape.iter().map(|d| d.as_const()).map(|n| n.unwrap_or(1) as usize).collect();
        let fill = (0..shape.iter().product()).map(|_| Scalar::from_int(t.dtype, 1)).collect::<Vec<_>>();
        input.default.is_none().then(|| Tensor::from_scalars(t.dtype, &shape, fill))
    };
    g.inputs().iter().filter_map(one).collect()
}

fn guarded(run: &dyn Fn() -> Outcome) -> Outcome {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|p| {
        let said = p.downcast_ref::<String>().map(String::as_str).or(p.downcast_ref::<&str>().copied());
        Outcome::Crash(format!("a panic: {}", said.unwrap_or("without words")))
    })
}

/// The first diagnostic in a line.
fn words(d: &[Diag]) -> String {
    d.first()
        .map_or_else(|| "no reason".to_string(), |d| format!("{} {}", d.code, d.message.replace('\n', " ")))
}

fn compiled(
    artifact: &tgc::codegen::artifact::Artifact,
    entry: &str,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    let bytes = artifact.to_bytes().map_err(|e| e.to_string())?;
    let model: Arc<rt::Model> = rt::Loader::default().from_bytes(&bytes).map_err(|e| e.to_string())?;
    let pool = Arc::new(rt::Pool::new(1).map_err(|e| e.to_string())?);
    let options = rt::SessionOptions { pool: Some(pool), ..rt::SessionOptions::default() };
    let mut session = rt::Session::new(&model, entry, &options).map_err(|e| e.to_string())?;
    let mut given = Vec::new();
    for (p, t) in session.entry().inputs.iter().zip(inputs) {
        let tensor = rt::Tensor::new(p.dtype, &t.shape, t.data.bytes()).map_err(|e| e.to_string())?;
        given.push((p.name.clone(), tensor));
    }
    let dtypes: Vec<String> = session.entry().outputs.iter().map(|p| p.dtype.to_string()).collect();
    let given: Vec<(&str, &rt::Tensor)> = given.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let found = session.run_owned(&given).map_err(|e| e.to_string())?;
    found
        .into_iter()
        .zip(dtypes)
        .map(|((name, t), dtype)| {
            let dtype = DType::all().find(|d| d.name() == dtype).ok_or_else(|| format!("type {dtype}"))?;
            Tensor::from_bytes(dtype, t.shape(), Data::new(t.bytes().to_vec()))
                .ok_or_else(|| format!("output `{name}` has another size than its shape says"))
        })
        .collect()
}

/// The guest's code computes the same bits, all NaNs being equal.
fn in_guest(
    artifact: &tgc::codegen::artifact::Artifact,
    entry: &str,
    inputs: &[Tensor],
    here: &[Tensor],
) -> Result<(), String> {
    let mut guest = Guest::take()?;
    guest.open(&artifact.to_bytes().map_err(|e| e.to_string())?)?;
    let array =
        |t: &Tensor| Array { shape: t.shape.to_vec(), bytes: t.data.bytes().to_vec(), ..Array::default() };
    let found = guest.run(entry, 2, inputs.iter().map(array).collect())?;
    for (h, f) in here.iter().zip(&found) {
        let there = Tensor::from_bytes(h.dtype, &f.shape, Data::new(f.bytes.clone()))
            .ok_or_else(|| format!("output `{}` has another size than its shape says", f.name))?;
        if h.shape != there.shape || h.scalars().ne(there.scalars()) {
            return Err(format!("output `{}` is {:?}, here it is {:?}", f.name, there.to_f64(), h.to_f64()));
        }
    }
    guest.give_back();
    if found.len() == here.len() { Ok(()) } else { Err(format!("{} outputs", found.len())) }
}

/// The compiled results are within the error bound of the interpreter's.
fn bounded(got: &[Tensor], want: &[Bounded]) -> Result<(), String> {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        within(g, &w.tensor, &w.bound).map_err(|e| format!("output {i}: {e}"))?;
    }
    Ok(())
}
