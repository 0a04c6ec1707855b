//! Packed weights: how their elements lie in memory, and the bytes of one. What gets packed, and why, is decided where
//! kernels are lowered.

use tgc_ir::types::Dim;

/// Layout of a packed weight: one axis cut into panels of `width` elements, the other axes and the panels in a new order,
/// a panel's elements innermost. `[k, n]` with `axis: 1, order: [1, 0]` lies as `[n / width][k][width]`. The last panel is
/// padded with zeros. Indices of the argument are those of the weight itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packed {
    /// Elements of a panel.
    pub width: u32,
    /// The axis that is cut.
    pub axis: u32,
    /// Axes outermost first; at the place of `axis` are its panels.
    pub order: Vec<u32>,
}

impl Packed {
    /// True if the form fits a weight of this rank.
    pub fn fits(&self, rank: usize) -> bool {
        let mut seen = self.order.clone();
        seen.sort_unstable();
        self.width > 0 && (self.axis as usize) < rank && seen.into_iter().eq(0..rank as u32)
    }

    /// Position of the element at `index` from the first one, for a weight with these dims.
    pub(crate) fn flat(&self, index: &[Dim], dims: &[Dim]) -> Dim {
        let width = Dim::from(i64::from(self.width));
        let mut at = Dim::from(0);
        for &a in &self.order {
            let (x, d) = (index[a as usize].clone(), dims[a as usize].clone());
            if a == self.axis {
                at = at * panels(&d, &width) + x.floordiv(&width);
            } else {
                at = at * d + x;
            }
        }
        at * width.clone() + index[self.axis as usize].rem(&width)
    }

    /// Number of elements with the padding.
    pub fn len(&self, dims: &[u64]) -> u64 {
        let width = u64::from(self.width.max(1));
        let panel = |(a, d): (usize, &u64)| {
            if a == self.axis as usize { d.div_ceil(width) * width } else { *d }
        };
        dims.iter().enumerate().map(panel).product()
    }

    /// The packed bytes of a row-major weight with elements of `size` bytes.
    pub fn pack(&self, bytes: &[u8], dims: &[u64], size: usize) -> Vec<u8> {
        let mut out = vec![0; self.len(dims) as usize * size];
        let axis = self.axis as usize;
        let width = self.width as usize;
        let mut strides = vec![1usize; dims.len()];
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i] as usize;
        }
        let extents: Vec<usize> = self.order.iter().map(|&a| dims[a as usize] as usize).collect();
        let blocks: Vec<usize> = self
            .order
            .iter()
            .zip(&extents)
            .map(|(&a, &e)| if a as usize == axis { e.div_ceil(width) } else { e })
            .collect();
        let mut at = vec![0usize; blocks.len()];
        let panels: usize = blocks.iter().product();
        for to in out.chunks_exact_mut(width * size).take(panels) {
            let (mut from, mut count) = (0, width);
            for (i, &a) in self.order.iter().enumerate() {
                let step = if a as usize == axis { width } else { 1 };
                from += at[i] * step * strides[a as usize];
                if a as usize == axis {
                    count = width.min(extents[i] - at[i] * width);
                }
            }
            for (j, element) in to.chunks_exact_mut(size).take(count).enumerate() {
                let first = (from + j * strides[axis]) * size;
                element.copy_from_slice(&bytes[first..first + size]);
            }
            for i in (0..at.len()).rev() {
                at[i] += 1;
                if at[i] < blocks[i] {
                    break;
                }
                at[i] = 0;
            }
        }
        out
    }
}

fn panels(d: &Dim, width: &Dim) -> Dim {
    (d.clone() + width.clone() - Dim::from(1)).floordiv(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_where_indices_say() {
        let dims = [3u64, 5, 2];
        let bytes: Vec<u8> = (0..30).collect();
        for (width, axis, order) in
            [(4, 1, [1, 0, 2]), (2, 2, [0, 2, 1]), (16, 0, [2, 1, 0]), (1, 1, [0, 1, 2])]
        {
            let p = Packed { width, axis, order: order.to_vec() };
            assert!(p.fits(3) && !p.fits(2));
            let packed = p.pack(&bytes, &dims, 1);
            assert_eq!(packed.len() as u64, p.len(&dims));
            let extents = dims.map(|d| Dim::from(d as i64));
            let mut seen = 0;
            for i in 0..30i64 {
                let index = [i / 10, i / 2 % 5, i % 2].map(Dim::from);
                let at = p.flat(&index, &extents).as_const().unwrap();
                assert_eq!(i64::from(packed[at as usize]), i, "{p:?} {index:?}");
                seen += i;
            }
            assert_eq!(packed.iter().map(|b| i64::from(*b)).sum::<i64>(), seen, "the padding is zero");
        }
    }
}
