//! Text as kernels: diagnostics, or kernels that are printed and read back as the same, and have a valid schedule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tgc_codegen::kernel::{text, verify};
use tgc_codegen::schedule::{Isa, Schedule, scratch, tile_count};

fuzz_target!(|data: &[u8]| {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let kernels = match text::parse(source) {
        Ok(k) => k,
        Err(d) => {
            assert!(!d.is_empty() && d.iter().all(|d| !d.render(Some(source)).is_empty()));
            return;
        }
    };
    for k in &kernels {
        if !verify::verify(k).is_empty() {
            continue;
        }
        let printed = text::print(k);
        let again = text::parse(&printed).map_err(|d| d[0].render(Some(&printed)));
        // compared as text: a NaN is not itself
        assert_eq!(again.map(|k| k.iter().map(text::print).collect::<String>()), Ok(printed.clone()));
        for vector_bytes in [16, 64] {
            let isa = Isa { vector_bytes, fma: vector_bytes > 16 };
            let schedule = Schedule::default_for(k, isa);
            // locals may be larger than any schedule can make them
            let large = scratch(k, &schedule).as_const().is_none_or(|b| b > 1 << 20);
            assert!(large || schedule.check(k, isa).is_ok(), "{schedule} for\n{printed}");
            let _ = tile_count(k, &schedule);
        }
    }
});
