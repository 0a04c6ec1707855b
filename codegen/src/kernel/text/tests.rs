//! The parser against damaged text: errors with places, never a panic.

use super::{parse, print};
use crate::kernel::random::{Rng, case};

#[test]
fn damaged_text_never_panics() {
    let mut r = Rng::new(11);
    for seed in 0..60 {
        let text = print(&case(seed).kernel);
        for _ in 0..40 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + r.below(3) {
                let at = r.below(bytes.len());
                match r.below(3) {
                    0 => bytes[at] = r.pick(b"$#%[](){}<>:=,.-0a \"\n"),
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let damaged = String::from_utf8_lossy(&bytes);
            if let Ok(kernels) = parse(&damaged) {
                kernels.iter().for_each(|k| drop(crate::kernel::verify::verify(k)));
            }
        }
    }
    for _ in 0..2000 {
        let n = r.below(60);
        let junk: Vec<u8> = (0..n).map(|_| r.bits() as u8).collect();
        let _ = parse(&String::from_utf8_lossy(&junk));
    }
    assert!(parse(&format!("kernel @k()() grid [] {{{}", "loop #0 in 0..1 {".repeat(10_000))).is_err());
}

#[test]
fn errors_have_places() {
    let text = "kernel @k()(%x: in f32[4]) grid [] {\n  stage \"s\" over [] map {\n    load 0 %z[0]\n";
    let e = parse(text).unwrap_err();
    assert!(e[0].message.contains("%z"), "{}", e[0]);
    let span = e[0].at.span.unwrap();
    assert!(text[..span.start].ends_with("load 0 %z"));
    let e = parse("kernel @k()() grid [] { stage \"s\" over [] map { $0 = foo : f32").unwrap_err();
    assert!(
        e[0].message.contains("`foo`") && e[0].help.as_ref().is_some_and(|h| h.contains("tanh")),
        "{}",
        e[0]
    );
}
