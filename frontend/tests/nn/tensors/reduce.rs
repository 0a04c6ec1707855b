//! Reductions and order.

use super::{Case, SUMS, run};
use tgc_frontend::nn::*;

type Reduction = fn(&Tensor, &[i64], bool) -> Tensor;

macro_rules! all {
    ($($name:ident)*) => { [$((stringify!($name), Tensor::$name as Reduction)),*] };
}

fn over(of: &[(&str, Reduction)], kind: &str, dims: &'static [i64], keep: bool) -> Vec<Case> {
    let case = |(name, f): &(&str, Reduction)| {
        let f = *f;
        Case::one(format!("{name}.{kind}"), SUMS, move |x| f(&x[0], dims, keep))
    };
    of.iter().map(case).collect()
}

fn reductions() -> Vec<Case> {
    let every = all!(sum prod mean amax amin all any count_nonzero nansum nanmean logsumexp);
    let mut out = over(&every, "axis", &[1], false);
    let keep: Vec<_> = every.iter().copied().filter(|e| e.0 != "count_nonzero").collect();
    out.extend(over(&keep, "keep", &[-1], true));
    out.extend(over(&all!(count_nonzero), "keep", &[-1], false));
    out.extend(over(&every, "all", &[], false));
    let many = all!(sum mean amax amin count_nonzero nansum nanmean logsumexp);
    out.extend(over(&many, "two", &[0, 2], false));
    out.extend(over(&all!(sum prod amax amin all any count_nonzero nansum), "i64", &[1], false));
    out.extend(over(&all!(sum prod all any amax), "bool", &[0], false));
    out.extend(over(&all!(sum prod all any mean logsumexp), "empty", &[1], false));
    out.extend(over(&all!(all), "u8", &[1], false));
    out.extend(over(&all!(logsumexp), "inf", &[1], false));
    out.push(Case::one("sum.bf16", 8e-3, |x| x[0].sum(&[], false)));
    out
}

fn pair((a, b): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![a, b]
}

