//! One graph, three ways: as it is in the interpreter, optimized in the interpreter, compiled through loader and session. With
//! a guest (`TGC_GUEST`, see its crate) also compiled for that, which gives the bits that the code of this machine gives.

use crate::buffers::{Guarded, Side};
use crate::maker::Made;
use guest::host::{self, Guest};
use guest::wire::Array;
use std::sync::{Arc, Mutex};
use tgc::BuildOptions;
use tgc::ir::accuracy::within;
use tgc::ir::diag::Diag;
use tgc::ir::interp::{Bounded, run_bounded};
use tgc::ir::module::Module;
use tgc::ir::tensor::{Data, Tensor};
use tgc::ir::types::DType;
use tgc::runtime::{Loader, Model, Pool, Session, SessionOptions};

/// What the runs of a graph came to.
#[derive(Default)]
pub struct Tally {
    pub runs: usize,
    /// Runs that every way refused, because of a guard or an index out of range.
    pub refused: usize,
    pub elements: usize,
    /// Elements about which the error bound says nothing.
    pub open: usize,
}

/// Pools of one and of two threads.
pub fn pools() -> [Arc<Pool>; 2] {
    [1, 2].map(|n| Arc::new(Pool::new(n).unwrap()))
}

/// An artifact of some graphs, opened here, and in a guest if there is one.
#[derive(Clone)]
pub struct Compiled {
    model: Arc<Model>,
    guest: Option<Arc<Mutex<Guest>>>,
}

/// All graphs in one artifact.
pub fn compile<'m>(graphs: impl Iterator<Item = &'m Made>) -> Result<Compiled, String> {
    let mut all = Module::default();
    for made in graphs {
        all.entries.extend(made.module.entries.clone());
        all.weights.extend(made.module.weights.clone());
    }
    let targets: Vec<String> = ["native".to_string()].into_iter().chain(host::targets()).collect();
    let in_guest = targets.len() > 1;
    let options = BuildOptions { targets, ..BuildOptions::default() };
    let artifact = tgc::build(&mut all, &options, &mut |_| {}, &|| ()).map_err(|d| render(&d))?;
    let bytes = artifact.to_bytes().map_err(|e| e.to_string())?;
    let model = Loader::default().from_bytes(&bytes).map_err(|e| e.to_string())?;
    let mut guest = None;
    if in_guest {
        let mut g = Guest::take()?;
        g.open(&bytes)?;
        guest = Some(Arc::new(Mutex::new(g)));
    }
    Ok(Compiled { model, guest })
}

fn render(diags: &[Diag]) -> String {
    diags.iter().map(|d| d.render(None)).collect::<Vec<_>>().join("\n")
}

/// Compares all runs of a graph; `code` has an entry of its name.
pub fn check(made: &Made, code: &Compiled, pools: &[Arc<Pool>; 2], tally: &mut Tally) -> Result<(), String> {
    let name = made.module.entries.keys().next().map_or("", String::as_str);
    let mut optimized = made.module.clone();
    let options = BuildOptions { verify_each: true, ..BuildOptions::default() };
    tgc::optimize(&mut optimized, &options).map_err(|d| render(&d))?;
    let mut sessions = Vec::new();
    for pool in pools {
        let options = SessionOptions { pool: Some(pool.clone()), ..SessionOptions::default() };
        sessions.push(Session::new(&code.model, name, &options).map_err(|e| e.to_string())?);
    }
    for (sizes, inputs) in &made.runs {
        let at = |what: &str, e: String| format!("at {sizes:?}, {what}: {e}");
        let want = run_bounded(&made.module, name, inputs);
        let other = run_bounded(&optimized, name, inputs);
        let mut compiled = Vec::new();
        for (session, (fill, side)) in sessions.iter_mut().zip([(0xa5, Side::End), (0x5a, Side::Begin)]) {
            compiled.push(run(session, inputs, fill, side));
        }
        let guest = code.guest.as_ref().map(|g| in_guest(g, name, inputs));
        let Ok(want) = want else {
            let refused =
                other.is_err() && compiled.iter().all(Result::is_err) && guest.is_none_or(|g| g.is_err());
            let why = want.err().map(|d| d.to_string()).unwrap_or_default();
            refused.then_some(()).ok_or_else(|| at("only some refuse what the graph refuses", why))?;
            tally.refused += 1;
            continue;
        };
        let other = other.map_err(|d| at("optimized", d.render(None)))?;
        same(&want, &other).map_err(|e| at("optimized", e))?;
        let [one, two] = [0, 1].map(|i| compiled[i].as_ref().map_err(Clone::clone));
        let (one, two) = (one.map_err(|e| at("one thread", e))?, two.map_err(|e| at("two threads", e))?);
        for (i, (w, got)) in want.iter().zip(one).enumerate() {
            let what = format!("output {i} of one thread");
            let got = Tensor::from_bytes(w.tensor.dtype, &w.tensor.shape, Data::new(got.clone()));
            let got = got.ok_or_else(|| at(&what, format!("not of shape {:?}", w.tensor.shape)))?;
            within(&got, &w.tensor, &w.bound).map_err(|e| at(&what, e.to_string()))?;
            tally.elements += w.bound.len();
            tally.open += w.bound.iter().filter(|b| b.is_infinite()).count();
        }
        if let Some(i) = (0..one.len()).find(|&i| one[i] != two[i]) {
            return Err(at(&format!("output {i}"), "one and two threads give different bits".into()));
        }
        if let Some(guest) = guest {
            let dtypes: Vec<DType> = want.iter().map(|w| w.tensor.dtype).collect();
            let guest = guest.map_err(|e| at("the guest", e))?;
            same_bits(&dtypes, one, &guest).map_err(|e| at("the guest", e))?;
        }
        tally.runs += 1;
    }
    Ok(())
}

