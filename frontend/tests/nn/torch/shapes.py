"""Figures for shapes, indices, products and factories; a part of tensors.py."""

import torch
import torch.nn.functional as F
from figures import case

T = torch.tensor
x = torch.arange(24.0).reshape(2, 3, 4)
v = torch.arange(5.0)
sq = torch.arange(9).reshape(3, 3)

case("squeeze", [torch.randn(1, 2, 1)], torch.squeeze)
case("squeeze.axes", [torch.randn(1, 2, 1)], lambda x: x.squeeze((0, 1)))
case("unflatten", [torch.randn(2, 6)], lambda x: x.unflatten(1, (2, -1)))
case("flatten", [x], lambda x: x.flatten(1))
case("t", [sq], torch.t)
case("mt", [x], lambda x: x.mT)
case("movedim", [x], lambda x: x.movedim((0, 2), (2, 0)))
case("movedim.one", [x], lambda x: x.movedim(0, -1))
case("swapaxes", [x], lambda x: x.swapaxes(0, 2))
case("expand", [torch.randn(3, 1)], lambda x: x.expand(2, -1, 4))
case("repeat", [T([[1, 2], [3, 4]])], lambda x: x.repeat(2, 1, 3))
case("tile", [T([[1, 2], [3, 4]])], lambda x: x.tile(2))
case("repeat_interleave", [T([[1, 2], [3, 4]])], lambda x: x.repeat_interleave(2, 1))
case("repeat_interleave.flat", [T([[1, 2], [3, 4]])], lambda x: x.repeat_interleave(3))
case("split", [v], lambda x: x.split(2))
case("split.sizes", [x], lambda x: x.split([1, 3], 2))
case("chunk", [v], lambda x: x.chunk(3))
case("chunk.fewer", [v], lambda x: x.chunk(4))
case("tensor_split", [v], lambda x: x.tensor_split(3))
case("hsplit", [sq], lambda x: x.hsplit(3))
case("block_diag", [sq, T([7, 8]), T(9)], torch.block_diag)
case("put", [sq, T([0, 8, 0]), T([5, 6, 7])], lambda x, i, v: x.put(i, v, accumulate=True))
case("unbind", [x], lambda x: x.unbind(1))
case("stack", [T([1, 2]), T([3, 4])], lambda a, b: torch.stack([a, b], 1))
case("cat.promote", [T([1, 2]), T([0.5])], lambda a, b: torch.cat([a, b]))
for name in "hstack vstack dstack column_stack".split():
    f = getattr(torch, name)
    case(f"{name}.1", [T([1, 2]), T([3, 4])], (lambda f: lambda a, b: f([a, b]))(f))
    case(f"{name}.2", [sq, sq + 1], (lambda f: lambda a, b: f([a, b]))(f))
case("atleast", [T(1.5), v], lambda a, b: [torch.atleast_1d(a), torch.atleast_2d(b), torch.atleast_3d(b), torch.atleast_3d(a)])
case("broadcast_tensors", [torch.randn(3, 1), torch.randn(2)], lambda a, b: torch.broadcast_tensors(a, b))
case("meshgrid", [T([1, 2, 3]), T([4, 5])], lambda a, b: torch.meshgrid(a, b, indexing="ij"))
case("meshgrid.xy", [T([1, 2, 3]), T([4, 5])], lambda a, b: torch.meshgrid(a, b, indexing="xy"))
case("cartesian_prod", [T([1, 2, 3]), T([4, 5])], lambda a, b: torch.cartesian_prod(a, b))
case("flip", [x], lambda x: x.flip(0, 2))
case("fliplr", [sq], torch.fliplr)
case("flipud", [sq], torch.flipud)
case("roll", [x], lambda x: x.roll((1, -3), (0, 2)))
case("roll.flat", [sq], lambda x: x.roll(4))
for k in (1, 2, 3, -1):
    case(f"rot90.{k}", [x], (lambda k: lambda x: x.rot90(k, (0, 2)))(k))
for k in (-1, 0, 2):
    case(f"tril.{k}", [x], (lambda k: lambda x: x.tril(k))(k))
    case(f"triu.{k}", [x], (lambda k: lambda x: x.triu(k))(k))
    case(f"diagonal.{k}", [x], (lambda k: lambda x: x.diagonal(k, 2, 0))(k))
    case(f"diag.{k}", [T([1, 2, 3])], (lambda k: lambda x: x.diag(k))(k))
    case(f"diag_embed.{k}", [torch.randn(2, 2)], (lambda k: lambda x: x.diag_embed(k))(k))
case("diag.matrix", [sq], lambda x: x.diag(1))
case("diagonal.far", [sq], lambda x: x.diagonal(5))
p4 = torch.arange(12.0).reshape(1, 3, 4)
case("pad.constant", [p4], lambda x: F.pad(x, (1, 2, 0, 1), value=9.0))
case("pad.cut", [p4], lambda x: F.pad(x, (-1, 2, 1, -2)))
for mode in ("reflect", "replicate", "circular"):
    case(f"pad.{mode}", [p4], (lambda m: lambda x: F.pad(x, (2, 1), mode=m))(mode))
