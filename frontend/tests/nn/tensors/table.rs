//! The table of docs/pytorch.md.
