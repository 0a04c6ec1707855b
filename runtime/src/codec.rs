//! The manifest as bytes: little-endian base-128 integers, counted lists, tagged variants. Decoding is strict (one spelling
//! for each value) and bounded: a count never exceeds the bytes left, nesting is limited, nothing is allocated ahead.
//! What must not be here: the meaning of fields (validate.rs) or the file's sections (write.rs, load.rs).

use crate::dtype::DType;
use crate::error::Error;
use crate::expr::{Expr, Pred};
use crate::format::*;

/// How deep formulas, predicates and steps may nest.
const MAX_DEPTH: u32 = 128;

pub(crate) fn encode(manifest: &Manifest) -> Vec<u8> {
    let mut out = Vec::new();
    manifest.put(&mut out);
    out
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest, Error> {
    let mut r = Reader { bytes, at: 0, depth: 0 };
    let manifest = Manifest::get(&mut r)?;
    if r.at != bytes.len() {
        return Err(r.bad("bytes after the end"));
    }
    Ok(manifest)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn bad(&self, what: &str) -> Error {
        Error::damaged(format_args!("manifest, byte {}: {what}", self.at))
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        match self.bytes[self.at..].get(..n) {
            Some(part) => {
                self.at += n;
                Ok(part)
            }
            None => Err(self.bad("the end is missing")),
        }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    fn count(&mut self) -> Result<usize, Error> {
        let n = u64::get(self)?;
        // Every element takes at least one byte.
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(self.bad("a count exceeds the bytes left"));
        }
        Ok(n as usize)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_DEPTH {
            return Err(self.bad("nested too deeply"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }
}

trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(r: &mut Reader<'_>) -> Result<Self, Error>;
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut v = *self;
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
    }

    fn get(r: &mut Reader<'_>) -> Result<u64, Error> {
        let mut v = 0u64;
        for i in 0..10 {
            let b = r.byte()?;
            let part = u64::from(b & 0x7f);
            if i == 9 && part > 1 {
                return Err(r.bad("an integer exceeds 64 bits"));
            }
            v |= part << (7 * i);
            if b < 0x80 {
                if b == 0 && i > 0 {
                    return Err(r.bad("an integer is longer than needed"));
                }
                return Ok(v);
            }
        }
        Err(r.bad("an integer exceeds 64 bits"))
    }
}

impl Wire for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }

    fn get(r: &mut Reader<'_>) -> Result<u32, Error> {
        u32::try_from(u64::get(r)?).map_err(|_| r.bad("an integer exceeds 32 bits"))
    }
}

impl Wire for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        (((*self << 1) ^ (*self >> 63)) as u64).put(out);
    }

    fn get(r: &mut Reader<'_>) -> Result<i64, Error> {
        let v = u64::get(r)?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(r: &mut Reader<'_>) -> Result<bool, Error> {
        match r.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(r.bad("a flag is neither 0 nor 1")),
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn get(r: &mut Reader<'_>) -> Result<String, Error> {
        let n = r.count()?;
        let bytes = r.take(n)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| r.bad("a text is not UTF-8"))
    }
}

impl Wire for [u8; 16] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn get(r: &mut Reader<'_>) -> Result<[u8; 16], Error> {
        let mut hash = [0; 16];
        hash.copy_from_slice(r.take(16)?);
        Ok(hash)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|e| e.put(out));
    }

    fn get(r: &mut Reader<'_>) -> Result<Vec<T>, Error> {
        let n = r.count()?;
        (0..n).map(|_| T::get(r)).collect()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn get(r: &mut Reader<'_>) -> Result<Box<T>, Error> {
        T::get(r).map(Box::new)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(v) = self {
            v.put(out);
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Option<T>, Error> {
        bool::get(r)?.then(|| T::get(r)).transpose()
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(v) => v.put(out),
            Err(e) => e.put(out),
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Result<T, E>, Error> {
        Ok(if bool::get(r)? { Ok(T::get(r)?) } else { Err(E::get(r)?) })
    }
}

impl Wire for DType {
    fn put(&self, out: &mut Vec<u8>) {
        let number = DType::ALL.iter().take_while(|d| *d != self).count();
        out.push(number as u8);
    }

    fn get(r: &mut Reader<'_>) -> Result<DType, Error> {
        let number = r.byte()?;
        DType::ALL.get(usize::from(number)).copied().ok_or_else(|| r.bad("unknown element type"))
    }
}

macro_rules! wire_struct {
    ($($t:ident { $($f:ident),* })*) => { $(
        impl Wire for $t {
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$f.put(out); )*
            }

            fn get(r: &mut Reader<'_>) -> Result<$t, Error> {
                Ok($t { $( $f: Wire::get(r)?, )* })
            }
        }
    )* };
}

macro_rules! wire_enum {
    ($($t:ident { $( $tag:literal => $v:ident $( ( $($g:ident),* ) )? $( { $($f:ident),* } )? ),* $(,)? })*) => { $(
        impl Wire for $t {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( $t::$v $( ( $($g),* ) )? $( { $($f),* } )? => {
                        out.push($tag);
                        $( $( $g.put(out); )* )?
                        $( $( $f.put(out); )* )?
                    } )*
                }
            }

            fn get(r: &mut Reader<'_>) -> Result<$t, Error> {
                r.nested(|r| Ok(match r.byte()? {
                    $( $tag => {
                        $( $( let $g = Wire::get(r)?; )* )?
                        $( $( let $f = Wire::get(r)?; )* )?
                        $t::$v $( ( $($g),* ) )? $( { $($f),* } )?
                    } )*
                    _ => return Err(r.bad(concat!("unknown kind of ", stringify!($t)))),
                }))
            }
        }
    )* };
}

