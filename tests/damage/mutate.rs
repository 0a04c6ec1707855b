//! Damage to bytes that knows nothing of a format: cuts, flips, integers replaced, blocks moved about.

use crate::rng::Rng;
use std::ops::Range;

/// Damaged bytes, and what was done, in words.
pub struct Damaged {
    pub bytes: Vec<u8>,
    pub what: String,
}

/// Integers at the ends of ranges, and what lengths and counts turn into.
pub fn integer(rng: &mut Rng, old: u64) -> u64 {
    let near = [1u64, 0u64.wrapping_sub(1), 2, 8, 0u64.wrapping_sub(8)];
    match rng.below(4) {
        0 => old.wrapping_add(*rng.pick(&near)),
        1 => *rng.pick(&[0, 1, 2, 3, 4, 7, 8, 16, 64, 1000]),
        2 => 1 << rng.below(64),
        _ => *rng.pick(&[
            u64::MAX,
            u64::MAX - 1,
            i64::MAX as u64,
            i64::MIN as u64,
            u64::from(u32::MAX),
            i32::MAX as u64,
            1 << 32,
            1 << 40,
            i32::MIN as i64 as u64,
        ]),
    }
}

/// Little-endian base-128, as in protobuf and in an artifact's manifest.
pub fn varint(mut v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
    out
}

/// Up to three changes, or a cut. Three places in four are chosen from `focus`.
pub fn bytes(rng: &mut Rng, whole: &[u8], focus: &[Range<usize>]) -> Damaged {
    if rng.once_in(6) {
        let at = place(rng, whole.len(), focus);
        return Damaged { bytes: whole[..at].to_vec(), what: format!("cut at {at}") };
    }
    let (mut bytes, mut what) = (whole.to_vec(), Vec::new());
    for _ in 0..1 + rng.below(3) {
        what.push(change(rng, &mut bytes, focus));
    }
    Damaged { bytes, what: what.join(", ") }
}

/// One change in the part of `bytes` that `focus` favours, which may alter their number.
pub fn change(rng: &mut Rng, bytes: &mut Vec<u8>, focus: &[Range<usize>]) -> String {
    if bytes.is_empty() {
        bytes.push(rng.below(256) as u8);
        return "a byte put into nothing".into();
    }
    let at = place(rng, bytes.len(), focus);
    let longest = if rng.coin() { 16 } else { 400 };
    let block = at..(at + 1 + rng.below(longest)).min(bytes.len());
    match rng.below(9) {
        0 | 1 => {
            bytes[at] ^= 1 << rng.below(8);
            format!("bit flipped at {at}")
        }
        2 => {
            for b in &mut bytes[block.clone()] {
                *b = rng.below(256) as u8;
            }
            format!("noise at {block:?}")
        }
        3 => {
            let width = (*rng.pick(&[1usize, 2, 4, 8])).min(bytes.len() - at);
            let mut old = [0; 8];
            old[..width].copy_from_slice(&bytes[at..at + width]);
            let new = integer(rng, u64::from_le_bytes(old));
            bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
            format!("{width} bytes at {at} become {new:#x}")
        }
        4 | 5 => {
            let end = at + bytes[at..].iter().take_while(|b| **b >= 0x80).count();
            let end = (end + 1).min(bytes.len()).min(at + 10);
            let old = bytes[at..end].iter().rev().fold(0u64, |v, b| (v << 7) | u64::from(b & 0x7f));
            let new = integer(rng, old);
            bytes.splice(at..end, varint(new));
            format!("varint at {at} becomes {new:#x}")
        }
        6 => {
            let copy = bytes[block.clone()].to_vec();
            bytes.splice(block.start..block.start, copy);
            format!("{block:?} doubled")
        }
        7 => {
            bytes.drain(block.clone());
            format!("{block:?} removed")
        }
        _ => {
            let to = place(rng, bytes.len(), focus);
            let moved: Vec<u8> = bytes.drain(block.clone()).collect();
            let to = to.min(bytes.len());
            bytes.splice(to..to, moved);
            format!("{block:?} moved to {to}")
        }
    }
}

fn place(rng: &mut Rng, len: usize, focus: &[Range<usize>]) -> usize {
    let total: usize = focus.iter().map(|r| r.len()).sum();
    if total == 0 || rng.once_in(4) {
        return rng.below(len);
    }
    let mut n = rng.below(total);
    for r in focus {
        if n < r.len() {
            return (r.start + n).min(len - 1);
        }
        n -= r.len();
    }
    0
}

/// Damage to a text: its bytes, or its words and lines.
pub fn text(rng: &mut Rng, whole: &str) -> Damaged {
    if rng.once_in(6) {
        return bytes(rng, whole.as_bytes(), &[]);
    }
    let (mut text, mut what) = (whole.to_string(), Vec::new());
    for _ in 0..1 + rng.below(2) {
        what.push(if rng.once_in(5) { lines(rng, &mut text) } else { word(rng, &mut text) });
    }
    Damaged { bytes: text.into_bytes(), what: what.join(", ") }
}

fn lines(rng: &mut Rng, text: &mut String) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return "nothing".into();
    }
    let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
    let what = match rng.below(3) {
        0 => {
            lines.remove(a);
            format!("line {a} removed")
        }
        1 => {
            lines.insert(b, lines[a]);
            format!("line {a} copied to {b}")
        }
        _ => {
            lines.swap(a, b);
            format!("lines {a} and {b} swapped")
        }
    };
    *text = lines.join("\n");
    what
}

/// What a word is: words of one kind can stand for each other.
fn kind(word: &str) -> u8 {
    match word.as_bytes() {
        [b'0'..=b'9', ..] => 0,
        [b'%' | b'#' | b'$', ..] => 1,
        [first, ..] if first.is_ascii_alphabetic() || *first == b'_' => 2,
        _ => 3,
    }
}

/// Puts another word of its kind from the text in a word's place, or another number; seldom removes or doubles it.
fn word(rng: &mut Rng, text: &mut String) -> String {
    let mut all = words(text);
    let chosen = if rng.once_in(8) { 3 } else { rng.below(3) as u8 };
    let rare = rng.once_in(8);
    if all.iter().any(|w| kind(&text[w.clone()]) == chosen) {
        all.retain(|w| kind(&text[w.clone()]) == chosen);
    }
    if all.is_empty() {
        return "nothing".into();
    }
    let (at, other) = (rng.pick(&all).clone(), rng.pick(&all).clone());
    let old = text[at.clone()].to_string();
    let new = match (old.parse::<u64>(), rng.below(4)) {
        (_, 0) if rare => String::new(),
        (_, 1) if rare => format!("{old} {old}"),
        (Ok(n), 0 | 1) => {
            let sign = if rng.once_in(5) { "-" } else { "" };
            format!("{sign}{}", integer(rng, n))
        }
        _ => text[other].to_string(),
    };
    text.replace_range(at.clone(), &new);
    format!("`{old}` at {} becomes `{new}`", at.start)
}

/// Runs of letters and digits, and single other characters.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let inner = |c: char| c.is_alphanumeric() || c == '_';
        // a sigil belongs to the name after it
        let joins = |c: char| inner(c) || matches!(c, '%' | '#' | '$');
        match out.last_mut() {
            Some(last) if last.end == at && inner(c) && text[last.clone()].ends_with(joins) => {
                last.end += c.len_utf8();
            }
            _ => out.push(at..at + c.len_utf8()),
        }
    }
    out
}
