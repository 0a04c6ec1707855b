//! How far a whole model's outputs may be from an outside reference, whose order of sums differs: one place, each number
//! with its reason. A difference is allowed up to `atol + rtol * |reference|`.

/// Per output (`*`: all without one of their own): name, rtol, atol.
pub type Tolerance = &'static [(&'static str, f64, f64)];

/// Integers, copies and single operations: nothing is rounded twice.
pub const EXACT: Tolerance = &[("*", 0.0, 0.0)];

/// Three products of at most 784 terms: 4 * sqrt(784) * 2^-24 = 7e-6 of sum|terms|.
pub const MLP: Tolerance = &[("*", 1e-5, 1e-5)];

/// The normalisation layers compute a variance as E[x^2] - E[x]^2, which cancels. Scores are probabilities, most of them
/// tiny: exp turns an error of its argument into a relative one.
pub const MAGIKA: Tolerance = &[("*", 1e-4, 1e-6)];

/// Some 50 convolutions of at most 200 terms, each rounding like 4 * sqrt(200) * 2^-24 = 3e-6 of sum|terms|, signs mixed;
/// two probabilities.
pub const RAPIDOCR_CLS: Tolerance = &[("*", 1e-5, 1e-6)];

/// Six layers with products of up to 1536 terms, normalised after each, so that elements are near 1 and errors add.
pub const MINILM: Tolerance = &[("*", 1e-5, 2e-5)];

/// Convolutions and products of at most 600 terms: 4 * sqrt(600) * 2^-24 = 6e-6 of sum|terms|; one probability.
pub const DEEPCUT: Tolerance = &[("*", 1e-5, 2e-6)];

/// A deep network of convolutions; elements are near 1 and nothing normalises them at the end.
pub const BRAINMAZE: Tolerance = &[("*", 1e-5, 1e-5)];

/// On noise, where no bin of the spectrum is near zero. `pitch` is in Hz.
pub const SWIFT_F0: Tolerance = &[("pitch", 1e-5, 0.0), ("confidence", 0.0, 1e-5)];

/// On a pure tone most bins are rounding errors whose logarithm is taken. Where each sample of the golden input changes by
/// 1e-7 of itself, ONNX Runtime's own `pitch` moves by 2.4e-4 of itself and its `confidence` by 5e-3 to 8e-3.
pub const SWIFT_F0_TONE: Tolerance = &[("pitch", 2.4e-4, 0.0), ("confidence", 0.0, 5e-3)];
