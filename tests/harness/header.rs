//! The comment lines at the top of a fixture. Every line is `// key: value` or `// word name = value` with a key that the
//! fixture's kind knows.

use crate::walk::Kind;
use std::collections::BTreeMap;

/// Inputs and expected outputs of one run, as text by name.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub inputs: BTreeMap<String, String>,
    pub expect: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
pub struct Header {
    keys: BTreeMap<String, String>,
    /// Sizes of each run that is asked for.
    pub sizes: Vec<BTreeMap<String, i64>>,
    pub ranges: BTreeMap<String, (i64, i64)>,
    pub cases: Vec<Case>,
}

impl Header {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    pub fn need(&self, key: &str) -> Result<&str, String> {
        self.get(key).ok_or_else(|| format!("the header lacks `// {key}: ...`"))
    }

    pub fn seed(&self) -> Result<Option<u64>, String> {
        self.get("seed").map(|s| s.parse().map_err(|_| format!("seed `{s}` is no number"))).transpose()
    }

    pub fn tolerance(&self) -> Result<f64, String> {
        self.get("tolerance")
            .map_or(Ok(0.0), |s| s.parse().map_err(|_| format!("tolerance `{s}` is no number")))
    }
}

fn keys_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Text => &["about", "canonical", "seed", "sizes", "tolerance"],
        Kind::Op => &["about", "op", "seed", "sizes", "tolerance"],
        Kind::Fail | Kind::Diag => &["about", "error"],
        Kind::Pass => &["about", "pass", "seed", "sizes", "tolerance"],
    }
}

/// The header and what follows it.
pub fn read(text: &str, kind: Kind) -> Result<(Header, &str), String> {
    let mut h = Header::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let Some(body) = line.strip_prefix("//") else { break };
        at += line.len();
        one(&mut h, body.trim(), kind).map_err(|e| format!("header line `{}`: {e}", line.trim_end()))?;
    }
    if at == 0 {
        return Err("the header is missing (first line `// about: ...` or another key)".into());
    }
    Ok((h, &text[at..]))
}

fn one(h: &mut Header, line: &str, kind: Kind) -> Result<(), String> {
    for word in ["input ", "expect ", "range "] {
        if let Some(rest) = line.strip_prefix(word) {
            let (name, value) = rest.split_once('=').ok_or("`=` is missing")?;
            return named(h, word.trim(), name.trim(), value.trim());
        }
    }
    let (key, value) = line.split_once(':').ok_or("not of the form `key: value`")?;
    let (key, value) = (key.trim(), value.trim());
    let known = keys_of(kind);
    if !known.contains(&key) {
        return Err(format!(
            "unknown key `{key}`; known here: {}, and input, expect, range",
            known.join(", ")
        ));
    }
    if key == "sizes" {
        let mut sizes = BTreeMap::new();
        for part in value.split(',') {
            let (n, v) = part.split_once('=').ok_or("sizes are `n=2, m=5`")?;
            sizes.insert(n.trim().to_string(), v.trim().parse().map_err(|_| format!("`{v}` is no size"))?);
        }
        h.sizes.push(sizes);
        return Ok(());
    }
    match h.keys.insert(key.into(), value.into()) {
        // a longer description may go over several lines
        Some(_) if key != "about" => Err(format!("`{key}` is given twice")),
        _ => Ok(()),
    }
}

fn named(h: &mut Header, word: &str, name: &str, value: &str) -> Result<(), String> {
    if word == "range" {
        let (lo, hi) = value.split_once("..").ok_or("a range is `0..3` (both included)")?;
        let num = |s: &str| s.trim().parse::<i64>().map_err(|_| format!("`{s}` is no number"));
        h.ranges.insert(name.into(), (num(lo)?, num(hi)?));
        return Ok(());
    }
    let input = word == "input";
    if h.cases.last().is_none_or(|c| input && !c.expect.is_empty()) {
        h.cases.push(Case::default());
    }
    let Some(case) = h.cases.last_mut() else { return Ok(()) };
    let side = if input { &mut case.inputs } else { &mut case.expect };
    match side.insert(name.into(), value.into()) {
        Some(_) => Err(format!("{word} `{name}` is given twice in one case")),
        None => Ok(()),
    }
}
