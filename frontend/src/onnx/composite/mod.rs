//! Importers of ONNX operators that are not an IR op of the same meaning: other attributes, operands that are sizes, or
//! no IR op at all (a decomposition). One file a family; each lists its operators in `ROWS` with the opsets for which
//! the function is right. An operator that an IR op already is needs no line here.

use super::registry::Row;

mod filter;
mod max_index;
mod ratio;
mod resample;

macro_rules! composites {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        /// Every operator with a special importer.
        pub(crate) const ROWS: &[&[Row]] = &[$($file::ROWS),*];
    };
}

composites! {
    activation, angle, arith, attention, blocks, branch, cast, clip, constant, conv, conv_transpose, cum_prod, det,
    einsum, fill, gather_nd, heads, hyperbolic, index, loss, lp_pool, matmul, norm, pad, pool, qlinear, quant, reduce,
    reshape, resize, select, sequence, shape, slice, softmax, split, tile, top_k,
}
