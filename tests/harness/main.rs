//! Runs every fixture under `tests/{text,ops,passes,diag}`: one file, one named test, such as `passes::fold_constants::add`.
//! A file that is no fixture, a header key that its kind does not know and a snapshot without a fixture are failures.
//!
//! | folder | header keys besides `about` | what is done |
//! |---|---|---|
//! | `text/` | `canonical: yes` | read, verified, printed and read back; with `canonical` the file must be what is printed |
//! | `ops/` | `op` | the same, and every graph is run, also after decomposition and after the default pipeline, and with its constant input dims made dynamic, there compiled too |
//! | `ops/fail/`, `diag/` | `error: CODE words` | the first error found while reading, verifying or running has this code and these words; in `diag/` all that is printed is a snapshot |
//! | `passes/` | `pass: a, b` | the passes run; the graph and the rules that fired are a snapshot; both sides are run and compared |
//!
//! Keys for running a graph (`text/` is run only when `seed` or a case is given):
//! `seed: 3`; `sizes: n=2, m=5` (a line for each run, else two seeded runs); `range x = 0..3` (seeded values of an
//! input); cases, each of `input x = [[1, 2]]` lines and then `expect y = [3.0]` lines; `tolerance: 1e-5` for them.
//! With several graphs in a file, names of cases and ranges are written `graph.x`.

mod data;
mod dynamic;
mod execute;
mod header;
mod kinds;
mod walk;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let args = Arguments::from_args();
    let found = walk::walk();
    let mut trials: Vec<Trial> = Vec::new();
    for f in found.fixtures {
        trials.push(Trial::test(f.test_name(), move || kinds::run(&f).map_err(Into::into)));
    }
    trials.push(Trial::test("stray_files", move || match found.stray.is_empty() {
        true => Ok(()),
        false => Err(format!("neither fixture nor snapshot of one:\n  {}", found.stray.join("\n  ")).into()),
    }));
    libtest_mimic::run(&args, trials).exit();
}
