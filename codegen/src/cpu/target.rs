//! Targets of CPU code: what `--target` names, and the features that LLVM and the artifact are told of. What code is
//! emitted for them is elsewhere.

use crate::schedule::Isa;
use inkwell::OptimizationLevel;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, TargetMachine, TargetTriple};
use std::sync::Once;
use tgc_ir::diag::Diag;

/// A CPU to make code for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the user names it.
    pub name: String,
    /// Architecture by the name the runtime compares: `x86_64` or `aarch64`.
    pub arch: &'static str,
    /// Features the code needs, by LLVM's names, sorted; the loader compares them with the machine's.
    pub features: Vec<String>,
    /// What schedules may count on.
    pub isa: Isa,
    pub(super) cpu: String,
    pub(super) llvm_features: String,
    pub(super) tune: Option<String>,
}

const V2: &[&str] = &[
    "cmov", "crc32", "cx16", "cx8", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1",
    "sse4.2", "ssse3", "x87",
];
const V3: &[&str] = &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"];
const V4: &[&str] = &["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"];
const ARM: &[&str] = &["fp-armv8", "neon"];

/// Features that may be added to a base by `+name`, with what each needs beside the base.
const X86_MORE: &[(&str, &str)] = &[
    ("avx512bf16", "avx512bw"),
    ("avx512bitalg", "avx512bw"),
    ("avx512fp16", "avx512bw"),
    ("avx512ifma", "avx512bw"),
    ("avx512vbmi", "avx512bw"),
    ("avx512vbmi2", "avx512bw"),
    ("avx512vnni", "avx512bw"),
    ("avx512vpopcntdq", "avx512bw"),
    ("avxifma", "avx2"),
    ("avxvnni", "avx2"),
    ("f16c", "sse4.2"),
    ("fma", "sse4.2"),
    ("gfni", "sse4.2"),
];
const ARM_MORE: &[(&str, &str)] =
    &[("bf16", "neon"), ("dotprod", "neon"), ("fullfp16", "neon"), ("i8mm", "neon"), ("sve", "neon")];

const BASES: &[&str] = &["native", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"];

impl Target {
    /// The target `text` names: `native`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`, then `+feature`s.
    pub fn parse(text: &str) -> Result<Target, Diag> {
        let mut parts = text.split('+');
        let base = parts.next().unwrap_or("");
        let (arch, mut features): (_, Vec<String>) = match base {
            "native" => (native_arch(), native_features()?),
            "x86-64-v2" => ("x86_64", strings(&[V2])),
            "x86-64-v3" => ("x86_64", strings(&[V2, V3])),
            "x86-64-v4" => ("x86_64", strings(&[V2, V3, V4])),
            "aarch64" => ("aarch64", strings(&[ARM])),
            _ => {
                return Err(Diag::error("E-CPU-001", format!("there is no CPU target `{base}`"))
                    .note(format!("targets are {}", BASES.join(", ")))
                    .help("name one of these, with more features as in x86-64-v4+avx512vnni"));
            }
        };
        let more = if arch == "x86_64" { X86_MORE } else { ARM_MORE };
        for f in parts {
            let Some((_, needs)) = more.iter().find(|m| m.0 == f) else {
                let names: Vec<&str> = more.iter().map(|m| m.0).collect();
                return Err(Diag::error(
                    "E-CPU-001",
                    format!("target `{base}` cannot be given the feature `{f}`"),
                )
                .note(format!("features that can be added are {}", names.join(", ")))
                .help(
                    "name one of these, or leave it out: artifacts of the base run where the CPU has more",
                ));
            };
            if !features.iter().any(|have| have == needs) {
                return Err(Diag::error(
                    "E-CPU-001",
                    format!("feature `{f}` needs `{needs}`, which `{base}` lacks"),
                )
                .help("choose a higher base, such as x86-64-v4"));
            }
            features.push(f.to_string());
        }
        features.sort();
        features.dedup();
        Ok(Target::of(text, base, arch, features))
    }

    fn of(name: &str, base: &str, arch: &'static str, features: Vec<String>) -> Target {
        let has = |f: &str| features.iter().any(|x| x == f);
        let vector_bytes = match () {
            () if has("avx512f") => 64,
            () if has("avx2") => 32,
            () => 16,
        };
        let llvm_features: Vec<String> = features.iter().map(|f| format!("+{f}")).collect();
        let cpu = match (arch, base) {
            ("aarch64", _) => "generic",
            (_, "native") => "x86-64",
            (_, base) => base,
        };
        let tune = (base == "native").then(|| TargetMachine::get_host_cpu_name().to_string());
        Target {
            name: name.to_string(),
            arch,
            isa: Isa { vector_bytes, fma: has("fma") || arch == "aarch64" },
            cpu: cpu.to_string(),
            llvm_features: llvm_features.join(","),
            tune,
            features,
        }
    }

    /// True if the code may use a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }

    /// True if single lanes of vectors of elements of all these sizes (in bytes) can be read and written alone.
    pub(super) fn masks(&self, sizes: &[usize]) -> bool {
        match self.isa.vector_bytes {
            64 => !sizes.is_empty(),
            32 => !sizes.is_empty() && sizes.iter().all(|s| matches!(s, 4 | 8)),
            _ => false,
        }
    }

    /// True if this process's CPU has all features.
    pub fn runs_here(&self) -> bool {
        let have = tgc_runtime::host_features();
        self.arch == native_arch() && self.features.iter().all(|f| have.contains(&f.as_str()))
    }

    /// A new LLVM machine; machines are not shared between threads.
    pub(super) fn machine(&self) -> Result<TargetMachine, Diag> {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            inkwell::targets::Target::initialize_x86(&InitializationConfig::default());
            inkwell::targets::Target::initialize_aarch64(&InitializationConfig::default());
        });
        let triple = TargetTriple::create(&format!("{}-unknown-linux-gnu", self.arch));
        let gone = |why: String| {
            Diag::error("E-CPU-003", format!("LLVM cannot make code for `{}`: {why}", self.name))
                .help("install the LLVM named in README with its X86 and AArch64 targets")
        };
        let target = inkwell::targets::Target::from_triple(&triple).map_err(|e| gone(e.to_string()))?;
        target
            .create_target_machine(
                &triple,
                &self.cpu,
                &self.llvm_features,
                OptimizationLevel::Default,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| gone("no such machine".to_string()))
    }
}

