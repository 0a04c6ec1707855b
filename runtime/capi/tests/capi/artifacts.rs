//! Artifact files for the C programs, good ones and one for each way an artifact can be refused.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tgc_runtime::{Entry, Expr, Guard, Manifest, Pred};

use crate::library::scratch;
use crate::machine::{build, build_with, by_data, image, simple, with_default};

/// The folder with all of them.
pub fn folder() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = scratch("artifacts");
        let put = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).unwrap();
        let good = build(&simple());
        put("simple.tgc", &good);
        put("by_data.tgc", &build(&by_data()));
        let (m, weights) = with_default();
        put("default.tgc", &build_with(&m, &weights));
        put("two_entries.tgc", &build(&two_entries()));
        put("guarded.tgc", &build(&guarded()));
        put("elsewhere.tgc", &build(&elsewhere()));
        put("cut.tgc", &good[..good.len() / 2]);
        let mut changed = good.clone();
        *changed.last_mut().unwrap() ^= 1;
        put("changed.tgc", &changed);
        put("text.tgc", "This is a text file, whatever its name says.\n".repeat(20).as_bytes());
        use std::os::unix::ffi::OsStrExt;
        std::fs::write(dir.join(std::ffi::OsStr::from_bytes(b"b\xfftes.tgc")), &good).unwrap();
        dir
    })
}

fn two_entries() -> Manifest {
    let mut m = simple();
    let other = Entry { name: "other".into(), ..m.entries[0].clone() };
    m.entries.push(other);
    m
}

/// At most 4 rows by a condition of the model, of 64 by its range.
fn guarded() -> Manifest {
    let mut m = simple();
    let pred = Pred::Le(Expr::Sym(0), Expr::Const(4));
    m.entries[0].guards.push(Guard { pred, message: "node `cut`".into() });
    m
}

fn elsewhere() -> Manifest {
    let mut m = simple();
    m.images = vec![image("far-away", &["levitation"])];
    m
}
