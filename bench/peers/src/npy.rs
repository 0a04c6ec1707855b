//! Arrays as .npy files (version 1, C order): as much as inputs and outputs of models need. What must not be here: engines.

use std::path::Path;

use crate::Result;

/// Elements of an array.
#[derive(Clone)]
pub(crate) enum Data {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

/// A dense array.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data,
}

/// The text between `open` and `close` after `key`.
fn field<'a>(header: &'a str, key: &str, open: char, close: char) -> Option<&'a str> {
    let rest = &header[header.find(key)? + key.len()..];
    let rest = &rest[rest.find(open)? + 1..];
    Some(&rest[..rest.find(close)?])
}

impl Array {
    pub(crate) fn read(path: &Path) -> Result<Array> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Array::parse(&bytes).ok_or_else(|| format!("{}: no .npy file of f32 or i64", path.display()).into())
    }

    fn parse(bytes: &[u8]) -> Option<Array> {
        let rest = bytes.strip_prefix(b"\x93NUMPY\x01\x00")?;
        let (len, rest) = rest.split_at_checked(2)?;
        let (header, body) = rest.split_at_checked(usize::from(u16::from_le_bytes(len.try_into().ok()?)))?;
        let header = std::str::from_utf8(header).ok()?;
        if !header.contains("'fortran_order': False") {
            return None;
        }
        let dims = field(header, "'shape'", '(', ')')?.split(',').map(str::trim).filter(|d| !d.is_empty());
        let shape = dims.map(|d| d.parse().ok()).collect::<Option<Vec<usize>>>()?;
        let data = match field(header, "'descr':", '\'', '\'')? {
            "<f4" => Data::F32(body.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
            "<i8" => Data::I64(body.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()),
            _ => return None,
        };
        let array = Array { shape, data };
        (array.bytes().len() == array.shape.iter().product::<usize>() * array.width()).then_some(array)
    }

    fn width(&self) -> usize {
        match self.data {
            Data::F32(_) => 4,
            Data::I64(_) => 8,
        }
    }

    /// The elements in little-endian order.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match &self.data {
            Data::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let descr = if self.width() == 4 { "<f4" } else { "<i8" };
        let shape: String = self.shape.iter().map(|d| format!("{d},")).collect();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        // The data starts at a multiple of 64 bytes, after 10 bytes of prefix and a newline.
        header += &" ".repeat(63 - (header.len() + 10) % 64);
        header.push('\n');
        let len = u16::try_from(header.len())?.to_le_bytes();
        let parts = [b"\x93NUMPY\x01\x00".as_slice(), &len, header.as_bytes(), &self.bytes()];
        Ok(std::fs::write(path, parts.concat())?)
    }
}
