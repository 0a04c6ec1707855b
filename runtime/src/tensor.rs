//! Owned tensors and aligned memory. What must not be here: arithmetic on elements, file formats.

use crate::dtype::DType;
use crate::error::{Code, Error};

/// Memory aligned to 4096 bytes for large and 64 bytes for small sizes, zeroed at first.
pub(crate) struct AlignedBytes {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// Fails with a readable error rather than ending the process when there is not enough memory.
    pub(crate) fn zeroed(len: usize) -> Result<AlignedBytes, Error> {
        let align = if len >= 4096 { 4096 } else { 64 };
        let refuse = || {
            Error::new(
                Code::Memory,
                format!("{len} bytes of memory are not available"),
                "use smaller sizes, or a machine with more memory",
            )
        };
        let total = len.checked_add(align).filter(|t| *t <= isize::MAX as usize).ok_or_else(refuse)?;
        // Asking first turns a refusal into an error; `vec!` then gets zeroed pages without touching them.
        Vec::<u8>::new().try_reserve_exact(total).map_err(|_| refuse())?;
        let storage = vec![0u8; total];
        let start = storage.as_ptr().align_offset(align).min(align);
        Ok(AlignedBytes { storage, start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }

    /// The first byte. Valid until the value is dropped or its slices are borrowed.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.storage.as_mut_ptr().wrapping_add(self.start)
    }
}

/// The bytes of a dense tensor, if they can be addressed.
pub(crate) fn byte_len(dtype: DType, shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    count.checked_mul(dtype.size()).filter(|n| *n <= isize::MAX as usize)
}

/// A dense row-major tensor, little-endian, that owns its memory.
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: AlignedBytes,
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype, self.shape)
    }
}

impl Tensor {
    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor, Error> {
        let len = byte_len(dtype, shape).ok_or_else(|| {
            Error::new(Code::Memory, format!("a {dtype} tensor of shape {shape:?} is too large"), "")
        })?;
        Ok(Tensor { dtype, shape: shape.to_vec(), data: AlignedBytes::zeroed(len)? })
    }

    /// A tensor with a copy of these bytes.
    pub fn new(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, Error> {
        if byte_len(dtype, shape) != Some(bytes.len()) {
            return Err(Error::new(
                Code::Usage,
                format!("{} bytes given for a {dtype} tensor of shape {shape:?}", bytes.len()),
                "give exactly the elements of the shape",
            ));
        }
        let mut t = Tensor::zeros(dtype, shape)?;
        t.bytes_mut().copy_from_slice(bytes);
        Ok(t)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row-major, little-endian.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    /// The elements, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_slice()
    }

    /// The elements as f64; integers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        macro_rules! each {
            ($n:literal, $f:expr) => {
                self.bytes().as_chunks::<$n>().0.iter().map(|c| $f(*c)).collect()
            };
        }
        match self.dtype {
            DType::F32 => each!(4, |c| f64::from(f32::from_le_bytes(c))),
            DType::F64 => each!(8, f64::from_le_bytes),
            DType::F16 => each!(2, |c| half::f16::from_le_bytes(c).to_f64()),
            DType::BF16 => each!(2, |c| half::bf16::from_le_bytes(c).to_f64()),
            DType::I8 => each!(1, |c| f64::from(i8::from_le_bytes(c))),
            DType::I16 => each!(2, |c| f64::from(i16::from_le_bytes(c))),
            DType::I32 => each!(4, |c| f64::from(i32::from_le_bytes(c))),
            DType::I64 => each!(8, |c| i64::from_le_bytes(c) as f64),
            DType::U8 | DType::Bool => each!(1, |c: [u8; 1]| f64::from(c[0])),
            DType::U16 => each!(2, |c| f64::from(u16::from_le_bytes(c))),
            DType::U32 => each!(4, |c| f64::from(u32::from_le_bytes(c))),
            DType::U64 => each!(8, |c| u64::from_le_bytes(c) as f64),
        }
    }
}
