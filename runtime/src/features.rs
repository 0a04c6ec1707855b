//! What this CPU can do, by the names LLVM uses. What must not be here: the choice of an image (load.rs).

macro_rules! detected {
    ($macro:ident: $($llvm:literal = $rust:tt),* $(,)?) => {
        [$(($llvm, std::arch::$macro!($rust))),*]
    };
}

/// The features of this CPU that the runtime can tell, by LLVM's names, in a fixed order. An image that needs a feature
/// not in this list is never chosen, so `native` builds should ask for no others.
pub fn host_features() -> Vec<&'static str> {
    // Names that Rust cannot ask for stand for what came to all CPUs with or before the feature asked for instead.
    #[cfg(target_arch = "x86_64")]
    let found = detected!(is_x86_feature_detected:
        "cmov" = "sse2", "cx8" = "sse2", "fxsr" = "fxsr", "mmx" = "sse2", "sse" = "sse", "sse2" = "sse2", "x87" = "sse2",
        "cx16" = "cmpxchg16b", "sahf" = "ssse3", "popcnt" = "popcnt", "sse3" = "sse3", "ssse3" = "ssse3",
        "sse4.1" = "sse4.1", "sse4.2" = "sse4.2", "crc32" = "sse4.2",
        "avx" = "avx", "avx2" = "avx2", "bmi" = "bmi1", "bmi2" = "bmi2", "f16c" = "f16c", "fma" = "fma",
        "lzcnt" = "lzcnt", "movbe" = "movbe", "xsave" = "xsave",
        "avx512f" = "avx512f", "avx512bw" = "avx512bw", "avx512cd" = "avx512cd", "avx512dq" = "avx512dq",
        "avx512vl" = "avx512vl", "avx512ifma" = "avx512ifma", "avx512vbmi" = "avx512vbmi",
        "avx512vbmi2" = "avx512vbmi2", "avx512vnni" = "avx512vnni", "avx512bitalg" = "avx512bitalg",
        "avx512vpopcntdq" = "avx512vpopcntdq", "avx512bf16" = "avx512bf16", "avx512fp16" = "avx512fp16",
        "avxvnni" = "avxvnni", "avxifma" = "avxifma", "gfni" = "gfni", "vaes" = "vaes", "aes" = "aes",
        "pclmul" = "pclmulqdq", "vpclmulqdq" = "vpclmulqdq", "adx" = "adx", "sha" = "sha",
        "xsavec" = "xsavec", "xsaveopt" = "xsaveopt", "xsaves" = "xsaves",
    );
    #[cfg(target_arch = "aarch64")]
    let found = detected!(is_aarch64_feature_detected:
        "neon" = "neon", "fp-armv8" = "fp", "fullfp16" = "fp16", "dotprod" = "dotprod", "i8mm" = "i8mm",
        "bf16" = "bf16", "lse" = "lse", "rdm" = "rdm", "sve" = "sve", "sve2" = "sve2", "crc" = "crc",
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let found: [(&'static str, bool); 0] = [];
    found.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}
