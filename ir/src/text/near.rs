//! Names close to a mistyped one, for messages.

/// The candidates that `name` may have meant, best first, at most three.
pub fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name: String = name.chars().take(64).collect();
    let limit = name.chars().count() / 3 + 1;
    let mut hits: Vec<(usize, &str)> =
        candidates.into_iter().map(|c| (distance(&name, c), c)).filter(|h| h.0 <= limit).collect();
    hits.sort();
    hits.into_iter().take(3).map(|h| h.1).collect()
}

/// Least number of letters to change, add, remove or swap with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_swapped_and_missing_letters() {
        let all = ["reshape", "reduce_sum", "reduce_max", "add"];
        assert_eq!(near("rehsape", all), ["reshape"]);
        assert_eq!(near("reduce_sun", all), ["reduce_sum", "reduce_max"]);
        assert!(near("zzz", all).is_empty());
    }
}
