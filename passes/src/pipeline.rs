//! The orders of passes, on one screen, and the table of all passes. No pass is implemented here.

use crate::pass::Row;

/// What a compilation runs.
pub const DEFAULT: &[&str] = &[
    "canonicalise",
    "fold_constants",
    "simplify_shapes",
    "cse",
    "dce",
    "decompose",
    "canonicalise",
    "fold_constants",
    "simplify_shapes",
    "cse",
    "dce",
    "merge_siblings",
    "layout",
    "canonicalise",
    "fold_constants",
    "cse",
    "dce",
    "fuse",
    "outline",
];

pub(crate) const PASSES: &[Row] = &[
    Row::of::<crate::rules::Canonicalise>(),
    Row::of::<crate::fold::FoldConstants>(),
    Row::of::<crate::shapes::SimplifyShapes>(),
    Row::of::<crate::cse::Cse>(),
    Row::of::<crate::dce::Dce>(),
    Row::of::<crate::decompose::Decompose>(),
    Row::of::<crate::siblings::MergeSiblings>(),
    Row::of::<crate::layout::Layout>(),
    Row::of::<crate::fuse::Fuse>(),
    Row::of::<crate::fuse::Outline>(),
];

/// Every pass: name, whether a correct program needs it, and what it does.
pub fn passes() -> impl Iterator<Item = (&'static str, bool, &'static str)> {
    PASSES.iter().map(|r| (r.name, r.required, r.summary))
}

/// Names of the local rewrite rules, each of which has fixtures of its name.
pub fn rules() -> impl Iterator<Item = &'static str> {
    crate::rules::THEMES.iter().copied().flatten().chain(crate::shapes::RULES).map(|r| r.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_order_respects_what_passes_ask_for() {
        for (at, name) in DEFAULT.iter().enumerate() {
            let row = PASSES.iter().find(|r| r.name == *name).expect("a pass of the table");
            for before in row.after {
                assert!(
                    PASSES.iter().any(|r| r.name == *before),
                    "`{name}` names `{before}`, which is no pass"
                );
                let first = DEFAULT.iter().position(|n| n == before);
                assert!(first.is_none_or(|f| f < at), "`{name}` must come after `{before}`");
            }
        }
    }

    #[test]
    fn every_pass_is_in_the_default_order() {
        for row in PASSES {
            assert!(DEFAULT.contains(&row.name), "`{}` is never run", row.name);
        }
    }
}
