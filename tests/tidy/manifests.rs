//! Which crate may depend on which, read from the manifests. A new crate or edge is a decision: it is written down here.

use crate::source::Tree;

/// Every crate of the repository and the crates of the repository it may depend on, development dependencies included.
const EDGES: &[(&str, &[&str])] = &[
    ("tgc-ir", &[]),
    ("tgc-proto", &[]),
    ("tgc-proto-regen", &[]),
    ("tgc-runtime", &[]),
    ("tgc-run", &["tgc-runtime"]),
    ("tgc-capi", &["tgc-runtime"]),
    ("filetype", &["tgc-runtime"]),
    ("guest", &["tgc-runtime"]),
    ("peers", &[]),
    ("tgc-fuzz", &["tgc-ir", "tgc-frontend", "tgc-codegen", "tgc-runtime"]),
    ("tgc-derive", &[]),
    ("tgc-frontend", &["tgc-ir", "tgc-proto", "tgc-derive"]),
    ("tgc-zoo", &["tgc-frontend"]),
    ("own-model", &["tgc-frontend"]),
    ("tgc-passes", &["tgc-ir"]),
    ("tgc-codegen", &["tgc-ir", "tgc-proto", "tgc-runtime", "guest"]),
    (
        "tgc",
        &[
            "tgc-ir",
            "tgc-proto",
            "tgc-frontend",
            "tgc-zoo",
            "tgc-passes",
            "tgc-codegen",
            "tgc-runtime",
            "guest",
        ],
    ),
];

/// Crates from elsewhere that only some crates may use directly.
const RESERVED: &[(&str, &[&str])] = &[
    ("inkwell", &["tgc-codegen"]),
    ("llvm-sys", &["tgc-codegen"]),
    ("petgraph", &["tgc-ir"]),
    ("prost", &["tgc-proto", "tgc-frontend", "tgc-codegen"]),
    ("rayon", &["tgc-codegen"]),
];

/// What ships stays small: all that the runtime library may use.
const RUNTIME_USES: &[&str] = &["memmap2", "half"];

/// A manifest, as far as the rules need it.
pub struct Manifest {
    pub folder: String,
    pub name: String,
    /// (section, dependency)
    pub dependencies: Vec<(String, String)>,
}

/// The manifests of all packages in the tree.
pub fn manifests(tree: &Tree) -> Vec<Manifest> {
    let files = tree.files.iter().filter(|f| f.path == "Cargo.toml" || f.path.ends_with("/Cargo.toml"));
    files.filter_map(|f| parse(f.path.trim_end_matches("Cargo.toml"), &f.text)).collect()
}

fn parse(folder: &str, text: &str) -> Option<Manifest> {
    let mut section = String::new();
    let (mut name, mut dependencies) = (None, Vec::new());
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']').to_string();
            // [dependencies.foo]
            if let Some((before, dependency)) = section.rsplit_once("dependencies.") {
                dependencies.push((format!("{before}dependencies"), dependency.to_string()));
                section.clear();
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
        if section == "package" && key == "name" {
            name = Some(value.trim().trim_matches('"').to_string());
        } else if section.ends_with("dependencies") && section != "workspace.dependencies" {
            let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            dependencies.push((section.clone(), renamed.unwrap_or(key).to_string()));
        }
    }
    Some(Manifest { folder: folder.trim_end_matches('/').to_string(), name: name?, dependencies })
}

/// Edges that the map does not have.
pub fn edges(tree: &Tree) -> Vec<String> {
    let all = manifests(tree);
    let mut bad = Vec::new();
    for manifest in &all {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == manifest.name) else {
            bad.push(format!("{}/Cargo.toml: crate {} is not on the map", manifest.folder, manifest.name));
            continue;
        };
        for (section, dependency) in &manifest.dependencies {
            let ours = all.iter().any(|m| m.name == *dependency);
            let reserved = RESERVED.iter().find(|(name, _)| name == dependency);
            let fault = if ours && !allowed.contains(&dependency.as_str()) {
                format!("may only depend on {allowed:?} of this repository")
            } else if let Some((_, users)) = reserved.filter(|(_, users)| !users.contains(&&*manifest.name)) {
                format!("is for {users:?} alone")
            } else if manifest.name == "tgc-runtime"
                && section == "dependencies"
                && !RUNTIME_USES.contains(&dependency.as_str())
            {
                format!("the runtime library may only use {RUNTIME_USES:?}")
            } else {
                continue;
            };
            bad.push(format!("{} -> {dependency} [{section}]: {fault}", manifest.name));
        }
    }
    bad
}
