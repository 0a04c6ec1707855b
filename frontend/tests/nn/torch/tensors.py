"""Figures for operations of tensors. usage: python tensors.py (torch 2.15)"""

import math

import torch
import torch.nn.functional as F
from figures import case, write

torch.manual_seed(0)
inf, nan = math.inf, math.nan
T = torch.tensor
f32, f64, bf16, i64, i32, u8 = torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8


def rounded(f):
    """The exact result in f32, for judging the last digits."""
    return lambda *x: f(*[t.double() if t.dtype == f32 else t for t in x]).float()


def once(f):
    """Computed in f32 and rounded once, where PyTorch's own bf16 is of several roundings."""
    return lambda x: f(x.float()).to(bf16)


LINE = [-inf, -90.0, -5.5, -2.5, -1.0, -0.75, -0.5, -1e-4, -0.0, 1e-6, 0.3, 0.5, 0.999, 1.0, 1.5, 3.0, 20.5, inf, nan]
line = T(LINE)

# functions of one operand
FUNCTIONS = """exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh sigmoid erf erfc erfinv sinc logit deg2rad rad2deg""".split()
for name in FUNCTIONS:
    f = getattr(torch, name)
    case(f"{name}.f32", [line], rounded(f))
    case(f"{name}.f64", [line[1:-2].double()], f)
    case(f"{name}.bf16", [T([-3.0, -0.7, 0.01, 0.4, 2.0], dtype=bf16)], once(f) if name == "logit" else f)
    case(f"{name}.i64", [T([-1, 0, 1, 2])], f)
for name in "abs neg sign sgn floor ceil round trunc frac square positive".split():
    f = getattr(torch, name)
    case(f"{name}.f32", [line], f)
    if name != "frac":
        case(f"{name}.i64", [T([-2, 0, 3])], f)
for name in "isnan isinf isfinite isneginf isposinf signbit".split():
    f = getattr(torch, name)
    case(f"{name}.f32", [line], f)
    case(f"{name}.i64", [T([-2, 0, 3])], f)

ACTIVATIONS = {
    "relu": F.relu, "relu6": F.relu6, "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus, "softplus.beta": lambda x: F.softplus(x, 2.0, 3.0), "elu": F.elu,
    "elu.alpha": lambda x: F.elu(x, 0.7), "selu": F.selu, "celu": lambda x: F.celu(x, 1.3),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.02), "hardtanh": lambda x: F.hardtanh(x, -0.6, 2.0),
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "mish": F.mish, "logsigmoid": F.logsigmoid,
    "softsign": F.softsign, "tanhshrink": F.tanhshrink, "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.4, -7.0),
}
finite = line[1:-2]
for name, f in ACTIVATIONS.items():
    case(f"{name}.f32", [finite], rounded(f))
    case(f"{name}.bf16", [finite.to(bf16)], once(f) if name == "tanhshrink" else f)
case("relu6.i64", [T([-2, 3, 9])], F.relu6)
case("hardtanh.i64", [T([-2, 3, 9])], lambda x: F.hardtanh(x, -1, 5))
case("prelu.one", [finite, T([0.3])], F.prelu)
case("prelu.channels", [torch.randn(2, 3, 2), T([0.1, 0.2, -0.3])], F.prelu)
case("glu", [torch.randn(3, 4)], lambda x: F.glu(x, 1))
case("softmin", [torch.randn(3, 4)], lambda x: F.softmin(x, 1))
case("logit.eps", [T([-1.0, 0.0, 0.2, 1.0, nan])], lambda x: torch.logit(x, 0.01))
case("nan_to_num", [T([nan, inf, -inf, 1.5])], torch.nan_to_num)
case("nan_to_num.given", [T([nan, inf, -inf, 1.5], dtype=f64)], lambda x: torch.nan_to_num(x, 3.0, 9.0, -9.0))
case("nan_to_num.f16", [T([nan, inf, -inf], dtype=torch.float16)], torch.nan_to_num)
case("round_to", [T([1.2345, -2.675, 155.0])], lambda x: torch.round(x, decimals=2))
case("round_to.negative", [T([1234.5, -2655.0, 155.0])], lambda x: torch.round(x, decimals=-2))

