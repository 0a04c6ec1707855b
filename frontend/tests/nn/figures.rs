//! Figures of PyTorch, made by the scripts in `torch/` and committed beside them: inputs and outputs by the case's name.

use serde_json::Value;
use std::collections::BTreeMap;
use tgc_frontend::nn::*;

pub struct Case {
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
}

/// The cases of one file of figures.
pub struct Figures {
    file: &'static str,
    cases: BTreeMap<String, Value>,
}

/// Reads a file of figures from its text.
pub fn figures(file: &'static str, text: &str) -> Figures {
    Figures { file, cases: serde_json::from_str(text).unwrap() }
}

fn tensor(v: &Value) -> Tensor {
    let shape: Vec<i64> = v["shape"].as_array().unwrap().iter().map(|d| d.as_i64().unwrap()).collect();
    let data = v["data"].as_array().unwrap();
    let float = |x: &Value| x.as_f64().unwrap_or_else(|| x.as_str().unwrap().parse().unwrap());
    let floats = || data.iter().map(float).collect::<Vec<f64>>();
    let ints = || data.iter().map(|x| x.as_i64().unwrap()).collect::<Vec<i64>>();
    match v["dtype"].as_str().unwrap() {
        "float64" => Tensor::from_slice(&floats(), shape),
        "float32" => Tensor::from_slice(&floats(), shape).to_dtype(F32),
        "bfloat16" => Tensor::from_slice(&floats(), shape).to_dtype(BF16),
        "float16" => Tensor::from_slice(&floats(), shape).to_dtype(F16),
        "bool" => Tensor::from_slice(&ints(), shape).to_dtype(BOOL),
        "int64" => Tensor::from_slice(&ints(), shape),
        "int32" => Tensor::from_slice(&ints(), shape).to_dtype(I32),
        "int16" => Tensor::from_slice(&ints(), shape).to_dtype(I16),
        "int8" => Tensor::from_slice(&ints(), shape).to_dtype(I8),
        "uint8" => Tensor::from_slice(&ints(), shape).to_dtype(U8),
        d => panic!("element type {d}"),
    }
}

impl Figures {
    /// A case by name.
    pub fn case(&self, name: &str) -> Case {
        let v = self.cases.get(name).unwrap_or_else(|| panic!("{} has no case `{name}`", self.file));
        let all = |key: &str| v[key].as_array().unwrap().iter().map(tensor).collect();
        Case { inputs: all("inputs"), outputs: all("outputs") }
    }

    /// Keys of a layer's state dict, whose tensors are the last inputs of its case; none for other cases.
    pub fn keys(&self, name: &str) -> Vec<String> {
        let keys = self.cases[name].get("keys").and_then(Value::as_array);
        keys.into_iter().flatten().map(|k| k.as_str().unwrap().to_string()).collect()
    }

    /// Names of all cases, for checking that each one is tested.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cases.keys().map(String::as_str)
    }

    /// Runs `f` on the case's inputs eagerly and traced, and compares both with PyTorch's outputs: types exactly, values
    /// within `rtol * |want| + atol`.
    pub fn check(&self, name: &str, rtol: f64, atol: f64, f: impl Fn(&[Tensor]) -> Vec<Tensor>) {
        let c = self.case(name);
        let eager = f(&c.inputs);
        agree(&format!("{name}, eager"), &eager, &c.outputs, rtol, atol);
        let specs =
            |t: &Tensor| spec("x", t.dtype(), t.shape().iter().map(|d| d.to_usize()).collect::<Vec<usize>>());
        let m = ();
        let mut b = Program::of(&m);
        // inputs are constants of the trace but for the first, which is enough to record every op
        let program = match c.inputs.first() {
            Some(first) => {
                b = b.entry("f", [specs(first)], |_, [x]| {
                    let mut all = c.inputs.clone();
                    all[0] = x;
                    f(&all)
                });
                b.build()
            }
            None => b.entry("f", [], |_, []| f(&[])).build(),
        };
        let program = program.unwrap_or_else(|e| panic!("{name}, traced: {e}"));
        let given: Vec<Tensor> = c.inputs.iter().take(1).cloned().collect();
        let traced = program.run("f", &given).unwrap_or_else(|e| panic!("{name}, run: {e}"));
        agree(&format!("{name}, traced"), &traced, &c.outputs, rtol, atol);
    }
}

/// Compares results with those wanted.
pub fn agree(what: &str, got: &[Tensor], want: &[Tensor], rtol: f64, atol: f64) {
    assert_eq!(got.len(), want.len(), "{what}: number of results");
    for (g, w) in got.iter().zip(want) {
        assert_eq!(format!("{g:#}"), format!("{w:#}"), "{what}: types");
        for (i, (x, y)) in g.to_vec().into_iter().zip(w.to_vec()).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= rtol * y.abs() + atol;
            assert!(same, "{what}: element {i} is {x}, PyTorch has {y}");
        }
    }
}
