//! Text as a module: diagnostics, or a module that is printed and read back as the same text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tgc_ir::text::{parse_module, print_module};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let module = match parse_module(text, &|_| None) {
        Ok(m) => m,
        Err(d) => {
            // drawing a place in the text must work too
            assert!(!d.is_empty() && d.iter().all(|d| !d.render(Some(text)).is_empty()));
            return;
        }
    };
    let _ = tgc_ir::verify::verify(&module);
    let printed = print_module(&module);
    let again = parse_module(&printed, &|name| module.weights.get(name).cloned());
    let again = again.map(|m| print_module(&m)).map_err(|d| d[0].render(Some(&printed)));
    assert_eq!(again, Ok(printed));
});
