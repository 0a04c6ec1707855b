//! How far a whole model's outputs may be from an outside reference, whose order of sums differs: one place, each number
//! with its reason. A difference is allowed up to `atol + rtol * |reference|`.

/// The tolerance of one output, or of all of them (`*`), as `npz_compare.py` takes it.
pub type Tolerance = &'static [(&'static str, f64, f64)];

/// The normalisation layers compute a variance as E[x^2] - E[x]^2, which cancels; scores are probabilities.
pub const MAGIKA: Tolerance = &[("*", 1e-4, 1e-5)];

/// Three products of at most 784 terms: 4 * sqrt(784) * 2^-24 = 7e-6 of sum|terms|.
pub const MLP: Tolerance = &[("*", 1e-5, 1e-5)];

/// Integers, copies and single operations: nothing is rounded twice.
pub const EXACT: Tolerance = &[("*", 0.0, 0.0)];

/// Some 50 convolutions of at most 200 terms, each rounding like 4 * sqrt(200) * 2^-24 = 3e-6; scores are probabilities.
pub const RAPIDOCR_CLS: Tolerance = &[("*", 1e-4, 1e-5)];

/// Six layers of products of up to 1536 terms, normalised after each; elements are near 1.
pub const MINILM: Tolerance = &[("*", 1e-4, 1e-5)];

/// `pitch` is in Hz, a weighted mean of bins. `confidence` amplifies rounding through a logarithm of near-zero power:
/// ONNX Runtime's own moves by 5.1e-3 when each sample of its input changes by 1e-7 of itself.
pub const SWIFT_F0: Tolerance = &[("pitch", 1e-3, 0.0), ("confidence", 0.0, 5.1e-3)];

/// Convolutions and products of at most 600 terms; the output is a probability.
pub const DEEPCUT: Tolerance = &[("*", 1e-4, 1e-5)];

/// A deep network of convolutions without normalisation of the result.
pub const BRAINMAZE: Tolerance = &[("*", 1e-4, 1e-4)];