/// Outputs of a run on two threads in a guest.
fn in_guest(guest: &Mutex<Guest>, entry: &str, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>, String> {
    let array =
        |t: &Tensor| Array { shape: t.shape.to_vec(), bytes: t.data.bytes().to_vec(), ..Array::default() };
    let mut guest = guest.lock().map_err(|e| e.to_string())?;
    let found = guest.run(entry, 2, inputs.iter().map(array).collect())?;
    Ok(found.into_iter().map(|a| a.bytes).collect())
}

/// All NaNs are equal: which one an operation gives is the CPU's own.
fn same_bits(dtypes: &[DType], here: &[Vec<u8>], there: &[Vec<u8>]) -> Result<(), String> {
    let tensor = |d: DType, b: &[u8]| Tensor::from_bytes(d, &[b.len() / d.size()], Data::new(b.to_vec()));
    for (i, d) in dtypes.iter().enumerate() {
        let (Some(h), Some(t)) = (here.get(i), there.get(i)) else {
            return Err(format!("output {i} is missing"));
        };
        let (h, t) = (tensor(*d, h), tensor(*d, t));
        let (Some(h), Some(t)) = (h, t) else { return Err(format!("output {i} has half an element")) };
        if h.scalars().ne(t.scalars()) {
            return Err(format!("output {i} has other bits: {:?}, here {:?}", t.to_f64(), h.to_f64()));
        }
    }
    Ok(())
}

/// The results agree within the error bounds of both.
fn same(want: &[Bounded], got: &[Bounded]) -> Result<(), String> {
    for (i, (w, g)) in want.iter().zip(got).enumerate() {
        let allowed: Vec<f64> = w.bound.iter().zip(&g.bound).map(|(a, b)| a + b).collect();
        within(&g.tensor, &w.tensor, &allowed).map_err(|e| format!("output {i}: {e}"))?;
    }
    if want.len() == got.len() { Ok(()) } else { Err(format!("{} outputs became {}", want.len(), got.len())) }
}

/// Runs with every buffer against a guard page, twice: the second run finds what the first one left in the arena. The
/// outputs hold `fill` before, so that what is not written differs between two fills.
fn run(session: &mut Session, inputs: &[Tensor], fill: u8, side: Side) -> Result<Vec<Vec<u8>>, String> {
    let names: Vec<String> = session.entry().inputs.iter().map(|p| p.name.clone()).collect();
    let shapes: Vec<(&str, &[usize])> =
        names.iter().map(String::as_str).zip(inputs.iter().map(|t| &*t.shape)).collect();
    session.bind(&shapes).map_err(|e| e.to_string())?;
    let inputs: Vec<Guarded> = inputs.iter().map(|t| Guarded::copy(t.data.bytes(), side)).collect();
    let given: Vec<Option<&[u8]>> = inputs.iter().map(|g| Some(g.bytes())).collect();
    let mut results: Vec<Vec<Vec<u8>>> = Vec::new();
    for _ in 0..2 {
        let mut outputs = Vec::new();
        for (i, p) in session.entry().outputs.iter().enumerate() {
            let shape = session.output_shape(i).ok_or("an output's shape depends on data")?;
            outputs.push(Guarded::new(shape.iter().product::<usize>() * p.dtype.size(), fill, side));
        }
        let mut slots: Vec<&mut [u8]> = outputs.iter_mut().map(Guarded::bytes_mut).collect();
        session.run(&given, &mut slots).map_err(|e| e.to_string())?;
        results.push(outputs.iter().map(|g| g.bytes().to_vec()).collect());
    }
    let last = results.pop().unwrap_or_default();
    if results.pop().as_ref() == Some(&last) { Ok(last) } else { Err("a second run gives other bits".into()) }
}
