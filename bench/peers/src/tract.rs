//! tract: concrete shapes, optimized, an executor of its own. What must not be here: timing.

use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::RunOptions;
use tract_onnx::tract_core::plan::{SimplePlan, SimpleState};
use tract_onnx::tract_core::tract_linalg::multithread::Executor;

use crate::npy::{Array, Data};
use crate::{Engine, Job, Result};

pub(crate) struct Tract {
    state: SimpleState<TypedFact, Box<dyn TypedOp>>,
    inputs: TVec<TValue>,
    outputs: TVec<TValue>,
}

/// Loads the model with the inputs' shapes.
pub(crate) fn load(job: &Job) -> Result<Tract> {
    let mut model = tract_onnx::onnx().model_for_path(&job.model)?;
    let names: Vec<String> = model.input_outlets()?.iter().map(|o| model.node(o.node).name.clone()).collect();
    let mut inputs = tvec!();
    for (i, name) in names.iter().enumerate() {
        let given = job.inputs.iter().find(|(n, _)| n == name).ok_or_else(|| format!("no input {name}"))?;
        let array = &given.1;
        let tensor = match &array.data {
            Data::F32(v) => Tensor::from_shape(&array.shape, v)?,
            Data::I64(v) => Tensor::from_shape(&array.shape, v)?,
        };
        model.set_input_fact(i, InferenceFact::dt_shape(tensor.datum_type(), &array.shape))?;
        inputs.push(tensor.into());
    }
    let model = model.into_optimized()?;
    let executor =
        if job.threads <= 1 { Executor::SingleThread } else { Executor::multithread(job.threads) };
    let mut options = RunOptions::default();
    options.executor = Some(executor);
    let state = Arc::new(SimplePlan::new_with_options(model, &options)?).spawn()?;
    Ok(Tract { state, inputs, outputs: tvec!() })
}

impl Engine for Tract {
    fn run(&mut self) -> Result<()> {
        self.outputs = self.state.run(self.inputs.clone())?;
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>> {
        let mut found = Vec::new();
        for value in &self.outputs {
            let data = if value.datum_type() == i64::datum_type() {
                Data::I64(value.to_plain_array_view::<i64>()?.iter().copied().collect())
            } else {
                Data::F32(value.cast_to::<f32>()?.to_plain_array_view::<f32>()?.iter().copied().collect())
            };
            found.push(Array { shape: value.shape().to_vec(), data });
        }
        Ok(found)
    }
}
