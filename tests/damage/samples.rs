//! The whole files that are damaged: made once by the test itself, or prepared by `./test`.

use crate::artifact::Artifact;
use crate::model::{Kernels, Onnx, Text};
use crate::rng::Rng;
use crate::verdict::Verdict;
use std::path::{Path, PathBuf};
use tgc::BuildOptions;
use tgc::ir::module::Module;

/// Names of the files, by which cases are called.
pub const NAMES: [&str; 8] = [
    "artifact-small",
    "artifact-kernels",
    "artifact-fat",
    "onnx-magika",
    "onnx-swift-f0",
    "onnx-small",
    "tgir",
    "kernels",
];

/// Dynamic dims, a table looked up by data, guards on sizes.
const SMALL: &str = r#"
weight "table" : f32[6, 4] = dense<[[0.5, -1.0, 2.0, 0.25], [1.5, 1.0, -2.0, 0.75], [0.0, 3.0, 2.5, -0.25], [1.0, 1.0, 1.0, 1.0], [2.0, 0.5, 0.5, -1.0], [4.0, -0.5, 0.125, 8.0]]>
weight "bias" : f32[4] = dense<[0.5, -0.5, 0.25, 1.0]>

graph @look(%i: i64[batch, n], %b: f32[4] default "bias") -> (f32[batch, n, 4] "y", f32[batch, 4] "mean") {
  %t = weight "table" : f32[6, 4]
  %e = gather %t, %i {axis = 0} : f32[batch, n, 4]
  %a = add %e, %b : f32[batch, n, 4]
  %s = softmax %a : f32[batch, n, 4]
  %m = reduce_mean %a {axes = [1], keepdims = false} : f32[batch, 4]
  return %s, %m
}

graph @product(%x: f32[rows, 4]) -> f32[rows, 6] "z" {
  %t = weight "table" : f32[6, 4]
  %u = transpose %t {perm = [1, 0]} : f32[4, 6]
  %z = matmul %x, %u : f32[rows, 6]
  %r = relu %z : f32[rows, 6]
  return %r
}
"#;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file under target/, which `./test` has put there.
fn prepared(path: &str) -> PathBuf {
    let p = root().join("target/models").join(path);
    assert!(p.exists(), "{} is missing: run ./test, which prepares it", p.display());
    p
}

/// Where whole and damaged files lie.
pub fn folder() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damage");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn whole(name: &str) -> PathBuf {
    folder().join("whole").join(name)
}

fn swift() -> PathBuf {
    prepared("swift-f0-0.3.0/swift_f0/model.onnx")
}

fn magika() -> PathBuf {
    prepared("magika-1.0.3/magika/models/standard_v3_3/model.onnx")
}

/// Builds what is built. Workers read the result.
pub fn prepare() {
    std::fs::create_dir_all(whole("")).unwrap();
    let small = tgc::ir::text::parse_module(SMALL, &|_| None).unwrap_or_else(|d| panic!("{d:?}"));
    let trained = load(&swift());
    artifact("artifact-small", &small, &["native"]);
    artifact("artifact-kernels", &trained, &["native"]);
    artifact("artifact-fat", &load(&prepared("made/mlp.onnx")), &["native", "x86-64-v3", "x86-64-v2"]);
    tgc::ir::weights::save_module(&trained, &whole("trained.tgir")).unwrap();
    let lowered = tgc::lower(&mut trained.clone(), &BuildOptions::default(), &mut |_| {}).unwrap();
    let texts: Vec<String> = lowered.kernels.iter().map(tgc::codegen::kernel::text::print).collect();
    std::fs::write(whole("kernels.txt"), texts.join("\n")).unwrap();
}

fn load(path: &Path) -> Module {
    tgc::load(path, &Default::default()).unwrap_or_else(|d| panic!("{d:?}")).0
}

fn artifact(name: &str, module: &Module, targets: &[&str]) {
    let options =
        BuildOptions { targets: targets.iter().map(|t| t.to_string()).collect(), ..BuildOptions::default() };
    let artifact =
        tgc::build(&mut module.clone(), &options, &mut |_| {}, &|| ()).unwrap_or_else(|d| panic!("{d:?}"));
    artifact.write(&whole(&format!("{name}.tgc"))).unwrap();
}

/// The files of these folders with this extension, in order of their names.
fn files(folders: &[PathBuf], extension: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for f in folders {
        let found = std::fs::read_dir(f).unwrap_or_else(|e| panic!("{}: {e}", f.display()));
        all.extend(
            found.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == extension)),
        );
    }
    all.sort();
    all
}

/// The models of the ONNX suite's single operators.
fn suite() -> Vec<PathBuf> {
    let suite = prepared("onnx-suite-1.22.0");
    let cases: Vec<PathBuf> = ["node", "simple"]
        .iter()
        .flat_map(|kind| std::fs::read_dir(suite.join(kind)).unwrap())
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    files(&cases, "onnx")
}

/// The whole files in memory, each read when first asked for.
#[derive(Default)]
pub struct Held {
    artifacts: std::collections::BTreeMap<String, Artifact>,
    models: std::collections::BTreeMap<String, Onnx>,
    text: Option<Text>,
    kernels: Option<Kernels>,
}

impl Held {
    /// What case `n` of a file does to it, and what becomes of that.
    pub fn case(&mut self, file: &str, n: usize) -> (String, Result<Verdict, String>) {
        let seed = NAMES.iter().take_while(|f| **f != file).count() as u64;
        let mut rng = Rng::new(seed << 40 | n as u64);
        let damaged = damaged(file, n);
        match file {
            "onnx-magika" | "onnx-swift-f0" | "onnx-small" => {
                let made = || match file {
                    "onnx-magika" => Onnx::new(vec![magika()]),
                    "onnx-swift-f0" => Onnx::new(vec![swift()]),
                    _ => Onnx::new(suite()),
                };
                self.models.entry(file.to_string()).or_insert_with(made).case(&mut rng, &damaged)
            }
            "tgir" => {
                let made = || {
                    let fixtures = ["tests/text", "tests/ops"].map(|f| root().join(f));
                    let mut all = files(&fixtures, "tgir");
                    // as often as a fifth of the fixtures together: it has weights beside it
                    all.extend(std::iter::repeat_n(whole("trained.tgir"), all.len() / 5));
                    Text::new(all)
                };
                self.text.get_or_insert_with(made).case(&mut rng, &damaged)
            }
            "kernels" => self
                .kernels
                .get_or_insert_with(|| Kernels::read(&whole("kernels.txt"), load(&swift())))
                .case(&mut rng, &damaged),
            _ => {
                let path = whole(&format!("{file}.tgc"));
                assert!(path.exists(), "{file} is none of {NAMES:?}");
                self.artifacts
                    .entry(file.to_string())
                    .or_insert_with(|| Artifact::read(&path))
                    .case(&mut rng, &damaged)
            }
        }
    }
}

/// Where the damaged file of a case lies while it is looked at.
pub fn damaged(file: &str, n: usize) -> PathBuf {
    let extension = match file.split('-').next() {
        Some("artifact") => "tgc",
        Some("onnx") => "onnx",
        Some("tgir") => "tgir",
        _ => "txt",
    };
    folder().join(format!("{file}-{n}.{extension}"))
}
