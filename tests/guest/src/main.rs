//! Reads requests from stdin and answers on stdout until stdin ends.

use guest::call::Code;
use guest::wire::{Answer, Array, Request};
use std::io::{self, BufReader};
use std::sync::Arc;
use tgc_runtime::{Loader, Model, Pool, Session, SessionOptions, Tensor};

#[derive(Default)]
struct State {
    code: Option<Code>,
    model: Option<Arc<Model>>,
}

impl State {
    fn answer(&mut self, request: Request) -> Result<Answer, String> {
        match request {
            Request::Load(code) => {
                self.code = Some(Code::new(&code).map_err(|e| format!("the code cannot be mapped: {e}"))?);
                Ok(Answer::Done)
            }
            Request::Call(call) => {
                let code = self.code.as_ref().ok_or("a call before there is code")?;
                match call.run(code).ok_or("the code is shorter than its symbols say")? {
                    Ok(buffers) => Ok(Answer::Buffers(buffers)),
                    Err(site) => Ok(Answer::Site(i64::from(site))),
                }
            }
            Request::Open(bytes) => {
                self.model = Some(Loader::default().from_bytes(&bytes).map_err(|e| e.to_string())?);
                Ok(Answer::Done)
            }
            Request::Run { entry, threads, inputs } => {
                let model = self.model.as_ref().ok_or("a run before there is an artifact")?;
                Ok(Answer::Arrays(run(model, &entry, threads, &inputs)?))
            }
        }
    }
}

fn run(model: &Arc<Model>, entry: &str, threads: u64, inputs: &[Array]) -> Result<Vec<Array>, String> {
    let pool = Arc::new(Pool::new(threads as usize).map_err(|e| e.to_string())?);
    let options = SessionOptions { pool: Some(pool), ..SessionOptions::default() };
    let mut session = Session::new(model, entry, &options).map_err(|e| e.to_string())?;
    let mut given = Vec::new();
    for (p, a) in session.entry().inputs.iter().zip(inputs) {
        given.push((p.name.clone(), Tensor::new(p.dtype, &a.shape, &a.bytes).map_err(|e| e.to_string())?));
    }
    let given: Vec<(&str, &Tensor)> = given.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let found = session.run_owned(&given).map_err(|e| e.to_string())?;
    let array =
        |(name, t): (String, Tensor)| Array { name, shape: t.shape().to_vec(), bytes: t.bytes().to_vec() };
    Ok(found.into_iter().map(array).collect())
}

fn main() -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(io::stdin().lock()), io::stdout().lock());
    let mut state = State::default();
    while let Some(request) = Request::receive(&mut from)? {
        state.answer(request).unwrap_or_else(Answer::Failed).send(&mut to)?;
    }
    Ok(())
}