# functions of two operands, all pairs of special values
SIDES = T([-inf, -2.5, -1.0, -0.0, 0.0, 0.5, 3.0, inf, nan])
a, b = [t.reshape(-1).contiguous() for t in torch.meshgrid(SIDES, SIDES, indexing="ij")]
for name in """add sub mul div remainder fmod floor_divide pow maximum minimum fmax fmin atan2 hypot copysign xlogy
heaviside logaddexp eq ne lt le gt ge logical_and logical_or logical_xor""".split():
    f = getattr(torch, name)
    if name == "copysign":
        keep = ~(a.isnan() | b.isnan())
        case(f"{name}.f32", [a[keep], b[keep]], f)
    else:
        case(f"{name}.f32", [a, b], f)
p, q = [t.reshape(-1).contiguous() for t in torch.meshgrid(T([-7, -2, 0, 1, 5]), T([-3, -1, 2, 4]), indexing="ij")]
for name in """add sub mul div remainder fmod floor_divide maximum minimum bitwise_and bitwise_or bitwise_xor eq lt ge
logical_and logical_or logical_xor fmax fmin atan2 copysign heaviside""".split():
    case(f"{name}.i64", [p, q], getattr(torch, name))
case("trunc_divide.f32", [a, b], lambda a, b: torch.div(a, b, rounding_mode="trunc"))
case("trunc_divide.i64", [p, q], lambda a, b: torch.div(a, b, rounding_mode="trunc"))
case("floor_divide.bf16", [T([5.5, -7.0], dtype=bf16), T([2.0, 0.3], dtype=bf16)], torch.floor_divide)
case("floor_divide.number", [T([-7, 7, 2])], lambda x: x // 2)
case("pow.i64", [T([-2, 3, 5]), T([3, 0, 2])], torch.pow)
case("pow.number", [T([-2.0, 3.0, 0.5])], lambda x: x**3)
case("hypot.large", [T([1e30, 3e-30]), T([1e30, 4e-30])], torch.hypot)
case("ldexp", [T([1.5, -2.0]), T([3, -1])], torch.ldexp)
case("left_shift", [T([1, -3, 7], dtype=i32), T([2, 1, 31], dtype=i32)], torch.bitwise_left_shift)
case("right_shift", [T([9, -3, 7], dtype=i32), T([2, 1, 31], dtype=i32)], torch.bitwise_right_shift)
case("bitwise_not.i64", [p], torch.bitwise_not)
yes, no = T([True, True, False, False]), T([True, False, True, False])
for name in "add mul maximum bitwise_and bitwise_or bitwise_xor logical_and eq lt".split():
    case(f"{name}.bool", [yes, no], getattr(torch, name))
case("bitwise_not.bool", [yes], torch.bitwise_not)
case("logical_not.f32", [SIDES], torch.logical_not)
case("lerp.number", [T([1.0, -2.0, 5.0]), T([3.0, 4.0, 5.0])], lambda x, y: torch.lerp(x, y, 0.3))
case("lerp.tensor", [T([1.0, -2.0, 5.0]), T([3.0, 4.0, 9.0]), T([0.1, 0.5, 2.0])], torch.lerp)
case("addcmul", [torch.randn(2, 3), torch.randn(3), torch.randn(2, 1)], lambda x, a, b: torch.addcmul(x, a, b, value=0.5))
case("addcmul.i64", [T([1, 2]), T([3, 4]), T([5, 6])], lambda x, a, b: torch.addcmul(x, a, b, value=2))
case("addcdiv", [torch.randn(2, 3), torch.randn(3), torch.rand(2, 1) + 1], lambda x, a, b: torch.addcdiv(x, a, b, value=-2.0))
case("clamp", [line], lambda x: x.clamp(-1.0, 0.4))
case("clamp.crossed", [line], lambda x: x.clamp(2.0, -1.0))
case("clamp.tensors", [torch.randn(3, 2), T([-0.5, 0.0]), T([[0.1], [0.2], [nan]])], torch.clamp)
case("clamp.int.fraction", [T([-3, 0, 5])], lambda x: x.clamp(-0.5, 1.5))
case("clamp_min", [T([-3, 0, 5])], lambda x: x.clamp_min(1))
case("clamp_max", [T([-3, 0, 5])], lambda x: x.clamp_max(1))
case("where", [no, T([1, 2, 3, 4]), T([0.5, 1.5, 2.5, 3.5])], torch.where)
case("where.broadcast", [T([[True], [False]]), T([1.0, 2.0]), T(5.0)], torch.where)
case("where.numbers", [no], lambda c: torch.where(c, 1.0, 2.0))
case("where.number", [no, T([1, 2, 3, 4], dtype=i32)], lambda c, x: torch.where(c, x, 7))
case("masked_fill", [torch.randn(2, 3), T([True, False, True])], lambda x, m: x.masked_fill(m, -inf))
case("masked_fill.i64", [T([1, 2, 3]), T([True, False, True])], lambda x, m: x.masked_fill(m, 9))
case("isclose", [T([1.0, 1.0, nan, inf, inf]), T([1.00001, 1.1, nan, inf, -inf])], torch.isclose)
case("isclose.nan", [T([1.0, nan]), T([1.0, nan])], lambda a, b: torch.isclose(a, b, equal_nan=True))

# promotion of element types
KINDS = [torch.bool, u8, torch.int8, i32, i64, torch.float16, bf16, f32, f64]
for s in KINDS:
    for t in KINDS:
        case(f"promote.{s}.{t}".replace("torch.", ""), [T([1], dtype=s), T([1], dtype=t)], torch.add)
case("promote.scalars", [T([1], dtype=i32), T(1), T(1.5, dtype=f64), T([1.0], dtype=torch.float16)],
     lambda a, b, c, d: [a + b, a + c, d + c, d + b, a * 2.5, d * 2.5])

# reductions
m = torch.randn(2, 3, 4)
z = T([[1.0, nan, -2.0], [0.0, 4.0, 4.0]])
n = T([[3, -1, 0], [2, 2, 5]])
REDUCTIONS = "sum prod mean amax amin all any count_nonzero nansum nanmean logsumexp".split()
for name in REDUCTIONS:
    f = getattr(torch, name)
    many = name != "prod" and name not in ("all", "any") or None
    case(f"{name}.axis", [m], (lambda f: lambda x: f(x, dim=1))(f))
    keep = {} if name == "count_nonzero" else {"keepdim": True}
    case(f"{name}.keep", [m], (lambda f, k: lambda x: f(x, dim=-1, **k))(f, keep))
    everything = (lambda x: torch.logsumexp(x, dim=(0, 1))) if name == "logsumexp" else f
    case(f"{name}.all", [z], everything)
    if many:
        case(f"{name}.two", [m], (lambda f: lambda x: f(x, dim=(0, 2)))(f))
for name in "sum prod amax amin all any count_nonzero nansum".split():
    case(f"{name}.i64", [n], (lambda f: lambda x: f(x, dim=1))(getattr(torch, name)))
for name in "sum prod all any amax".split():
    case(f"{name}.bool", [n > 1], (lambda f: lambda x: f(x, dim=0))(getattr(torch, name)))
for name in "sum prod all any mean logsumexp".split():
    case(f"{name}.empty", [torch.zeros(2, 0)], (lambda f: lambda x: f(x, dim=1))(getattr(torch, name)))
case("all.u8", [T([[1, 0], [3, 4]], dtype=u8)], lambda x: torch.all(x, dim=1))
case("logsumexp.inf", [T([[-inf, -inf], [inf, 1.0], [nan, 1.0], [1000.0, 1000.0]])], lambda x: torch.logsumexp(x, 1))
case("sum.bf16", [torch.randn(40).to(bf16)], torch.sum)
for c in (0, 1, 2):
    case(f"var_mean.{c}", [m], (lambda c: lambda x: torch.var_mean(x, dim=(0, 2), correction=c))(c))
case("std_mean", [m], lambda x: torch.std_mean(x, dim=1, keepdim=True))
case("var.all", [m], torch.var)
case("std.axis", [m], lambda x: torch.std(x, dim=2, correction=0))
case("var.one", [torch.randn(2, 1)], lambda x: x.var(1))
case("var.bf16", [torch.randn(2, 9).to(bf16)], lambda x: x.var(1))
for q_ in (0.0, 1.0, 2.0, 3.0, 0.5, inf, -inf):
    case(f"norm.{q_}", [m], (lambda q: lambda x: x.norm(q, dim=(1,)))(q_))
case("norm.all", [m], lambda x: x.norm())
case("dist", [m, torch.randn(4)], lambda x, y: torch.dist(x, y, 2))
case("renorm", [torch.randn(3, 4) * 2], lambda x: torch.renorm(x, 2, 0, 1.5))
case("max", [m], torch.max)
case("min", [z], torch.min)
ties = T([[2.0, 5.0, 5.0, nan, 1.0], [3.0, 1.0, 3.0, 1.0, 0.0]])
case("max.dim", [ties], lambda x: torch.max(x, 1))
case("min.dim", [ties[:, :3]], lambda x: torch.min(x, 1, keepdim=True))
case("aminmax", [m], lambda x: torch.aminmax(x, dim=1))
case("argmax.all", [m], torch.argmax)
case("argmax.keep", [m], lambda x: torch.argmax(x, keepdim=True))
case("argmin.axis", [n], lambda x: torch.argmin(x, 0))
case("softmax", [torch.randn(3, 4)], lambda x: x.softmax(1))
case("log_softmax", [torch.randn(3, 4)], lambda x: x.log_softmax(0))

# order
case("topk", [ties], lambda x: torch.topk(x, 2, 1))
case("topk.smallest", [m], lambda x: torch.topk(x, 2, 2, largest=False))
case("sort", [ties], lambda x: torch.sort(x, dim=1, stable=True))
case("sort.descending", [n], lambda x: torch.sort(x, dim=0, descending=True, stable=True))
case("sort.bool", [no], lambda x: torch.sort(x, dim=0, stable=True))
case("argsort", [m], lambda x: torch.argsort(x, 1))
case("msort", [m], torch.msort)
case("kthvalue", [m], lambda x: torch.kthvalue(x, 2, 1))
case("median", [m], torch.median)
case("median.even", [m], lambda x: torch.median(x, 2))
case("median.nan", [z], lambda x: torch.median(x, 1, keepdim=True))
case("median.i64", [T([[3, -1, 0], [2, 9, 5]])], lambda x: torch.median(x, 1))
case("quantile", [m], lambda x: torch.quantile(x, 0.3, 1))
case("quantile.keep", [z], lambda x: torch.quantile(x, 0.5, 1, keepdim=True))
case("trapezoid", [m], lambda x: torch.trapezoid(x, dx=0.5, dim=1))
case("cov", [m[0]], torch.cov)
case("corrcoef", [m[0]], torch.corrcoef)
case("isin", [n, T([2, 0])], torch.isin)
case("rsub", [T([1, 2]), T([5.0, 7.0])], torch.rsub)
case("float_power", [T([2, 3]), T([-1, 2])], torch.float_power)
case("cumsum", [m], lambda x: x.cumsum(1))
case("cumsum.bool", [no], lambda x: x.cumsum(0))
case("cumprod", [m], lambda x: x.cumprod(-1))
case("cumprod.i64", [n], lambda x: x.cumprod(1))
case("cummax", [ties], lambda x: x.cummax(1))
case("cummax.low", [T([-inf, -inf, 1.0, 0.0, 1.0])], lambda x: x.cummax(0))
case("cummin", [m], lambda x: x.cummin(1))
case("cummin.i64", [n], lambda x: x.cummin(0))
case("logcumsumexp", [T([[1.0, -inf, 1000.0], [-inf, 2.0, 2.0]])], lambda x: x.logcumsumexp(1))
case("diff", [m], lambda x: x.diff(1, 2))
case("diff.twice", [n], lambda x: x.diff(2, 1))
case("diff.bool", [no], lambda x: x.diff())
case("diff.short", [torch.randn(1)], lambda x: x.diff())
edges = T([1.0, 2.0, 2.0, 5.0])
case("searchsorted", [edges, T([[0.0, 2.0], [5.0, 9.0]])], torch.searchsorted)
case("searchsorted.right", [edges, T([[0.0, 2.0], [5.0, 9.0]])], lambda e, v: torch.searchsorted(e, v, right=True))
case("bucketize", [T([0.5, 2.0, 6.0]), edges], torch.bucketize)

import shapes  # noqa: E402,F401
write(__file__)