fn statistics() -> Vec<Case> {
    let mut out: Vec<Case> = (0..3)
        .map(|c| Case::new(format!("var_mean.{c}"), SUMS, move |x| pair(x[0].var_mean(&[0, 2], c, false))))
        .collect();
    for (text, p) in [
        ("0.0", 0.0),
        ("1.0", 1.0),
        ("2.0", 2.0),
        ("3.0", 3.0),
        ("0.5", 0.5),
        ("inf", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
    ] {
        out.push(Case::one(format!("norm.{text}"), SUMS, move |x| x[0].norm(p, &[1], false)));
    }
    out.extend([
        Case::new("std_mean", SUMS, |x| pair(x[0].std_mean(&[1], 1, true))),
        Case::one("var.all", SUMS, |x| x[0].var(&[], 1, false)),
        Case::one("std.axis", SUMS, |x| x[0].std(&[2], 0, false)),
        Case::one("var.one", SUMS, |x| x[0].var(&[1], 1, false)),
        Case::one("var.bf16", 8e-3, |x| x[0].var(&[1], 1, false)),
        Case::one("norm.all", SUMS, |x| x[0].norm(2.0, &[], false)),
        Case::one("dist", SUMS, |x| x[0].dist(&x[1], 2.0)),
        Case::one("renorm", SUMS, |x| x[0].renorm(2.0, 0, 1.5)),
        Case::one("max", 0.0, |x| x[0].max()),
        Case::one("min", 0.0, |x| x[0].min()),
        Case::new("max.dim", 0.0, |x| pair(x[0].max_dim(1, false))),
        Case::new("min.dim", 0.0, |x| pair(x[0].min_dim(1, true))),
        Case::new("aminmax", 0.0, |x| pair(x[0].aminmax(&[1], false))),
        Case::one("argmax.all", 0.0, |x| x[0].argmax(None, false)),
        Case::one("argmax.keep", 0.0, |x| x[0].argmax(None, true)),
        Case::one("argmin.axis", 0.0, |x| x[0].argmin(0, false)),
        Case::one("softmax", SUMS, |x| x[0].softmax(1)),
        Case::one("log_softmax", SUMS, |x| x[0].log_softmax(0)),
    ]);
    out
}

fn order() -> Vec<Case> {
    vec![
        Case::new("topk", 0.0, |x| pair(x[0].topk(2, 1, true))),
        Case::new("topk.smallest", 0.0, |x| pair(x[0].topk(2, 2, false))),
        Case::new("sort", 0.0, |x| pair(x[0].sort(1, false))),
        Case::new("sort.descending", 0.0, |x| pair(x[0].sort(0, true))),
        Case::new("sort.bool", 0.0, |x| pair(x[0].sort(0, false))),
        Case::one("argsort", 0.0, |x| x[0].argsort(1, false)),
        Case::one("msort", 0.0, |x| x[0].msort()),
        Case::new("kthvalue", 0.0, |x| pair(x[0].kthvalue(2, 1, false))),
        Case::one("median", 0.0, |x| x[0].median()),
        Case::new("median.even", 0.0, |x| pair(x[0].median_dim(2, false))),
        Case::new("median.nan", 0.0, |x| pair(x[0].median_dim(1, true))),
        Case::new("median.i64", 0.0, |x| pair(x[0].median_dim(1, false))),
        Case::one("quantile", SUMS, |x| x[0].quantile(0.3, 1, false)),
        Case::one("quantile.keep", SUMS, |x| x[0].quantile(0.5, 1, true)),
        Case::one("trapezoid", SUMS, |x| x[0].trapezoid(0.5, 1)),
        Case::one("cov", SUMS, |x| x[0].cov(1)),
        Case::one("corrcoef", SUMS, |x| x[0].corrcoef()),
        Case::one("isin", 0.0, |x| x[0].isin(&x[1])),
        Case::one("rsub", 0.0, |x| x[0].rsub(&x[1])),
        Case::one("float_power", 1e-15, |x| x[0].float_power(&x[1])),
        Case::one("cumsum", SUMS, |x| x[0].cumsum(1)),
        Case::one("cumsum.bool", 0.0, |x| x[0].cumsum(0)),
        Case::one("cumprod", SUMS, |x| x[0].cumprod(-1)),
        Case::one("cumprod.i64", 0.0, |x| x[0].cumprod(1)),
        Case::new("cummax", 0.0, |x| pair(x[0].cummax(1))),
        Case::new("cummax.low", 0.0, |x| pair(x[0].cummax(0))),
        Case::new("cummin", 0.0, |x| pair(x[0].cummin(1))),
        Case::new("cummin.i64", 0.0, |x| pair(x[0].cummin(0))),
        Case::one("logcumsumexp", SUMS, |x| x[0].logcumsumexp(1)),
        Case::one("diff", SUMS, |x| x[0].diff(1, 2)),
        Case::one("diff.twice", 0.0, |x| x[0].diff(2, 1)),
        Case::one("diff.bool", 0.0, |x| x[0].diff(1, -1)),
        Case::one("diff.short", 0.0, |x| x[0].diff(1, -1)),
        Case::one("searchsorted", 0.0, |x| x[0].searchsorted(&x[1], false)),
        Case::one("searchsorted.right", 0.0, |x| x[0].searchsorted(&x[1], true)),
        Case::one("bucketize", 0.0, |x| x[0].bucketize(&x[1], false)),
    ]
}

pub fn cases() -> Vec<Case> {
    [reductions(), statistics(), order()].into_iter().flatten().collect()
}

#[test]
fn sums_and_extremes() {
    run(reductions());
}

#[test]
fn statistics_and_norms() {
    run(statistics());
}

#[test]
fn sorting_and_running_values() {
    run(order());
}
