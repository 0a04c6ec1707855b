//! Gives the shared library its name for the loader, which holds the interface's version, and keeps it loaded: its threads
//! cannot be unloaded under their feet.

use std::io::{Error, Result};

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=include/tgc.h");
    if std::env::var_os("CARGO_CFG_TARGET_OS").is_none_or(|os| os != "linux") {
        return Ok(());
    }
    let header = std::fs::read_to_string("include/tgc.h")?;
    let version = header.lines().find_map(|l| l.strip_prefix("#define TGC_ABI_VERSION "));
    let version = version.ok_or_else(|| Error::other("include/tgc.h does not define TGC_ABI_VERSION"))?;
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtgc.so.{version}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    Ok(())
}
