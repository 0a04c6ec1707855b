//! Damage to protobuf that leaves it protobuf: fields removed, doubled, exchanged, their values replaced, with lengths that
//! fit again. It reads the wire format only: what parses as a message is taken for one.

use crate::mutate::{Damaged, integer, varint};
use crate::rng::Rng;
use std::ops::Range;
use std::rc::Rc;

/// Messages within messages, no deeper.
const DEPTH: usize = 12;
/// Above this a field is payload.
const PAYLOAD: usize = 256;

#[derive(Clone)]
enum Value {
    Varint(u64),
    /// Four or eight bytes.
    Fixed(Rc<[u8]>),
    Bytes(Rc<[u8]>),
    Message(Vec<Field>),
}

#[derive(Clone)]
struct Field {
    number: u64,
    value: Value,
}

/// A message in parts.
pub struct Tree(Vec<Field>);

/// The parts of a message; none if the bytes are no message.
pub fn parse(bytes: &[u8]) -> Option<Tree> {
    fields(bytes, DEPTH).map(Tree)
}

/// The ranges of `bytes` that are structure or short values, not payload.
pub fn structure(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    outline(bytes, 0, DEPTH, &mut out);
    out
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut v = 0u64;
    for shift in (0..64).step_by(7) {
        let b = *bytes.get(*at)?;
        *at += 1;
        v |= u64::from(b & 0x7f) << shift;
        if b < 0x80 {
            return Some(v);
        }
    }
    None
}

/// A field's number, its wire type, and where its value is.
fn next(bytes: &[u8], at: &mut usize) -> Option<(u64, u64, Range<usize>)> {
    let key = read_varint(bytes, at)?;
    let (number, kind) = (key >> 3, key & 7);
    let start = *at;
    let (start, len) = match kind {
        0 => {
            read_varint(bytes, at)?;
            (start, *at - start)
        }
        1 => (start, 8),
        5 => (start, 4),
        2 => {
            let len = read_varint(bytes, at)?;
            (*at, usize::try_from(len).ok()?)
        }
        _ => return None,
    };
    let end = start.checked_add(len).filter(|e| *e <= bytes.len())?;
    *at = end;
    (1..100_000).contains(&number).then_some((number, kind, start..end))
}

fn fields(bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let (mut at, mut out) = (0, Vec::new());
    while at < bytes.len() {
        let (number, kind, range) = next(bytes, &mut at)?;
        let part = &bytes[range];
        let value = match kind {
            0 => Value::Varint(read_varint(part, &mut 0)?),
            1 | 5 => Value::Fixed(part.into()),
            _ => match (depth > 0 && !part.is_empty()).then(|| fields(part, depth - 1)).flatten() {
                Some(inner) => Value::Message(inner),
                None => Value::Bytes(part.into()),
            },
        };
        out.push(Field { number, value });
    }
    Some(out)
}

fn outline(bytes: &[u8], base: usize, depth: usize, out: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        let Some((_, kind, range)) = next(bytes, &mut at) else { return };
        let part = &bytes[range.clone()];
        let message = kind == 2 && depth > 0 && fields(part, depth - 1).is_some();
        if range.len() > PAYLOAD {
            out.push(base + from..base + range.start);
            if message {
                outline(part, base + range.start, depth - 1, out);
            }
        } else {
            out.push(base + from..base + range.end);
        }
    }
}

fn write(fields: &[Field], out: &mut Vec<u8>) {
    for f in fields {
        let kind = match &f.value {
            Value::Varint(_) => 0,
            Value::Fixed(b) if b.len() == 8 => 1,
            Value::Fixed(_) => 5,
            Value::Bytes(_) | Value::Message(_) => 2,
        };
        out.extend(varint(f.number << 3 | kind));
        match &f.value {
            Value::Varint(v) => out.extend(varint(*v)),
            Value::Fixed(b) => out.extend_from_slice(b),
            Value::Bytes(b) => {
                out.extend(varint(b.len() as u64));
                out.extend_from_slice(b);
            }
            Value::Message(inner) => {
                let mut part = Vec::new();
                write(inner, &mut part);
                out.extend(varint(part.len() as u64));
                out.extend(part);
            }
        }
    }
}

fn count(fields: &[Field]) -> usize {
    let inner = |f: &Field| match &f.value {
        Value::Message(m) => count(m),
        _ => 0,
    };
    fields.iter().map(|f| 1 + inner(f)).sum()
}

/// Calls `f` with the list that holds field number `n` in depth-first order, and its place there.
fn at<T>(
    fields: &mut Vec<Field>,
    n: &mut usize,
    f: &mut dyn FnMut(&mut Vec<Field>, usize) -> T,
) -> Option<T> {
    for i in 0..fields.len() {
        if *n == 0 {
            return Some(f(fields, i));
        }
        *n -= 1;
        if let Value::Message(inner) = &mut fields[i].value
            && let Some(t) = at(inner, n, f)
        {
            return Some(t);
        }
    }
    None
}

/// Up to three changes to a message.
pub fn damage(rng: &mut Rng, tree: &Tree) -> Damaged {
    let mut all = tree.0.clone();
    let mut what = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let total = count(&all);
        let pick = rng.below(total);
        let mut other = None;
        at(&mut all, &mut rng.below(total), &mut |list, i| other = Some(list[i].value.clone()));
        let done = at(&mut all, &mut pick.clone(), &mut |list, i| change(rng, list, i, other.take()));
        what.push(format!("field {pick}: {}", done.unwrap_or_default()));
    }
    let mut bytes = Vec::new();
    write(&all, &mut bytes);
    Damaged { bytes, what: what.join(", ") }
}

fn change(rng: &mut Rng, list: &mut Vec<Field>, i: usize, other: Option<Value>) -> String {
    match rng.below(8) {
        0 => {
            list.remove(i);
            "removed".into()
        }
        1 => {
            let copy = list[i].clone();
            list.insert(rng.below(list.len() + 1), copy);
            "doubled".into()
        }
        2 => {
            let j = rng.below(list.len());
            list.swap(i, j);
            format!("exchanged with neighbour {j}")
        }
        3 => {
            let same = std::mem::discriminant(&list[i].value);
            match other.filter(|o| std::mem::discriminant(o) == same) {
                Some(o) => list[i].value = o,
                None => list[i].number = 1 + rng.below(16) as u64,
            }
            "another's value, or another number".into()
        }
        _ => {
            let field = &mut list[i];
            value(rng, &mut field.value)
        }
    }
}

fn value(rng: &mut Rng, v: &mut Value) -> String {
    match v {
        Value::Varint(n) => {
            *n = integer(rng, *n);
            format!("becomes {n:#x}")
        }
        Value::Fixed(b) => {
            let mut new = b.to_vec();
            let at = rng.below(new.len());
            new[at] = rng.below(256) as u8;
            *b = new.into();
            "a byte changed".into()
        }
        Value::Bytes(b) => {
            let mut new = b.to_vec();
            let what = crate::mutate::change(rng, &mut new, &[]);
            *b = new.into();
            what
        }
        Value::Message(m) => {
            let n = m.len();
            m.truncate(rng.below(n));
            format!("the first {} of {n} fields kept", m.len())
        }
    }
}