fn strings(lists: &[&[&str]]) -> Vec<String> {
    lists.iter().flat_map(|l| l.iter()).map(|s| s.to_string()).collect()
}

fn native_arch() -> &'static str {
    std::env::consts::ARCH
}

/// Every x86-64 CPU has these; LLVM does not list all of them for the host.
const V1: &[&str] = &["cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"];

/// Features of this CPU that both LLVM and the runtime know by the same name.
fn native_features() -> Result<Vec<String>, Diag> {
    let llvm = TargetMachine::get_host_cpu_features().to_string();
    let llvm: Vec<&str> = llvm.split(',').filter_map(|f| f.strip_prefix('+')).collect();
    let both: Vec<String> = tgc_runtime::host_features()
        .into_iter()
        .filter(|f| llvm.contains(f) || V1.contains(f))
        .map(str::to_string)
        .collect();
    let least: &[&str] = if native_arch() == "x86_64" { V2 } else { ARM };
    match least.iter().find(|f| !both.iter().any(|b| b == *f)) {
        None => Ok(both),
        Some(f) => {
            Err(Diag::error("E-CPU-001", format!("this CPU cannot be a native target: it lacks `{f}`"))
                .help("name the target of the machine that will run the model, such as x86-64-v3"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_bases_and_features() {
        let v4 = Target::parse("x86-64-v4+avx512vnni").unwrap();
        assert_eq!((v4.arch, v4.isa), ("x86_64", Isa { vector_bytes: 64, fma: true }));
        assert!(v4.has("avx512vnni") && v4.has("sse2") && !v4.has("avx512bf16"));
        let v2 = Target::parse("x86-64-v2").unwrap();
        assert_eq!(v2.isa, Isa { vector_bytes: 16, fma: false });
        let native = Target::parse("native").unwrap();
        assert!(native.runs_here());
        let arm = Target::parse("aarch64+dotprod+i8mm").unwrap();
        assert_eq!((arm.arch, arm.isa), ("aarch64", Isa { vector_bytes: 16, fma: true }));
        assert_eq!(arm.features, ["dotprod", "fp-armv8", "i8mm", "neon"]);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let e = Target::parse("pentium").unwrap_err();
        assert!(e.to_string().contains("x86-64-v3") && e.to_string().contains("`pentium`"), "{e}");
        let e = Target::parse("x86-64-v3+avx512vnn").unwrap_err();
        assert!(e.to_string().contains("avx512vnni"), "{e}");
        let e = Target::parse("x86-64-v3+avx512vnni").unwrap_err();
        assert!(e.to_string().contains("needs `avx512bw`"), "{e}");
        let e = Target::parse("aarch64+avx2").unwrap_err();
        assert!(e.to_string().contains("`avx2`") && e.to_string().contains("dotprod, fullfp16, i8mm"), "{e}");
    }
}
