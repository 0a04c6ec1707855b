//! ONNX Runtime through its C API, inputs and outputs bound once. What must not be here: timing.

use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, Session};
use ort::value::{DynTensor, Tensor, TensorElementType};

use crate::npy::{Array, Data};
use crate::{Engine, Job, Result};

pub(crate) struct OnnxRuntime {
    session: Session,
    binding: IoBinding,
    /// Outputs get memory of their own once a run has told their shapes.
    bound: bool,
    outputs: Vec<Array>,
}

/// Loads the model with all optimizations and with the dims fixed, which the engine uses to plan memory.
pub(crate) fn load(job: &Job) -> Result<OnnxRuntime> {
    let environment = ort::init_from(&job.library)?.build()?;
    let mut builder = Session::builder(&environment)?
        .with_intra_threads(job.threads)?
        .with_inter_threads(1)?
        .with_optimization_level(GraphOptimizationLevel::All)?;
    for (name, n) in &job.dims {
        builder = builder.with_dimension_override(name, *n)?;
    }
    let session = builder.commit_from_file(&job.model)?;
    let mut binding = session.create_binding()?;
    for (name, array) in &job.inputs {
        match &array.data {
            Data::F32(v) => {
                binding.bind_input(name, &Tensor::from_array((array.shape.clone(), v.clone()))?)?
            }
            Data::I64(v) => {
                binding.bind_input(name, &Tensor::from_array((array.shape.clone(), v.clone()))?)?
            }
        }
    }
    let info = session.allocator().memory_info();
    for output in session.outputs() {
        binding.bind_output_to_device(output.name(), &info)?;
    }
    Ok(OnnxRuntime { session, binding, bound: false, outputs: Vec::new() })
}

impl OnnxRuntime {
    /// The first run: reads the outputs, then binds tensors of their shapes.
    fn first(&mut self) -> Result<()> {
        let names: Vec<String> = self.session.outputs().iter().map(|o| o.name().to_string()).collect();
        let mut shapes = Vec::new();
        {
            let outputs = self.session.run_binding(&self.binding)?;
            for name in &names {
                let value = &outputs[name.as_str()];
                let (kind, shape, data) = if let Ok((shape, v)) = value.try_extract_tensor::<f32>() {
                    (TensorElementType::Float32, shape, Data::F32(v.to_vec()))
                } else {
                    let (shape, v) = value.try_extract_tensor::<i64>()?;
                    (TensorElementType::Int64, shape, Data::I64(v.to_vec()))
                };
                let dims = shape.iter().map(|d| usize::try_from(*d)).collect::<std::result::Result<_, _>>()?;
                shapes.push((kind, shape.clone()));
                self.outputs.push(Array { shape: dims, data });
            }
        }
        self.binding.clear_outputs();
        for (name, (kind, shape)) in names.into_iter().zip(shapes) {
            self.binding.bind_output(name, DynTensor::new(self.session.allocator(), kind, shape)?)?;
        }
        self.bound = true;
        Ok(())
    }
}

impl Engine for OnnxRuntime {
    fn run(&mut self) -> Result<()> {
        if !self.bound {
            return self.first();
        }
        self.session.run_binding(&self.binding)?;
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>> {
        Ok(std::mem::take(&mut self.outputs))
    }
}
