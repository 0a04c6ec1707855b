//! Bounds on what a model file may ask for, so that damaged or hostile files end in a diagnostic and not in exhausted
//! memory or time. All bounds of the frontend are here, and nothing else.

/// Most axes of a tensor.
pub(crate) const MAX_RANK: usize = 16;

/// Most nodes after inlining functions and branches.
pub(crate) const MAX_NODES: usize = 250_000;

/// Deepest nesting of branches and functions.
pub(crate) const MAX_DEPTH: usize = 24;

/// Most symbols, divisions, minima and the like in one symbolic size.
pub(crate) const MAX_DIM_LEAVES: usize = 1000;

/// Greatest kernel extent, stride, padding or dilation. Products of two stay far below 64 bits.
pub(crate) const MAX_WINDOW: i64 = 1 << 24;

/// Most elements of a constant that is written into the graph; bigger ones become weights.
pub(crate) const INLINE_ELEMENTS: usize = 32;

/// Most diagnostics of one kind that are kept; the rest are counted.
pub(crate) const MAX_DIAGS: usize = 200;

/// Most places listed in one diagnostic.
pub(crate) const MAX_PLACES: usize = 100;

/// Exporters write numbers from here on for "to the end" of an axis.
pub(crate) const TO_THE_END: i64 = 1_000_000_000;

/// Most characters of a node's name in a place.
pub(crate) const MAX_NAME: usize = 200;
