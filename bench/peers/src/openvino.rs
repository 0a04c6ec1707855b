//! OpenVINO through its C API: a static shape, the request's own tensors. What must not be here: timing.

use openvino::{CompiledModel, Core, DeviceType, Dimension, ElementType, InferRequest, PartialShape, RwPropertyKey};

use crate::npy::{Array, Data};
use crate::{Engine, Job, Result};

pub(crate) struct OpenVino {
    request: InferRequest,
    compiled: CompiledModel,
    _core: Core,
}

/// Loads the model for single requests in f32 (`f32` is a hint that some CPUs need to not choose bf16).
pub(crate) fn load(job: &Job) -> Result<OpenVino> {
    openvino_sys::library::load_from(job.library.clone())?;
    let mut core = Core::new()?;
    let threads = job.threads.to_string();
    let settings = [
        (RwPropertyKey::InferenceNumThreads, threads.as_str()),
        (RwPropertyKey::NumStreams, "1"),
        (RwPropertyKey::HintPerformanceMode, "LATENCY"),
        (RwPropertyKey::HintInferencePrecision, "f32"),
    ];
    core.set_properties(&DeviceType::CPU, settings)?;
    let path = job.model.to_str().ok_or("the model's path is no UTF-8")?;
    let mut model = core.read_model_from_file(path, "")?;
    let mut shapes = Vec::new();
    for (name, array) in &job.inputs {
        let dims = array.shape.iter().map(|d| Ok(i64::try_from(*d)?)).collect::<Result<Vec<i64>>>()?;
        let dims: Vec<Dimension> = dims.into_iter().map(|d| Dimension::new(d, d)).collect();
        shapes.push((name.as_str(), PartialShape::new(i64::try_from(dims.len())?, &dims)?));
    }
    model.reshape(&shapes.iter().map(|(n, s)| (*n, s)).collect::<Vec<_>>())?;
    let mut compiled = core.compile_model(&model, DeviceType::CPU)?;
    let request = compiled.create_infer_request()?;
    for (name, array) in &job.inputs {
        request.get_tensor(name)?.get_raw_data_mut()?.copy_from_slice(&array.bytes());
    }
    Ok(OpenVino { request, compiled, _core: core })
}

impl Engine for OpenVino {
    fn run(&mut self) -> Result<()> {
        Ok(self.request.infer()?)
    }

    fn outputs(&mut self) -> Result<Vec<Array>> {
        let mut found = Vec::new();
        for i in 0..self.compiled.get_output_size()? {
            let tensor = self.request.get_output_tensor_by_index(i)?;
            let shape = tensor.get_shape()?;
            let dims = shape.get_dimensions().iter().map(|d| usize::try_from(*d));
            let shape = dims.collect::<std::result::Result<Vec<_>, _>>()?;
            let data = match tensor.get_element_type()? {
                ElementType::F32 => Data::F32(tensor.get_data::<f32>()?.to_vec()),
                ElementType::I64 => Data::I64(tensor.get_data::<i64>()?.to_vec()),
                other => return Err(format!("output {i} is {other:?}").into()),
            };
            found.push(Array { shape, data });
        }
        Ok(found)
    }
}
