//! JSON, written only. What must not be here: what is written.

use std::fmt::{self, Display, Write};

pub(crate) enum Json {
    Text(String),
    Number(i128),
    /// Written as null where it is no number.
    Real(f64),
    Flag(bool),
    Null,
    List(Vec<Json>),
    Map(Vec<(&'static str, Json)>),
}

impl Json {
    pub(crate) fn text(s: impl Into<String>) -> Json {
        Json::Text(s.into())
    }

    pub(crate) fn number(n: impl Into<i128>) -> Json {
        Json::Number(n.into())
    }

    pub(crate) fn list<T>(items: impl IntoIterator<Item = T>, f: impl FnMut(T) -> Json) -> Json {
        Json::List(items.into_iter().map(f).collect())
    }
}

impl Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Text(s) => text(f, s),
            Json::Number(n) => write!(f, "{n}"),
            // Rust writes finite floats as JSON does.
            Json::Real(x) if x.is_finite() => write!(f, "{x}"),
            Json::Real(_) => f.write_str("null"),
            Json::Flag(b) => write!(f, "{b}"),
            Json::Null => f.write_str("null"),
            Json::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Json::Map(items) => {
                f.write_char('{')?;
                for (i, (name, item)) in items.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    text(f, name)?;
                    write!(f, ": {item}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn text(f: &mut fmt::Formatter<'_>, s: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in s.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written() {
        let j = Json::Map(vec![
            ("a\"b", Json::text("x\\y\n\u{1}é")),
            ("n", Json::list([1, -2], Json::number)),
            ("f", Json::Flag(true)),
            ("r", Json::list([0.25, f64::NAN], Json::Real)),
            ("z", Json::Null),
        ]);
        assert_eq!(
            j.to_string(),
            r#"{"a\"b": "x\\y\n\u0001é", "n": [1, -2], "f": true, "r": [0.25, null], "z": null}"#
        );
    }
}
