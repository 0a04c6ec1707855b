//! Splits text into tokens. Shared by every text form; knows no grammar.

use crate::diag::{Diag, Span};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// A name: a letter or `_`, then letters, digits and `_`.
    Ident(&'t str),
    /// A number without sign: `12`, `0.5`, `1e-7`, `0x3f`.
    Number(&'t str),
    /// A string, as written between its quotes.
    Str(&'t str),
    /// `%name`, without the `%`.
    Value(&'t str),
    /// `->`
    Arrow,
    /// `..`
    Dots,
    /// Any other single character that has a meaning.
    Punct(char),
    /// The end of the text.
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Ident(s) | Token::Number(s) => write!(f, "`{s}`"),
            Token::Str(s) => write!(f, "`\"{s}\"`"),
            Token::Value(s) => write!(f, "`%{s}`"),
            Token::Arrow => f.write_str("`->`"),
            Token::Dots => f.write_str("`..`"),
            Token::Punct(c) => write!(f, "`{c}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexed<'t> {
    pub token: Token<'t>,
    pub span: Span,
    /// First on its line.
    pub first: bool,
}

const PUNCT: &str = "(){}[]<>,:;=^+-*/@#$|!?&.";

/// All tokens, ended by [`Token::End`], and what could not be read (skipped).
pub(crate) fn lex(text: &str) -> (Vec<Lexed<'_>>, Vec<Diag>) {
    let bytes = text.as_bytes();
    let (mut out, mut errors): (Vec<Lexed<'_>>, Vec<Diag>) = (Vec::new(), Vec::new());
    let (mut at, mut first) = (0, true);
    while let Some(&b) = bytes.get(at) {
        if b == b'\n' {
            first = true;
        }
        if b.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if text[at..].starts_with("//") {
            at += bytes[at..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - at);
            continue;
        }
        let (end, token) = one(text, at);
        let span = Span { start: at, end };
        match token {
            Ok(token) => {
                out.push(Lexed { token, span, first });
                first = false;
            }
            // a run of rubbish is one error, and a file full of it stops being listed
            Err(message) if errors.len() < 20 => {
                errors.push(Diag::error("E-TXT-002", message).at(&crate::diag::Loc::at(span)));
            }
            Err(_) => {}
        }
        at = end;
    }
    out.push(Lexed { token: Token::End, span: Span { start: text.len(), end: text.len() }, first: true });
    (out, errors)
}

fn one(text: &str, at: usize) -> (usize, Result<Token<'_>, String>) {
    let bytes = text.as_bytes();
    let name_end = |from: usize| {
        from + bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
    };
    match bytes[at] {
        b'"' => string(text, at),
        b'%' => match name_end(at + 1) {
            end if end == at + 1 => (end, Err("`%` must be followed by a name or number".into())),
            end => (end, Ok(Token::Value(&text[at + 1..end]))),
        },
        b if b.is_ascii_digit() => {
            let end = number_end(bytes, at);
            (end, Ok(Token::Number(&text[at..end])))
        }
        b if b.is_ascii_alphabetic() || b == b'_' => {
            let end = name_end(at);
            (end, Ok(Token::Ident(&text[at..end])))
        }
        b'-' if bytes.get(at + 1) == Some(&b'>') => (at + 2, Ok(Token::Arrow)),
        b'.' if bytes.get(at + 1) == Some(&b'.') => (at + 2, Ok(Token::Dots)),
        b if PUNCT.as_bytes().contains(&b) => (at + 1, Ok(Token::Punct(char::from(b)))),
        _ => {
            let strange = |c: &char| !c.is_ascii() || (!c.is_ascii_graphic() && !c.is_ascii_whitespace());
            let run: usize = text[at..].chars().take_while(strange).map(char::len_utf8).sum();
            let end = at + run.max(1);
            let shown: String = text[at..end].chars().take(8).collect();
            (end, Err(format!("{shown:?} has no meaning here")))
        }
    }
}

fn string(text: &str, at: usize) -> (usize, Result<Token<'_>, String>) {
    let bytes = text.as_bytes();
    let mut i = at + 1;
    while let Some(&b) = bytes.get(i) {
        match b {
            b'"' => return (i + 1, Ok(Token::Str(&text[at + 1..i]))),
            b'\\' if bytes.get(i + 1).is_some_and(u8::is_ascii) => i += 2,
            b'\n' => break,
            _ => i += 1,
        }
    }
    (i.min(text.len()), Err("this string has no closing quote on its line".into()))
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let run = |from: usize, f: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|b| f(b)).count();
    if bytes[at..].starts_with(b"0x") {
        return run(at + 2, u8::is_ascii_hexdigit);
    }
    let mut end = run(at, u8::is_ascii_digit);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = run(end + 1, u8::is_ascii_digit);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let digits = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(digits).is_some_and(u8::is_ascii_digit) {
            end = run(digits, u8::is_ascii_digit);
        }
    }
    end
}

/// The text of a string token with its escapes replaced; an error in words for an unknown escape.
pub(crate) fn unescape(raw: &str) -> Result<String, String> {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('0') => '\0',
            Some(c @ ('"' | '\\' | '\'')) => c,
            Some('u') => {
                let open = chars.next() == Some('{');
                let hex: String = chars.by_ref().take_while(|c| *c != '}').take(8).collect();
                let code = u32::from_str_radix(&hex, 16).ok().filter(|_| open).and_then(char::from_u32);
                code.ok_or_else(|| format!("`\\u{{{hex}}}` is no character"))?
            }
            other => return Err(format!("unknown escape `\\{}`", other.map_or(String::new(), String::from))),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        lex(text).0.iter().map(|t| t.token.to_string()).collect()
    }

    #[test]
    fn numbers_stop_where_ranges_and_names_begin() {
        assert_eq!(tokens("0..64 1.5e-3"), ["`0`", "`..`", "`64`", "`1.5e-3`", "the end of the text"]);
        assert_eq!(tokens("0x3f %12a")[..2], ["`0x3f`", "`%12a`"]);
    }

    #[test]
    fn rubbish_is_reported_and_skipped() {
        let (t, e) = lex("a \u{1F600}\u{1F600} b \"open\nc ~");
        assert_eq!((t.len(), e.len()), (4, 3), "{e:?}");
        assert_eq!(e[0].at.span, Some(Span { start: 2, end: 10 }));
    }

    #[test]
    fn escapes_are_those_of_rust_strings() {
        for s in ["plain", "q\"b\\s\n\t\r\0'", "\u{301}\u{7f}é"] {
            let shown = format!("{s:?}");
            assert_eq!(unescape(&shown[1..shown.len() - 1]).as_deref(), Ok(s));
        }
        assert!(unescape("\\q").is_err() && unescape("\\u{d800}").is_err() && unescape("\\").is_err());
    }
}
