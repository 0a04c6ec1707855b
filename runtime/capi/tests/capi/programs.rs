//! Compiles and runs the programs beside this file, and looks at the libraries from outside.

use std::collections::BTreeSet;
use std::process::Command;

use crate::artifacts::folder;
use crate::library::{Link, installed, ok, program, root, scratch, strict};

/// Runs a program on the artifacts; it must have made this many checks at least, without a fault.
fn passes(c: &mut Command, least: u32) {
    let said = ok(c.arg(folder()));
    let count = said.strip_suffix(" checks, 0 faults\n").and_then(|n| n.parse::<u32>().ok());
    assert!(count.is_some_and(|n| n >= least), "{said}");
}

#[test]
fn the_header_alone_is_strict_c_and_cpp() {
    let dir = scratch("header");
    for (compiler, standard, file) in
        [("cc", "c99", "a.c"), ("cc", "c11", "a.c"), ("c++", "c++11", "a.cpp"), ("c++", "c++17", "a.cpp")]
    {
        let source = dir.join(file);
        std::fs::write(
            &source,
            "#include <tgc.h>\n#include <tgc.h>\nint main(void);\nint main(void) { return TGC_OK; }\n",
        )
        .unwrap();
        ok(strict(compiler, standard).arg("-fsyntax-only").arg(source));
    }
}

/// The code in the header's first comment, and the example program.
#[test]
fn examples_are_strict_c() {
    let header = std::fs::read_to_string(root().join("include/tgc.h")).unwrap();
    let shown = header.split("*/").next().unwrap().lines().filter_map(|l| l.strip_prefix(" *     "));
    let body: Vec<&str> = shown.collect();
    assert!(body.len() > 10, "{body:?}");
    let source = scratch("examples").join("shown.c");
    let text = format!(
        "#include <stdio.h>\n#include <tgc.h>\nint main(void) {{\n{}\nreturn 0;\n}}\n",
        body.join("\n")
    );
    std::fs::write(&source, text).unwrap();
    for file in [source, root().join("../../examples/c/run.c")] {
        ok(strict("cc", "c99").arg("-fsyntax-only").arg(file));
    }
}

#[test]
fn all_that_the_header_promises() {
    for link in [Link::Static, Link::Dynamic] {
        passes(&mut Command::new(program("contract.c", link, &format!("contract-{link:?}"), &[])), 150);
    }
}

/// The library's code is not instrumented; its allocations are, and all that the program does.
#[test]
fn all_that_the_header_promises_under_sanitizers() {
    let extra = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let mut c = Command::new(program("contract.c", Link::Static, "contract-sanitized", &extra));
    passes(c.env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0"), 150);
}

#[test]
fn threads_share_a_model() {
    for link in [Link::Static, Link::Dynamic] {
        passes(&mut Command::new(program("threads.c", link, &format!("threads-{link:?}"), &[])), 30);
    }
}

#[test]
fn runs_allocate_nothing() {
    let wraps = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];
    let wraps = wraps.map(|w| format!("-Wl,--wrap={w}"));
    let mut extra: Vec<&str> = wraps.iter().map(String::as_str).collect();
    extra.push("-std=c11");
    passes(&mut Command::new(program("steady.c", Link::Static, "steady", &extra)), 10);
}

#[test]
fn cpp_programs_link_and_run() {
    for link in [Link::Static, Link::Dynamic] {
        passes(&mut Command::new(program("wrapper.cpp", link, &format!("wrapper-{link:?}"), &[])), 4);
    }
}

/// Functions declared by the header.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(root().join("include/tgc.h")).unwrap();
    let code = header.split("*/").map(|part| part.split("/*").next().unwrap_or_default()).collect::<String>();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let calls = code.split('(').filter_map(|before| before.rsplit(|c: char| !is_word(c)).next());
    calls.filter(|name| name.starts_with("tgc_")).map(str::to_string).collect()
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_nothing_else() {
    let said = ok(Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(installed().join("lib/libtgc.so")));
    let exported: BTreeSet<String> =
        said.lines().filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect();
    let declared = declared();
    assert_eq!(declared.len(), 20, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn the_shared_library_names_its_version_and_needs_only_the_system() {
    let said = ok(Command::new("readelf").args(["-d", "-W"]).arg(installed().join("lib/libtgc.so")));
    let of = |kind: &str| -> Vec<String> {
        let lines = said.lines().filter(|l| l.contains(kind));
        lines.filter_map(|l| Some(l.split_once('[')?.1.split_once(']')?.0.to_string())).collect()
    };
    assert_eq!(of("(SONAME)"), ["libtgc.so.0"], "{said}");
    for needed in of("(NEEDED)") {
        let known = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];
        assert!(known.iter().any(|k| needed.starts_with(k)), "unexpected library: {needed}");
    }
    assert!(said.contains("NODELETE"), "{said}");
    let size = std::fs::metadata(installed().join("lib/libtgc.so")).unwrap().len();
    assert!(size < 1_500_000, "libtgc.so is {size} bytes stripped");
}
