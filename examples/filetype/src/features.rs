//! Features as magika defines them: the first and last bytes of a file without surrounding white space, padded; labels
//! and sizes come from the model's own configuration file.

use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// What the configuration file says.
pub struct Config {
    beg: usize,
    end: usize,
    block: usize,
    padding: i32,
    least: usize,
    medium: f64,
    labels: Vec<String>,
    json: Value,
}

/// Input of the model for a file, or the answer where no model is needed.
pub enum Features {
    /// One token a byte, or the padding token.
    Tokens(Vec<i32>),
    /// The answer.
    Told(String),
}

impl Config {
    /// Reads the configuration; an error names what is missing.
    pub fn read(path: &str) -> Result<Config, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("error: {path}: {e}"))?;
        let json: Value = serde_json::from_str(&text).map_err(|e| format!("error: {path}: not JSON: {e}"))?;
        let number = |k: &str| json[k].as_u64().ok_or_else(|| format!("error: {path}: `{k}` is missing"));
        let labels = json["target_labels_space"].as_array().into_iter().flatten();
        let labels: Vec<String> = labels.filter_map(|l| l.as_str().map(str::to_string)).collect();
        if labels.is_empty() {
            return Err(format!("error: {path}: `target_labels_space` is missing"));
        }
        Ok(Config {
            beg: number("beg_size")? as usize,
            end: number("end_size")? as usize,
            block: number("block_size")? as usize,
            padding: number("padding_token")? as i32,
            least: number("min_file_size_for_dl")? as usize,
            medium: json["medium_confidence_threshold"].as_f64().unwrap_or(0.5),
            labels,
            json,
        })
    }

    /// The best label in words, with its score; says so when the score is below the label's threshold.
    pub fn verdict(&self, scores: &[f64]) -> String {
        let best = (0..scores.len()).fold(0, |b, i| if scores[i] > scores[b] { i } else { b });
        let (Some(label), Some(score)) = (self.labels.get(best), scores.get(best)) else {
            return "no answer (the model has more labels than the configuration)".to_string();
        };
        let shown = self.json["overwrite_map"][label].as_str().unwrap_or(label);
        let threshold = self.json["thresholds"][label].as_f64().unwrap_or(self.medium);
        let percent = format!("{:.1}%", score * 100.0);
        if *score < threshold {
            format!("not sure; best guess {shown} ({percent})")
        } else {
            format!("{shown} ({percent})")
        }
    }
}

fn is_space(b: &u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Features of one file.
pub fn of_file(path: &str, c: &Config) -> Result<Features, String> {
    let text = |e: std::io::Error| e.to_string();
    let mut file = File::open(path).map_err(text)?;
    let meta = file.metadata().map_err(text)?;
    if meta.is_dir() {
        return Ok(Features::Told("directory".to_string()));
    }
    let size = meta.len();
    if size == 0 {
        return Ok(Features::Told("empty file".to_string()));
    }
    let n = (c.block as u64).min(size) as usize;
    let mut head = vec![0u8; n];
    file.read_exact(&mut head).map_err(text)?;
    file.seek(SeekFrom::Start(size - n as u64)).map_err(text)?;
    let mut tail = vec![0u8; n];
    file.read_exact(&mut tail).map_err(text)?;
    let front = &head[head.iter().take_while(|b| is_space(b)).count()..];
    let back = &tail[..tail.len() - tail.iter().rev().take_while(|b| is_space(b)).count()];
    let front = &front[..front.len().min(c.beg)];
    let back = &back[back.len() - back.len().min(c.end)..];
    if front.len() < c.least {
        let what = if std::str::from_utf8(&head).is_ok() {
            "txt (too short for the model)"
        } else {
            "unknown (too short)"
        };
        return Ok(Features::Told(what.to_string()));
    }
    let mut tokens: Vec<i32> = front.iter().map(|&b| i32::from(b)).collect();
    tokens.resize(c.beg + c.end - back.len(), c.padding);
    tokens.extend(back.iter().map(|&b| i32::from(b)));
    Ok(Features::Tokens(tokens))
}
