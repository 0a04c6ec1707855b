//! Second names give what the first ones give, and in-place methods what the others give.

use tgc_frontend::nn::*;

fn agree(name: &str, a: &Tensor, b: &Tensor) {
    assert_eq!(format!("{a:#}"), format!("{b:#}"), "{name}");
    let same = a.to_vec().iter().zip(b.to_vec()).all(|(a, b)| *a == b || (a.is_nan() && b.is_nan()));
    assert!(same, "{name}: {a} and {b}");
}

fn x() -> Tensor {
    Tensor::from([[0.5f32, -2.25, 0.0], [3.75, 1.0, -0.125]])
}

macro_rules! same {
    ($x:expr; $($name:ident = $of:ident($($arg:expr),*);)*) => {
        $(agree(stringify!($name), &$x.$name($($arg),*), &$x.$of($($arg),*));)*
    };
}

macro_rules! bound {
    ($x:expr; $($name:ident = $of:ident($($arg:expr),*);)*) => { $({
        let mut y = $x.clone();
        y.$name($($arg),*);
        agree(stringify!($name), &y, &$x.$of($($arg),*));
    })* };
}

#[test]
fn second_names() {
    let (x, y) = (x(), Tensor::from([1.0f32, -2.25, 4.0]));
    same! { x;
        true_divide = div(&y); subtract = sub(&y); multiply = mul(&y); divide = div(&y); arctan2 = atan2(&y);
        greater = gt(&y); greater_equal = ge(&y); less = lt(&y); less_equal = le(&y); not_equal = ne(&y);
        fix = trunc(); absolute = abs(); negative = neg(); arcsin = asin(); arccos = acos(); arctan = atan();
        arcsinh = asinh(); arccosh = acosh(); arctanh = atanh(); broadcast_to = expand((2, 2, 3));
        swapdims = transpose(0, 1); argwhere = nonzero(); clip = clamp(0, 1); empty_like = zeros_like();
    }
    same! { y; vdot = dot(&y); ger = outer(&y); }
    let n = Tensor::from([5i64, -3]);
    agree("shift", &n.bitwise_left_shift(1), &(&n << 1));
    agree("shift", &n.bitwise_right_shift(1), &n.floor_divide(2));
    agree("ravel", &x.ravel(), &x.reshape(6));
    for (name, got) in
        [("view_as", n.view_as(&n)), ("reshape_as", n.reshape_as(&n)), ("type_as", n.type_as(&n))]
    {
        agree(name, &got, &n);
    }
    agree("expand_as", &y.expand_as(&x), &y.expand((2, 3)));
    agree("row_stack", &Tensor::row_stack(&[&y, &x]), &Tensor::vstack(&[&y, &x]));
    agree("concat", &Tensor::concat(&[&x, &x], 1), &Tensor::concatenate(&[&x, &x], 1));
    agree("vsplit", &x.vsplit(2)[1], &x.i(1..));
    agree("dsplit", &x.unsqueeze(0).dsplit(3)[2], &x.unsqueeze(0).i((Ellipsis, 2..)));
    agree("permute", &x.permute([1, 0]), &x.t());
    agree("narrow", &x.narrow(1, 1, 2), &x.i((.., 1..)));
    agree("select", &x.select(1, -1), &x.i((.., -1)));
    agree("arange_from", &Tensor::arange_from(2, 5), &Tensor::arange(3).add(2));
}

#[test]
fn in_place_forms() {
    let (x, y) = (x(), Tensor::from([1.0f32, 2.0, 4.0]));
    let line = Tensor::from([1i64, 0]);
    let (i, u) = (Tensor::from([[1i64, 0, 0]]), Tensor::from([[7.0f32, 8.0, 9.0]]));
    bound! { x;
        div_ = div(&y); remainder_ = remainder(&y); pow_ = pow(&y); clamp_min_ = clamp_min(0.25);
        clamp_max_ = clamp_max(0.25); abs_ = abs(); neg_ = neg(); exp_ = exp(); log_ = log(); sqrt_ = sqrt();
        rsqrt_ = rsqrt(); square_ = square(); reciprocal_ = reciprocal(); floor_ = floor(); ceil_ = ceil();
        round_ = round(); trunc_ = trunc(); sin_ = sin(); cos_ = cos(); tanh_ = tanh(); sigmoid_ = sigmoid();
        lerp_ = lerp(&y, 0.75); addcmul_ = addcmul(&y, &y, 0.5); addcdiv_ = addcdiv(&y, &y, 0.5);
        masked_scatter_ = masked_scatter(&x.gt(0), &x.neg()); index_add_ = index_add(0, &line, &x, 2);
        index_copy_ = index_copy(0, &line, &x); index_fill_ = index_fill(1, &line, 5.0); scatter_ = scatter(0, &i, &u);
        scatter_add_ = scatter_add(0, &i, &u); scatter_reduce_ = scatter_reduce(0, &i, &u, "amax", true);
        tril_ = tril(0); triu_ = triu(1); cumsum_ = cumsum(1); unsqueeze_ = unsqueeze(1); squeeze_ = squeeze(&[]);
        transpose_ = transpose(0, 1);
    }
    let (n, m) = (Tensor::from([5i64, 6, 0]), Tensor::from([3i64, 0, 1]));
    bound! { n; bitwise_and_ = bitwise_and(&m); bitwise_or_ = bitwise_or(&m); bitwise_xor_ = bitwise_xor(&m); }
    let (p, q) = (n.bool(), m.bool());
    bound! { p; logical_and_ = logical_and(&q); logical_or_ = logical_or(&q); logical_not_ = logical_not(); }
    let mut s = p.clone();
    s &= &q;
    agree("&=", &s, &(&p & &q));
    let mut s = n.clone();
    s |= &m;
    s ^= 1;
    agree("|= ^=", &s, &((&n | &m) ^ 1));
}
