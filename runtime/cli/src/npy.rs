//! The .npy format, versions 1 to 3. What must not be here: archives (npz.rs), or the conversion to what a model takes.

use std::io::{self, Read, Write};

use tgc_runtime::{DType, Tensor};

/// Why a tensor could not be read.
#[derive(Debug)]
pub(crate) enum NpyError {
    Io(io::Error),
    /// Not the format, or not whole.
    Malformed(String),
    /// Elements of a kind that is not supported.
    Elements(String),
    /// The runtime refuses the tensor.
    Runtime(tgc_runtime::Error),
}

impl From<io::Error> for NpyError {
    fn from(e: io::Error) -> NpyError {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => NpyError::Malformed("the file is cut short".into()),
            // What a damaged archive gives.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => NpyError::Malformed(e.to_string()),
            _ => NpyError::Io(e),
        }
    }
}

const MAX_HEADER: usize = 1 << 16;
const MAX_RANK: usize = 64;

struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads a tensor; `len` is the number of bytes there should be in all, if known.
pub(crate) fn read(from: &mut dyn Read, len: Option<u64>) -> Result<Tensor, NpyError> {
    let mut start = [0u8; 8];
    from.read_exact(&mut start)?;
    if start[..6] != *b"\x93NUMPY" {
        return Err(NpyError::Malformed("this is not an .npy file".into()));
    }
    let mut size = [0u8; 4];
    let wide = match start[6] {
        1 => false,
        2 | 3 => true,
        v => return Err(NpyError::Malformed(format!("version {v} of the .npy format; 1 to 3 are known"))),
    };
    from.read_exact(&mut size[..if wide { 4 } else { 2 }])?;
    let header_len = u32::from_le_bytes(size) as usize;
    if header_len > MAX_HEADER {
        return Err(NpyError::Malformed(format!("a header of {header_len} bytes")));
    }
    let mut text = vec![0; header_len];
    from.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let header =
        parse(&text).ok_or_else(|| NpyError::Malformed(format!("the header is not understood: {text:?}")))?;
    let (dtype, swap) = elements(&header.descr)?;
    // NumPy stores Fortran order by reversed strides: the bytes are the row-major ones of the reversed shape.
    let mut t = Tensor::zeros(dtype, &header.shape).map_err(NpyError::Runtime)?;
    let (have, want) = (len, 8 + if wide { 4 } else { 2 } + header_len as u64 + t.bytes().len() as u64);
    if let Some(have) = have.filter(|h| *h != want) {
        let text =
            format!("{have} bytes, its header {} of shape {:?} asks for {want}", header.descr, header.shape);
        return Err(NpyError::Malformed(text));
    }
    from.read_exact(t.bytes_mut())?;
    if swap {
        t.bytes_mut().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if dtype == DType::Bool {
        t.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    if header.fortran && header.shape.len() > 1 { from_fortran(&t) } else { Ok(t) }
}

/// The element type and whether its bytes come in the other order.
fn elements(descr: &str) -> Result<(DType, bool), NpyError> {
    let refuse = || NpyError::Elements(format!("elements of type {descr:?}"));
    let (order, kind) = descr.split_at_checked(1).ok_or_else(refuse)?;
    let dtype = match kind {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        // What NumPy writes for the bfloat16 of ml_dtypes.
        "V2" => DType::BF16,
        _ => return Err(refuse()),
    };
    match order {
        "<" | "|" | "=" => Ok((dtype, false)),
        ">" => Ok((dtype, dtype.size() > 1)),
        _ => Err(refuse()),
    }
}

fn from_fortran(t: &Tensor) -> Result<Tensor, NpyError> {
    let (shape, size) = (t.shape(), t.dtype().size());
    let mut strides = vec![size; shape.len()];
    for i in 1..shape.len() {
        strides[i] = strides[i - 1] * shape[i - 1];
    }
    let mut out = Tensor::zeros(t.dtype(), shape).map_err(NpyError::Runtime)?;
    let mut index = vec![0usize; shape.len()];
    let mut at = 0usize;
    for element in out.bytes_mut().chunks_exact_mut(size) {
        element.copy_from_slice(&t.bytes()[at..at + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(out)
}

/// Reads the header's dictionary: three known keys, in any order.
fn parse(text: &str) -> Option<Header> {
    let mut rest = text.trim().strip_prefix('{')?.trim_start();
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    while !rest.starts_with('}') {
        let (key, after) = quoted(rest)?;
        rest = after.trim_start().strip_prefix(':')?.trim_start();
        match key {
            "descr" => {
                let (value, after) = quoted(rest)?;
                (descr, rest) = (Some(value.to_string()), after);
            }
            "fortran_order" => {
                let value = rest.starts_with("True");
                rest = rest.strip_prefix(if value { "True" } else { "False" })?;
                fortran = Some(value);
            }
            "shape" => {
                let (inside, after) = rest.strip_prefix('(')?.split_once(')')?;
                rest = after;
                let numbers = inside.split(',').map(str::trim).filter(|s| !s.is_empty());
                let sizes: Option<Vec<usize>> =
                    numbers.map(|s| s.trim_end_matches('L').parse().ok()).collect();
                shape = Some(sizes.filter(|s| s.len() <= MAX_RANK)?);
            }
            _ => return None,
        }
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    (rest.trim() == "}").then_some(())?;
    Some(Header { descr: descr?, fortran: fortran?, shape: shape? })
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// Writes a tensor, version 1; bf16, which .npy does not have, must have been widened.
pub(crate) fn write(t: &Tensor, to: &mut dyn Write) -> io::Result<()> {
    let descr = match t.dtype() {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
        DType::BF16 => return Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    let sizes: Vec<String> = t.shape().iter().map(|d| format!("{d},")).collect();
    let comma = |s: String| if t.shape().len() > 1 { s.trim_end_matches(',').to_string() } else { s };
    let shape = comma(sizes.join(" "));
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    while header.len() + 1 < padded {
        header.push(' ');
    }
    header.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(header.len() as u16).to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    to.write_all(t.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY".to_vec();
        out.extend([version, 0]);
        out.extend((dict.len() as u32).to_le_bytes().iter().take(if version == 1 { 2 } else { 4 }));
        out.extend(dict.as_bytes());
        out.extend(data);
        out
    }

    fn parsed(bytes: &[u8]) -> Result<Tensor, NpyError> {
        read(&mut &bytes[..], Some(bytes.len() as u64))
    }

    #[test]
    fn what_is_written_is_read() {
        for shape in [&[][..], &[0], &[5], &[2, 3], &[2, 0, 3]] {
            let names = "f32 f64 f16 i8 i16 i32 i64 u8 u16 u32 u64 bool";
            for dtype in names.split(' ').map(|n| n.parse::<DType>().unwrap()) {
                let mut t = Tensor::zeros(dtype, shape).unwrap();
                t.bytes_mut().iter_mut().enumerate().for_each(|(i, b)| *b = (i % 2) as u8);
                let mut bytes = Vec::new();
                write(&t, &mut bytes).unwrap();
                assert_eq!((bytes.len() - t.bytes().len()) % 64, 0);
                let back = parsed(&bytes).unwrap();
                assert_eq!((back.dtype(), back.shape(), back.bytes()), (dtype, shape, t.bytes()));
            }
        }
    }

    #[test]
    fn orders_and_versions_are_converted() {
        let dict = "{'shape': (2, 3), 'fortran_order': True, 'descr': '>u2'}";
        let data: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
        for version in [1, 2, 3] {
            let t = parsed(&file(version, dict, &data)).unwrap();
            assert_eq!((t.shape(), t.to_f64()), (&[2, 3][..], vec![1., 2., 3., 4., 5., 6.]));
        }
        let t = parsed(&file(1, "{\"descr\":\"|b1\",\"fortran_order\":False,\"shape\":(2,),}\n", &[7, 0]))
            .unwrap();
        assert_eq!(t.bytes(), [1, 0]);
    }

    #[test]
    fn wrong_files_are_errors() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        assert!(parsed(&file(1, good, &[0; 8])).is_ok());
        let cases = [
            file(4, good, &[0; 8]),
            file(1, good, &[0; 7]),
            file(1, good, &[0; 9]),
            file(1, &good.replace("descr", "desc"), &[0; 8]),
            file(1, &good.replace("(2,)", "(-2,)"), &[0; 8]),
            file(1, &good.replace("(2,)", "(99999999999999999999,)"), &[0; 8]),
            file(1, &good.replace("(2,)", "(2"), &[0; 8]),
            file(1, &good.replace("'<f4'", "[('a', '<f4')]"), &[0; 8]),
            file(1, "", &[]),
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
            b"PK\x03\x04 something".to_vec(),
            vec![],
        ];
        for c in cases {
            let e = parsed(&c).unwrap_err();
            assert!(matches!(e, NpyError::Malformed(_)), "{e:?}");
        }
        for descr in ["<c8", "|O", "<U3", "<f16", "", "f4", "é4"] {
            let e = parsed(&file(1, &good.replace("<f4", descr), &[0; 8])).unwrap_err();
            assert!(matches!(e, NpyError::Elements(_)), "{descr}: {e:?}");
        }
        let huge = parsed(&file(1, &good.replace("(2,)", "(9007199254740992, 1024)"), &[0; 8])).unwrap_err();
        assert!(matches!(huge, NpyError::Runtime(_)), "{huge:?}");
    }

    #[test]
    fn any_bytes_are_survived() {
        let good = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]);
        let mut state = 5u64;
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = (state >> 20) as u8;
            }
            let _ = parsed(&bytes);
        }
    }
}
