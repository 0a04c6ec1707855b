//! Finds fixtures and what lies beside them.

use std::fs;
use std::path::{Path, PathBuf};

/// What is done with a fixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Op,
    Fail,
    Diag,
    Pass,
}

/// A fixture file.
pub struct Fixture {
    pub kind: Kind,
    pub path: PathBuf,
    /// Path below `tests/`, without extension.
    pub name: String,
}

impl Fixture {
    pub fn test_name(&self) -> String {
        self.name.replace('/', "::")
    }

    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub fn stem(&self) -> String {
        self.path.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned())
    }

    fn has_snapshot(&self) -> bool {
        matches!(self.kind, Kind::Diag | Kind::Pass)
    }
}

#[derive(Default)]
pub struct Found {
    pub fixtures: Vec<Fixture>,
    pub stray: Vec<String>,
}

pub fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

pub fn walk() -> Found {
    let mut found = Found::default();
    for top in ["text", "ops", "passes", "diag"] {
        folder(&tests_folder().join(top), top, &mut found);
    }
    found
}

fn folder(dir: &Path, below: &str, found: &mut Found) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    let mut snapshots = Vec::new();
    for path in paths {
        let file = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if path.is_dir() {
            folder(&path, &format!("{below}/{file}"), found);
        } else if let Some(stem) = file.strip_suffix(".tgir") {
            let kind = match below {
                "ops/fail" => Kind::Fail,
                _ if below.starts_with("ops") => Kind::Op,
                _ if below.starts_with("diag") => Kind::Diag,
                _ if below.starts_with("passes") => Kind::Pass,
                _ => Kind::Text,
            };
            found.fixtures.push(Fixture { kind, name: format!("{below}/{stem}"), path });
        } else if let Some(stem) = file.strip_suffix(".snap") {
            snapshots.push(format!("{below}/{stem}"));
        } else {
            found.stray.push(format!("tests/{below}/{file}"));
        }
    }
    for s in snapshots {
        if !found.fixtures.iter().any(|f| f.name == s && f.has_snapshot()) {
            found.stray.push(format!("tests/{s}.snap"));
        }
    }
}
