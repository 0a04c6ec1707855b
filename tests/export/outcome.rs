//! What became of exported files, and how that is judged.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What became of one exported file.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub group: &'static str,
    pub kind: String,
    pub name: String,
    pub opset: i64,
    /// `pass`, `unread` (the case is not imported, or not run by tgc either, so there is nothing to export), or what went wrong.
    pub status: &'static str,
    pub why: String,
    /// Counts for the gate.
    pub core: bool,
}

/// The part of the core cases that must survive.
const GATE: f64 = 0.95;

fn path() -> PathBuf {
    crate::root().join("tests/export/known.tsv")
}

type Key = (String, String, i64, String);

fn known() -> BTreeMap<Key, String> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let row = |l: &str| {
        let mut p = l.splitn(6, '\t').map(str::to_string);
        let (group, kind, name, opset, status) = (p.next()?, p.next()?, p.next()?, p.next()?, p.next()?);
        let key = (group, format!("{kind} {name}"), opset.parse().ok()?, status);
        Some((key, p.next().unwrap_or_default()))
    };
    text.lines().filter_map(row).collect()
}

/// Every outcome must be a pass or a known failure, and known failures must be ones.
pub fn judge(group: &'static str, found: &[Outcome]) -> Result<(), String> {
    let mut counts: BTreeMap<(i64, &str), usize> = BTreeMap::new();
    found.iter().for_each(|o| *counts.entry((o.opset, o.status)).or_default() += 1);
    for ((opset, status), n) in &counts {
        println!("{group}: opset {opset}: {n} {status}");
    }
    let failed = |o: &&Outcome| o.status != "pass" && o.status != "unread";
    let core: Vec<&Outcome> = found.iter().filter(|o| o.core && o.status != "unread").collect();
    let passed = core.iter().filter(|o| o.status == "pass").count();
    if !core.is_empty() {
        println!("{group}: core cases: {passed} of {} survive", core.len());
        if (passed as f64) < GATE * core.len() as f64 {
            return Err(format!("{passed} of {} core cases survive, {GATE} of them must", core.len()));
        }
    }
    let mut rows = known();
    if std::env::var_os("TGC_WRITE").is_some() {
        rows.retain(|k, _| k.0 != group);
        for o in found.iter().filter(failed) {
            rows.insert(key(o), short(&o.why));
        }
        let line = |((g, n, o, s), why): (&Key, &String)| {
            format!("{g}\t{}\t{o}\t{s}\t{why}\n", n.replacen(' ', "\t", 1))
        };
        let text: String = rows.iter().map(line).collect();
        return std::fs::write(path(), text).map_err(|e| e.to_string());
    }
    let mut bad: Vec<String> = found
        .iter()
        .filter(failed)
        .filter(|o| !rows.contains_key(&key(o)))
        .map(|o| format!("{} {} at opset {}: {}: {}", o.kind, o.name, o.opset, o.status, o.why))
        .collect();
    let keys: Vec<Key> = found.iter().filter(failed).map(key).collect();
    bad.extend(rows.keys().filter(|k| k.0 == group && !keys.contains(k)).map(|k| {
        format!("known.tsv: {} at opset {} does not fail so any more ({}); take the line out", k.1, k.2, k.3)
    }));
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) }
}

fn key(o: &Outcome) -> Key {
    (o.group.to_string(), format!("{} {}", o.kind, o.name), o.opset, o.status.to_string())
}

/// The reason in a line, without paths.
fn short(why: &str) -> String {
    let line = why.replace(['\n', '\t', '\r'], " ");
    let words = line.split(' ').filter(|w| !w.contains("/target/"));
    words.collect::<Vec<_>>().join(" ").chars().take(200).collect()
}
