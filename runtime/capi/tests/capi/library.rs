//! The library as it is installed, and programs made with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// This crate's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for one test's files, empty at first.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs a command that must succeed; gives its stdout.
pub fn ok(c: &mut Command) -> String {
    let out = c.output().unwrap_or_else(|e| panic!("{c:?}: {e}"));
    let text = [&out.stdout, &out.stderr].map(|t| String::from_utf8_lossy(t));
    assert!(out.status.success(), "{c:?} failed ({}):\n{}{}", out.status, text[0], text[1]);
    text[0].to_string()
}

/// Where `install` has put header and libraries, once for all tests.
pub fn installed() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = scratch("installed");
        ok(Command::new(root().join("install")).arg(&dir));
        dir
    })
}

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// `libtgc.a`, the rest by shared libraries.
    Static,
    /// `libtgc.so`.
    Dynamic,
}

/// A compiler that is strict, with the header's folder.
pub fn strict(compiler: &str, standard: &str) -> Command {
    let mut c = Command::new(compiler);
    c.arg(format!("-std={standard}")).args([
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        "-pedantic",
        "-g",
    ]);
    c.arg("-I").arg(installed().join("include"));
    c
}

/// Makes a program of a source beside this file.
pub fn program(source: &str, link: Link, name: &str, extra: &[&str]) -> PathBuf {
    let to = scratch(name).join("program");
    let from = root().join("tests/capi").join(source);
    let (compiler, standard) = if source.ends_with(".cpp") { ("c++", "c++17") } else { ("cc", "c99") };
    let lib = installed().join("lib");
    let mut c = strict(compiler, standard);
    c.args(["-D_POSIX_C_SOURCE=200809L", "-O1"]).arg("-o").arg(&to).arg(from).args(extra);
    match link {
        Link::Static => c.arg(lib.join("libtgc.a")).args(["-lm", "-lpthread", "-ldl"]),
        Link::Dynamic => {
            c.arg("-L").arg(&lib).args(["-ltgc", "-lpthread"]).arg(format!("-Wl,-rpath,{}", lib.display()))
        }
    };
    ok(&mut c);
    to
}
