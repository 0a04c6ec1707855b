//! Tests that `include/tgc.h` and this crate say the same, from the texts of both: codes, element types, structures with
//! their fields, functions with their parameters. What must not be here: what the compiler or the linker can say better.

use std::collections::BTreeMap;

const HEADER: &str = include_str!("../include/tgc.h");
const EXPORTS: &str = include_str!("exports.rs");

/// The header without comments, directives and what is for C++ only.
fn header() -> String {
    let mut text = String::new();
    let mut rest = HEADER;
    while let Some((before, after)) = rest.split_once("/*") {
        text += before;
        rest = after.split_once("*/").expect("an open comment").1;
    }
    text += rest;
    let code = text.lines().filter(|l| !l.starts_with('#') && !l.contains("extern \"C\"") && *l != "}");
    code.collect::<Vec<_>>().join("\n")
}

/// The text between `open` and the first `close` behind it, for each `open`.
fn blocks<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.match_indices(open).map(|(at, _)| text[at + open.len()..].split(close).next().unwrap()).collect()
}

/// `NAME = 3` for every enumerator.
fn enumerators() -> BTreeMap<String, i32> {
    let text = header();
    let all = blocks(&text, "enum {", "}").join(",");
    let pairs = all.split(',').map(str::trim).filter(|p| !p.is_empty());
    let pairs = pairs.map(|p| p.split_once(" = ").unwrap_or_else(|| panic!("{p:?} has no number")));
    pairs.map(|(name, number)| (name.to_string(), number.parse().unwrap())).collect()
}

/// `NotArtifact` -> `NOT_ARTIFACT`.
fn upper(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.char_indices() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_uppercase());
    }
    out
}

/// The arms `Type::Name => value,` of a Rust text.
fn arms<'a>(text: &'a str, kind: &str) -> Vec<(&'a str, &'a str)> {
    let found =
        text.lines().filter_map(|l| l.trim().strip_prefix(kind)?.strip_suffix(',')?.split_once(" => "));
    found.collect()
}

#[test]
fn codes_and_element_types_have_the_numbers_of_the_header() {
    let mut want = BTreeMap::from([("TGC_OK".into(), crate::status::OK)]);
    want.insert("TGC_ERROR_BUG".into(), crate::status::BUG);
    let codes = arms(include_str!("status.rs"), "Code::");
    let texts = arms(include_str!("../../src/error.rs"), "Code::");
    assert_eq!(codes.len(), texts.len());
    for ((name, number), (other, text)) in codes.into_iter().zip(texts) {
        assert_eq!((name, format!("\"E-RUN-{:0>3}\"", number).as_str()), (other, text));
        want.insert(format!("TGC_ERROR_{}", upper(name)), number.parse().unwrap());
    }
    for (name, number) in arms(include_str!("describe.rs"), "Element::") {
        want.insert(format!("TGC_{}", name.to_uppercase()), number.parse().unwrap());
    }
    assert_eq!(want.len(), 2 + 20 + 13);
    assert_eq!(enumerators(), want);
}

#[test]
fn other_constants_are_those_of_the_header() {
    let define = |name: &str| {
        let line = HEADER.lines().find_map(|l| l.strip_prefix(&format!("#define {name} ")));
        line.unwrap_or_else(|| panic!("{name} is not defined"))
    };
    assert_eq!(define("TGC_ABI_VERSION"), crate::ABI_VERSION.to_string());
    assert_eq!((define("TGC_LEFT_OUT"), crate::session::LEFT_OUT), ("SIZE_MAX", usize::MAX));
}

/// A Rust type as C writes it, without blanks around `*`.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(rest) = rust.strip_prefix("*const ") {
        let inner = c_type(rest);
        return if inner.ends_with('*') { format!("{inner}const*") } else { format!("const {inner}*") };
    }
    if let Some(rest) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(rest));
    }
    let plain = [
        ("c_char", "char"),
        ("c_void", "void"),
        ("usize", "size_t"),
        ("i32", "int32_t"),
        ("i64", "int64_t"),
        ("u32", "uint32_t"),
        ("u64", "uint64_t"),
        ("DType", "tgc_dtype"),
        ("Options", "tgc_session_options"),
    ];
    let known = plain.iter().find(|(r, _)| *r == rust).map(|(_, c)| c.to_string());
    known.unwrap_or_else(|| format!("tgc_{}", upper(rust).to_lowercase()))
}