wire_struct! {
    Manifest { producer, options, verification, entries, states, weights, kernels, images }
    Entry { name, symbols, inputs, outputs, reads, writes, guards, variants }
    Symbol { name, lo, hi, named }
    Port { name, dtype, dims, default }
    Guard { pred, message }
    Variant { when, body }
    Program { buffers, segments }
    Buffer { name, dtype, kind, size, align, alias, first, last }
    Segment { binds, steps }
    Bind { symbol, buffer }
    Site { node, op, source, message }
    StateDecl { name, dtype, dims, init }
    WeightDecl { name, dtype, dims, offset, blocks }
    ArgDecl { name, dtype, role }
    KernelDecl { name, args, dims, flops, bytes, text_hash }
    Image { target, arch, features, kernels }
    ImageKernel { kernel, offset, tiles, grain, scratch }
}

wire_enum! {
    Expr {
        0 => Const(c), 1 => Sym(s), 2 => Add(v), 3 => Mul(v), 4 => FloorDiv(a, b), 5 => Min(a, b), 6 => Max(a, b),
        7 => Bcast(a, b),
    }
    Pred {
        0 => True, 1 => False, 2 => Eq(a, b), 3 => Le(a, b), 4 => Broadcastable(a, b), 5 => And(v), 6 => Or(v),
        7 => Not(p),
    }
    BufferKind { 0 => Input(i), 1 => Output(i), 2 => State(i), 3 => Weight(i), 4 => Temp }
    Step {
        0 => Launch { kernel, args, dims, sites, label },
        1 => Copy { src, dst, bytes },
        2 => Opaque { op, args },
        3 => If { cond, then, otherwise },
        4 => Loop { trip, cond, index, body },
    }
    Role { 0 => In, 1 => Out, 2 => InOut, 3 => Const }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: Wire + PartialEq + std::fmt::Debug>(v: T) {
        let mut bytes = Vec::new();
        v.put(&mut bytes);
        let mut r = Reader { bytes: &bytes, at: 0, depth: 0 };
        assert_eq!(T::get(&mut r).unwrap(), v);
        assert_eq!(r.at, bytes.len());
    }

    #[test]
    fn integers_come_back() {
        for v in [0, 1, 127, 128, 16383, 16384, u64::MAX, u64::MAX >> 1] {
            round(v);
        }
        for v in [0, -1, 1, 63, 64, -64, -65, i64::MIN, i64::MAX] {
            round(v);
        }
    }

    #[test]
    fn a_second_spelling_is_refused() {
        for bytes in [&[0x80, 0x00][..], &[0x81, 0x80, 0x00], &[0xff; 10], &[0x80; 11]] {
            assert!(u64::get(&mut Reader { bytes, at: 0, depth: 0 }).is_err(), "{bytes:?}");
        }
        assert!(bool::get(&mut Reader { bytes: &[2], at: 0, depth: 0 }).is_err());
    }

    #[test]
    fn steps_of_every_kind_come_back() {
        let copy = Step::Copy { src: 1, dst: 2, bytes: Expr::Const(-3) };
        round(vec![
            Step::Opaque { op: "sort".into(), args: vec![1, 2] },
            Step::If { cond: 0, then: vec![copy.clone()], otherwise: vec![] },
            Step::Loop { trip: Some(1), cond: None, index: Some(7), body: vec![copy] },
        ]);
        let preds = [Pred::True, Pred::False, Pred::Eq(Expr::Sym(1), Expr::Const(2))];
        round(Pred::And(vec![Pred::Or(preds.to_vec()), Pred::Not(Box::new(Pred::True))]));
    }

    #[test]
    fn deep_nesting_and_huge_counts_are_refused() {
        let deep: Vec<u8> = [3u8, 1].repeat(100_000);
        let e = Expr::get(&mut Reader { bytes: &deep, at: 0, depth: 0 }).unwrap_err();
        assert!(e.faults[0].message.contains("nested too deeply"), "{e}");
        let mut huge = Vec::new();
        u64::MAX.put(&mut huge);
        assert!(Vec::<u64>::get(&mut Reader { bytes: &huge, at: 0, depth: 0 }).is_err());
        assert!(String::get(&mut Reader { bytes: &huge, at: 0, depth: 0 }).is_err());
    }
}
