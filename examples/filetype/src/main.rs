//! What kind of file is this? An example of using the runtime from Rust: magika's model (an artifact built by tgc) on
//! features taken from files. Only the runtime is linked, no compiler.

mod features;

use features::{Config, Features};
use std::process::ExitCode;
use tgc_runtime::{DType, Model, Session, SessionOptions, Tensor};

const USAGE: &str = "usage: filetype --model MAGIKA.tgc --config CONFIG.json FILE...";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut model, mut config, mut files) = (None, None, Vec::new());
    while let Some(a) = args.next() {
        match a.as_str() {
            "--model" => model = args.next(),
            "--config" => config = args.next(),
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            _ => files.push(a),
        }
    }
    let (Some(model), Some(config), false) = (model, config, files.is_empty()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&model, &config, &files) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(1)
        }
    }
}

/// Prints one line a file; false if some file could not be read.
fn run(model: &str, config: &str, files: &[String]) -> Result<bool, Box<dyn std::error::Error>> {
    let config = Config::read(config)?;
    let mut rows = Vec::new();
    let mut all = true;
    for f in files {
        match features::of_file(f, &config) {
            Ok(x) => rows.push((f, x)),
            Err(e) => {
                eprintln!("error: {f}: {e}");
                all = false;
            }
        }
    }
    let tokens: Vec<&Vec<i32>> =
        rows.iter().filter_map(|(_, x)| if let Features::Tokens(t) = x { Some(t) } else { None }).collect();
    let mut scores = classify(model, &tokens)?.into_iter();
    for (f, x) in &rows {
        match x {
            Features::Told(what) => println!("{f}: {what}"),
            Features::Tokens(_) => println!("{f}: {}", config.verdict(&scores.next().unwrap_or_default())),
        }
    }
    Ok(all)
}

/// Scores of every label for every file, in one run: the batch is a dynamic dim of the artifact.
fn classify(model: &str, tokens: &[&Vec<i32>]) -> Result<Vec<Vec<f64>>, Box<dyn std::error::Error>> {
    let Some(width) = tokens.first().map(|t| t.len()) else { return Ok(Vec::new()) };
    let model = Model::open(model.as_ref())?;
    let entry = model.manifest().entries.first().ok_or("the artifact has no entry")?;
    let input = entry.inputs.first().ok_or("the model has no input")?.name.clone();
    let mut session = Session::new(&model, &entry.name, &SessionOptions::default())?;
    let bytes: Vec<u8> = tokens.iter().flat_map(|t| t.iter()).flat_map(|v| v.to_le_bytes()).collect();
    let x = Tensor::new(DType::I32, &[tokens.len(), width], &bytes)?;
    let outputs = session.run_owned(&[(&input, &x)])?;
    let (_, y) = outputs.first().ok_or("the model has no output")?;
    let labels = y.shape().last().copied().unwrap_or(1).max(1);
    Ok(y.to_f64().chunks(labels).map(<[f64]>::to_vec).collect())
}