/// A C declaration's type and name: `const char *name` -> (`const char*`, `name`).
fn c_declared(text: &str) -> (String, String) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = text.rfind([' ', '*']).map_or(0, |i| i + 1);
    let kind = text[..at].trim().replace(" *", "*").replace("* ", "*");
    (kind, text[at..].to_string())
}

fn rust_declared(text: &str) -> (String, String) {
    let (name, kind) = text.trim().trim_start_matches("pub ").split_once(": ").unwrap();
    (c_type(kind), name.to_string())
}

type Fields = Vec<(String, String)>;

#[test]
fn structures_have_the_same_fields() {
    let text = header();
    let mut c = BTreeMap::new();
    for block in text.split("typedef struct ").skip(1) {
        let (head, rest) = block.split_at(block.find(['{', ';']).unwrap());
        let Some(body) = rest.strip_prefix('{') else { continue };
        let fields = body.split('}').next().unwrap().split(';').map(str::trim).filter(|f| !f.is_empty());
        c.insert(head.trim().to_string(), fields.map(c_declared).collect::<Fields>());
    }
    let mut rust = BTreeMap::new();
    for text in [include_str!("describe.rs"), include_str!("session.rs")] {
        for block in blocks(text, "#[repr(C)]\npub struct ", "}") {
            let (name, body) = block.split_once('{').unwrap();
            let fields = body.split(',').map(str::trim).filter(|f| !f.is_empty());
            rust.insert(c_type(name), fields.map(rust_declared).collect::<Fields>());
        }
    }
    assert_eq!(rust.len(), 7, "{rust:?}");
    assert_eq!(c, rust);
}

/// Every function of the header: result, name, parameters.
fn c_functions() -> Vec<(String, String, Fields)> {
    let text = header();
    let declared = text.split(';').filter(|s| s.contains('(') && !s.contains('{'));
    let mut all: Vec<_> = declared
        .map(|s| {
            let (head, rest) = s.trim().split_once('(').unwrap();
            let (result, name) = c_declared(head);
            let parameters = rest.trim_end_matches(')');
            let parameters = if parameters == "void" { "" } else { parameters };
            let parameters = parameters.split(',').filter(|p| !p.trim().is_empty());
            (result, name, parameters.map(c_declared).collect())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn functions_have_the_same_parameters_and_results() {
    let mut rust: Vec<_> = blocks(EXPORTS, "extern \"C\" fn ", "{")
        .into_iter()
        .map(|head| {
            let (name, rest) = head.split_once('(').unwrap();
            let (parameters, result) = rest.split_once(')').unwrap();
            let result = result.trim().strip_prefix("-> ").map_or("void".to_string(), c_type);
            let parameters = parameters.split(',').filter(|p| !p.trim().is_empty());
            (result, name.to_string(), parameters.map(rust_declared).collect::<Fields>())
        })
        .collect();
    rust.sort();
    assert_eq!(rust.len(), 20);
    assert_eq!(c_functions(), rust);
}

/// What does anything that may fail or panic runs where failures and panics become a status.
#[test]
fn functions_run_where_panics_stop() {
    let plain = ["tgc_last_error", "tgc_abi_version", "tgc_version"];
    for block in EXPORTS.split("extern \"C\" fn ").skip(1) {
        let name = block.split('(').next().unwrap();
        let body = block.split_once("{\n").unwrap().1.trim_start();
        let body = body.split("\n}").next().unwrap();
        let caught = body.starts_with("status(|| {") || body.starts_with("value(");
        let closes = name.ends_with("_close") && body.contains("unsafe { close(");
        assert!(caught || closes || plain.contains(&name), "{name}: {body}");
    }
}
