//! `tgc export`: a model as an ONNX file. What must not be here: how it is written (`tgc::export`).

use super::{Failure, ModelArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tgc::{AxisName, ExportOptions, External, OPSETS};

#[derive(Args)]
pub struct ExportArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The ONNX file to write.
    #[arg(short, long)]
    output: PathBuf,
    /// Opset of the file, 13 to 28. Operations are written in the best form that the opset has; what has none is named.
    #[arg(long, value_name = "N", default_value_t = OPSETS.2, value_parser = clap::value_parser!(i64).range(OPSETS.0..=OPSETS.1))]
    opset: i64,
    /// Names for sizes of the inputs' axes that are dynamic in the model: x:0=batch,x:1=seq. Repeatable.
    #[arg(long, value_name = "INPUT:AXIS=NAME", value_delimiter = ',')]
    dynamic_axes: Vec<AxisName>,
    /// Where weights go: beside the file, as OUTPUT.data, or into it.
    #[arg(long, value_enum, default_value = "auto")]
    external_data: ExternalArg,
    /// The entry to write, where the model has several.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Read the file back and compare it with the model, on random inputs at several sizes of each dynamic axis, in the
    /// interpreter and, where a Python with onnxruntime is found (TGC_PYTHON, else python3), in ONNX Runtime. No file is
    /// written if they differ.
    #[arg(long)]
    verify: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ExternalArg {
    /// Beside it where the model is larger than 2 GB, as one file cannot be.
    Auto,
    /// Beside it.
    Always,
    /// Into it; a model larger than 2 GB is refused.
    Never,
}

pub fn run(a: &ExportArgs) -> Result<(), Failure> {
    let options = ExportOptions {
        opset: a.opset,
        entry: a.entry.clone(),
        axes: a.dynamic_axes.clone(),
        external: match a.external_data {
            ExternalArg::Auto => External::Auto,
            ExternalArg::Always => External::Always,
            ExternalArg::Never => External::Never,
        },
    };
    super::keep(Some(&a.output), &[&a.model.model])?;
    let module = a.model.load()?;
    for line in tgc::export(&module, &options, &a.output, a.verify)? {
        eprintln!("{line}");
    }
    Ok(())
}