case("unfold", [x], lambda x: x.unfold(1, 2, 1))
case("unfold.step", [v], lambda x: x.unfold(0, 2, 2))

# indexing
i, j = T([[0, 1], [1, -1]]), T([2, -3])
ix = {
    "number": lambda x: x[1, -1], "ranges": lambda x: x[0:1, :-1, -3:], "past": lambda x: x[:, 1:100, 9:],
    "step": lambda x: x[..., 1::2], "new": lambda x: x[None, :, 0, ..., None], "ellipsis": lambda x: x[..., 2],
    "tensor": lambda x: x[:, i - 0], "adjacent": lambda x: x[:, i, j], "apart": lambda x: x[i, :, j],
    "mixed": lambda x: x[1, :, j], "number between": lambda x: x[i, 1, j], "scalar tensor": lambda x: x[T(1), :, T(-1)],
    "new between": lambda x: x[i, None, j], "mask": lambda x: x[x > 10], "row mask": lambda x: x[:, T([True, False, True])],
    "mask and tensor": lambda x: x[:, T([True, False, True]), T([1, 2])], "leading mask": lambda x: x[x.sum(-1) > 30, 1:3],
}
for name, f in ix.items():
    case(f"i.{name}", [x], f)
case("gather", [x, T([[[0, 2, 1], [1, 1, 0]]])], lambda x, i: x.gather(2, i))
base, gi, src = torch.zeros(3, 4), T([[0, 2], [1, 0]]), T([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
case("scatter", [base, gi, src], lambda x, i, s: x.scatter(0, i, s))
case("scatter.number", [base, gi], lambda x, i: x.scatter(1, i, 7.0))
case("scatter_add", [base + 1, T([[0, 0], [0, 1]]), src], lambda x, i, s: x.scatter_add(0, i, s))
for how in ("sum", "prod", "mean", "amax", "amin"):
    for own in (True, False):
        f = (lambda h, o: lambda x, i, s: x.scatter_reduce(0, i, s, h, include_self=o))(how, own)
        case(f"scatter_reduce.{how}.{own}", [T([2.0, -3.0, 4.0]), T([0, 1, 0, 1]), T([1.0, 5.0, -6.0, 2.0])], f)
        f = (lambda h, o: lambda x, i, s: x.scatter_reduce(0, i, s, h, include_self=o))(how, own)
        case(f"scatter_reduce.{how}.{own}.i64", [T([2, -3, 4]), T([0, 1, 0, 1]), T([1, 5, -6, 2])], f)
line = T([2, 0])
case("index_select", [x, line], lambda x, i: x.index_select(1, i))
case("index_add", [x, line, torch.ones(2, 2, 4)], lambda x, i, s: x.index_add(1, i, s, alpha=-3))
case("index_copy", [x, line, torch.ones(2, 2, 4)], lambda x, i, s: x.index_copy(1, i, s))
case("index_fill", [x, line], lambda x, i: x.index_fill(2, i, -1.0))
case("take", [x, T([[0, 23], [5, -1]])], torch.take)
case("take_along_dim", [x, T([[[0], [2], [1]]])], lambda x, i: torch.take_along_dim(x, i, 2))
case("nonzero", [T([[0, 2], [3, 0], [0, 4]])], torch.nonzero)
case("nonzero_lines", [T([[0, 2], [3, 0]])], lambda x: x.nonzero(as_tuple=True))
case("masked_select", [x[0], T([True, False, False, True])], torch.masked_select)
case("masked_scatter", [sq, sq % 2 == 0, torch.arange(10) * 10], lambda x, m, s: x.masked_scatter(m, s))
case("index_put", [x, T([0, 1]), T([1, 1]), T([7.0, 8.0, 9.0, 5.0])], lambda x, i, j, v: x.index_put((i, j), v))
case("index_put.accumulate", [v, T([1, 1, 3]), T([1.0, 2.0, 4.0])], lambda x, i, v: x.index_put((i,), v, accumulate=True))


def assign(x, values):
    x[:, 1:, 0] = values
    return x


def mask(x):
    x[x > 10] = -1.0
    return x


case("assign", [x, T([[1.0, 2.0], [3.0, 4.0]])], assign)
case("assign.mask", [x], mask)
case("slice_scatter", [x, torch.ones(2, 2, 4)], lambda x, s: x.slice_scatter(s, 1, 1, 3))
case("select_scatter", [x, torch.ones(2, 4)], lambda x, s: x.select_scatter(s, 1, -1))

# in place
case("in_place", [T([1.5, -2.0, 0.25]), T([1.0, 2.0, 3.0])], lambda x, y: x.add_(y).mul_(2).sub_(0.5).clamp_(-1.0, 4.0).relu_())
case("in_place.i64", [T([7, -7, 0]), T([2.0, 3.0, 4.0])], lambda x, y: x.add_(3).mul_(2).floor_divide_(3).copy_(x + y))
case("in_place.fill", [sq], lambda x: [x.clone().fill_(4), x.clone().zero_(), x.clone().fill_diagonal_(7), x.clone().masked_fill_(x > 4, 0)])

# products
a2, b2, a3, b3 = torch.randn(2, 3), torch.randn(3, 4), torch.randn(5, 2, 3), torch.randn(5, 3, 4)
v3, w3 = torch.randn(3), torch.randn(3)
case("mm", [a2, b2], torch.mm)
case("bmm", [a3, b3], torch.bmm)
case("mv", [a2, v3], torch.mv)
case("dot", [v3, w3], torch.dot)
case("inner", [a2, torch.randn(4, 3)], torch.inner)
case("outer", [v3, w3], torch.outer)
case("matmul.i64", [sq, sq], torch.matmul)
case("addmm", [torch.randn(4), a2, b2], lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=2.0))
case("addmm.zero", [T([float("nan")]), a2, b2], lambda x, a, b: torch.addmm(x, a, b, beta=0.0))
case("addmv", [torch.randn(2), a2, v3], torch.addmv)
case("addr", [torch.randn(3, 3), v3, w3], lambda x, a, b: torch.addr(x, a, b, alpha=3.0))
case("baddbmm", [torch.randn(5, 2, 4), a3, b3], torch.baddbmm)
case("addbmm", [torch.randn(2, 4), a3, b3], torch.addbmm)
case("tensordot", [torch.randn(2, 3, 4), torch.randn(4, 2, 5)], lambda a, b: torch.tensordot(a, b, ([0, 2], [1, 0])))
case("tensordot.none", [v3, a2], lambda a, b: torch.tensordot(a, b, 0))
case("einsum.bmm", [a3, b3], lambda a, b: torch.einsum("bij,bjk->bik", a, b))
case("einsum.trace", [torch.randn(3, 3)], lambda a: torch.einsum("ii", a))
case("einsum.dots", [a3, v3], lambda a, b: torch.einsum("...j,j->...", a, b))
case("einsum.three", [a2, b2, v3], lambda a, b, c: torch.einsum("ij,jk,j->ik", a, b, c))
case("kron", [T([[1, 2], [3, 4]]), T([1, 10])], torch.kron)
case("cross", [torch.randn(2, 3), torch.randn(2, 3)], lambda a, b: torch.linalg.cross(a, b))
case("trace", [sq], torch.trace)
case("cdist", [a2, torch.randn(4, 3)], torch.cdist)
case("matrix_power", [torch.randn(3, 3)], lambda x: [torch.matrix_power(x, n) for n in (0, 1, 5)])
case("chain_matmul", [a2, b2, torch.randn(4, 2)], lambda a, b, c: torch.linalg.multi_dot([a, b, c]))

# factories and element types
case("factories", [], lambda: [
    torch.eye(2), torch.eye(2, 3, dtype=torch.int64), torch.arange(1, 10, 3), torch.arange(5, -1, -2), torch.arange(3, 3, 1),
    torch.linspace(-1, 2, 7), torch.linspace(3, 4, 1), torch.logspace(-1, 2, 4), torch.tril_indices(3, 2, 0),
    torch.triu_indices(2, 3, 1), torch.full((2,), 1.5)])
case("like", [sq], lambda x: [torch.full_like(x, 7), torch.zeros_like(x), torch.ones_like(x), x.new_zeros(2), x.new_ones((1, 2)), x.new_full((2,), 3)])
case("vander", [T([1.0, 2.0, 3.0])], lambda x: [torch.vander(x, 4), torch.vander(x, 2, True)])
case("casts", [T([-1.5, 0.0, 2.75])], lambda x: [x.double(), x.half(), x.bfloat16(), x.long(), x.int(), x.short(), x.char(), x.bool(), x.abs().byte()])

# nothing
none, nowhere = torch.zeros(0, 3), T([], dtype=torch.int64)
case("none.shapes", [none], lambda x: [
    x.flip(0, 1), x.roll(1, 0), x.repeat(2, 1), x.t(), x.tril(), x.diagonal(), x.reshape(3, 0), x.repeat_interleave(2, 1),
    x.diff(dim=0), x.expand(2, 0, 3), torch.cat([x, x]), x[:, 1:], x[nowhere], F.pad(x, (0, 0, 1, 0))])
case("none.by_index", [none], lambda x: [
    x.nonzero(), x[x > 0], x.masked_select(x > 0), x.index_select(1, T([0, 2])), x.masked_fill(x > 0, 1), x.take(nowhere),
    x.index_add(1, T([0]), torch.zeros(0, 1))])
case("none.values", [none], lambda x: [
    x.sum(0), x.prod(0), x.all(0), x.any(0), x.mean(0), x.var(0), x.norm(2, dim=0), x.norm(1, dim=1), x.logsumexp(0), x.amax(1),
    x.argmax(1), x.cumsum(0), x.cumprod(0), x.cummax(0)[0], x.sort(0)[0], x.sort(1)[1], x.topk(2, 1)[0], x.median(1)[0],
    x.softmax(1), x.mm(torch.zeros(3, 2)), x.t().mm(x), x.exp(), torch.isin(x, T([1.0]))])
