//! The kernel verifier. A kernel without a diagnostic here is one the interpreter and every code generator accept (or
//! refuse by name); for the schedule see `Schedule::check`. What is checked, by code `E-KRN-0nn`:
//!
//! 1. Names are plain (letters, digits, `_`); those of arguments and locals, and of parameters, are unique.
//! 2. Dims of arguments, grid and `Full` axes use parameters only.
//! 3. Every label is introduced once: grid axes are `#0..`, others are higher. `over` is ascending and names grid axes.
//! 4. Extents and loop bounds use parameters and labels of outer loops; so does `when`.
//! 5. Scalar programs are well-typed; dim nodes use labels in scope; inputs have the types of the loads.
//! 6. Loads: the buffer exists, one index a axis, over labels in scope. `$n` is an integer node before the load's own.
//!    An index with `$n` is a `trap` unless shown to be inside. Loads used by `post` use no reduction label and no `$n`.
//! 7. Stores: into a local, `out` or `inout` argument of the result's type; no reduction labels; `$n` only in `Map`,
//!    with a site exactly then.
//! 8. A store to an argument stands in a stage that runs over every grid axis, and its index holds each grid label, so
//!    tiles write apart. Two stores to one argument hold the grid labels in the same way.
//! 9. A store that combines, or whose index holds `$n`, needs a sequential context: every grid label is an index of its
//!    own (none exist, for one tile).
//! 10. Other stores are injective over the stage's labels where this can be told (every label has to matter).
//! 11. A stage that loads from a buffer it stores to uses equal indices for both. Loads from `out` and `inout` arguments
//!     hold every grid label as an index of its own.
//! 12. Locals and `out` arguments are stored by an earlier stage than the one that first loads them.
//! 13. `Tile` axes are indexed by their grid label plus something within the halo.
//! 14. `Map` has no reduction labels and no `post`. `Reduce`: `lanes` is a power of two up to 256, the reducer is
//!     well-typed. `Contract`: two roots of one type (f32, f64 or an integer), `chunk` at least 1.
//! 15. Sites exist.
//! 16. Indices of loads and stores are inside their buffer wherever this can be told: an index over labels that leaves it
//!     at some point is refused.
//! 17. Buffers hold types that can be computed with; a packed argument is a weight, its order a permutation of its axes.
//!
//! Not checked, trusted as machine code is: bounds that need a relation between parameters (broadcasts of unknown dims,
//! symbolic slices), that outputs and locals are covered, that overlapping stores of one stage agree when indices hold
//! divisions, and `Fill` conditions too tangled to imply their bounds.

mod expr;
#[cfg(test)]
mod tests;

use super::bounds::{Scope, Verdict, facts};
use super::{Buf, Item, Kernel, Kind, Load, LocalAxis, Mode, Role, Stage, Store};
use expr::{Context, bad_leaf};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::Combine;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::scalar::ENode;
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// Most partials of a `Reduce`.
pub(crate) const MAX_LANES: u32 = 256;

/// Every violation of the module's list.
pub fn verify(kernel: &Kernel) -> Vec<Diag> {
    let mut c = Checker {
        k: kernel,
        out: Vec::new(),
        used: BTreeSet::new(),
        stored: BTreeMap::new(),
        place: String::new(),
    };
    c.place = format!("kernel {}", kernel.name);
    c.header();
    if c.out.is_empty() {
        c.items(&kernel.body, &mut Vec::new());
    }
    c.out
}

struct Checker<'k> {
    k: &'k Kernel,
    out: Vec<Diag>,
    /// Labels already introduced.
    used: BTreeSet<u32>,
    /// Buffers stored so far, with the index of one store.
    stored: BTreeMap<Buf, Vec<Dim>>,
    place: String,
}

/// A label with its values `lo .. hi`.
type Range = (u32, Dim, Dim);

/// What a stage's indices may use.
struct Frame<'a> {
    s: &'a Stage,
    /// Labels of points: over, inner and loops.
    point: Scope,
    /// These and the reduction labels.
    all: Scope,
    /// Where the stage runs.
    when: Vec<Dim>,
}

pub(crate) fn is_plain(s: &str) -> bool {
    !s.is_empty()
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !s.as_bytes()[0].is_ascii_digit()
}

impl<'k> Checker<'k> {
    fn fault(&mut self, code: &'static str, message: impl Into<String>) {
        self.out.push(Diag::error(code, message).at(&Loc::new(&self.place)));
    }

    fn param_leaf(&self, a: &Atom) -> bool {
        matches!(a, Atom::Sym(s) if self.k.params.contains(s))
    }

    fn header(&mut self) {
        let k = self.k;
        let mut names = BTreeSet::new();
        if !is_plain(&k.name) {
            self.fault("E-KRN-001", format!("`{}` is no plain name (letters, digits, `_`)", k.name));
        }
        for n in k.args.iter().map(|a| &a.name).chain(k.locals.iter().map(|l| &l.name)) {
            if n.is_empty() || !n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                self.fault("E-KRN-001", format!("`{n}` is no plain name (letters, digits, `_`)"));
            }
            if !names.insert(n) {
                self.fault("E-KRN-001", format!("two buffers are called `{n}`"));
            }
        }
        let params: BTreeSet<_> = k.params.iter().collect();
        if params.len() != k.params.len() || !k.params.iter().all(|p| is_plain(p)) {
            self.fault("E-KRN-001", "parameters need plain names that differ");
        }
        let mut dims: Vec<&Dim> = k.args.iter().flat_map(|a| &a.dims).chain(&k.grid).collect();
        let axes = k.locals.iter().flat_map(|l| &l.axes);
        for a in axes {
            match a {
                LocalAxis::Full(d) => dims.push(d),
                LocalAxis::Tile { grid, .. } if *grid as usize >= k.grid.len() => {
                    self.fault(
                        "E-KRN-013",
                        format!("a local has a tile of grid axis {grid}; there are {}", k.grid.len()),
                    );
                }
                LocalAxis::Ring(0) => self.fault("E-KRN-013", "a ring of 0 elements"),
                LocalAxis::Tile { .. } | LocalAxis::Ring(_) => {}
            }
        }
        for d in dims {
            if let Some(a) = bad_leaf(d, &|a| self.param_leaf(a)) {
                self.fault("E-KRN-002", format!("`{a}` in `{d}` is no parameter of the kernel"));
            }
        }
        for d in k.args.iter().map(|a| a.dtype).chain(k.locals.iter().map(|l| l.dtype)) {
            if d.is_storage_only() {
                self.fault("E-KRN-017", format!("buffers of {d} are not supported by kernels"));
            }
        }
        for a in k.args.iter().filter(|a| a.packed.is_some()) {
            let fits = a.packed.as_ref().is_none_or(|p| p.fits(a.dims.len()));
            if a.role != Role::Const || !fits {
                self.fault(
                    "E-KRN-017",
                    format!(
                        "`{}` cannot be packed so: a weight can, along one axis, in an order of all its axes",
                        a.name
                    ),
                );
            }
        }
    }

    fn items(&mut self, items: &'k [Item], loops: &mut Vec<Range>) {
        for item in items {
            match item {
                Item::Stage(s) => {
                    let outer = std::mem::replace(
                        &mut self.place,
                        format!("kernel {}, stage {:?}", self.k.name, s.name),
                    );
                    self.stage(s, loops);
                    self.place = outer;
                }
                Item::Loop { var, lo, hi, body } => {
                    self.introduce(*var);
                    let (lo, hi) = (self.extent(lo, loops), self.extent(hi, loops));
                    loops.push((*var, lo, hi));
                    self.items(body, loops);
                    loops.pop();
                }
            }
        }
    }

    fn introduce(&mut self, label: u32) {
        if (label as usize) < self.k.grid.len() || label > u32::MAX / 2 || !self.used.insert(label) {
            self.fault("E-KRN-003", format!("label #{label} is a grid axis, used twice or too large"));
        }
    }

    /// Checks an extent or loop bound; 1 stands for a faulty one.
    fn extent(&mut self, d: &Dim, loops: &[Range]) -> Dim {
        let ok = |a: &Atom| match a {
            Atom::Label(l) => loops.iter().any(|r| r.0 == *l),
            a => self.param_leaf(a),
        };
        match bad_leaf(d, &ok) {
            Some(a) => {
                self.fault(
                    "E-KRN-004",
                    format!("`{a}` in `{d}` is neither a parameter nor the label of an outer loop"),
                );
                Dim::from(1)
            }
            None => d.clone(),
        }
    }

    fn pred_leaves(&mut self, p: &Pred, ok: &dyn Fn(&Atom) -> bool, code: &'static str) {
        let mut bad = None;
        p.dims(&mut |d| bad = bad.take().or_else(|| bad_leaf(d, ok)));
        if let Some(a) = bad {
            self.fault(code, format!("`{a}` has no value in the condition `{p}`"));
        }
    }

    fn stage(&mut self, s: &'k Stage, loops: &[Range]) {
        let before = self.out.len();
        if s.over.iter().any(|g| *g as usize >= self.k.grid.len()) || s.over.windows(2).any(|w| w[0] >= w[1])
        {
            self.fault("E-KRN-003", format!("`over` {:?} must list grid axes in ascending order", s.over));
            return;
        }
        let mut point = Scope::default();
        loops.iter().for_each(|(l, lo, hi)| point.add(*l, lo, hi));
        s.over.iter().for_each(|g| point.add(*g, &Dim::from(0), &self.k.grid[*g as usize]));
        for (l, d) in &s.inner {
            self.introduce(*l);
            let d = self.extent(d, loops);
            point.add(*l, &Dim::from(0), &d);
        }
        let mut all = point.clone();
        for (l, d) in &s.red {
            self.introduce(*l);
            let d = self.extent(d, loops);
            all.add(*l, &Dim::from(0), &d);
        }
        let k = self.k;
        let outer = |a: &Atom| match a {
            Atom::Label(l) => loops.iter().any(|r| r.0 == *l),
            Atom::Sym(s) => k.params.contains(s),
            _ => false,
        };
        self.pred_leaves(&s.when, &outer, "E-KRN-004");
        let f = Frame { s, point, all, when: facts(&s.when) };
        let results = self.programs(&f);
        if self.out.len() > before {
            return;
        }
        s.loads.iter().enumerate().for_each(|(i, l)| self.load(&f, i, l));
        s.stores.iter().for_each(|st| self.store(&f, st, &results));
        for st in &s.stores {
            self.stored.entry(st.to).or_insert_with(|| st.index.clone());
        }
    }

    fn buffer_rank(&self, b: Buf) -> Option<usize> {
        match b {
            Buf::Arg(i) => self.k.args.get(i as usize).map(|a| a.dims.len()),
            Buf::Local(i) => self.k.locals.get(i as usize).map(|l| l.axes.len()),
        }
    }

    /// Checks the stage's scalar programs; returns the types of what is stored.
    fn programs(&mut self, f: &Frame<'_>) -> Vec<DType> {
        let (k, s) = (self.k, f.s);
        let leaf = |scope: &Scope, a: &Atom| match a {
            Atom::Label(l) => scope.has(*l),
            Atom::Sym(s) => k.params.contains(s),
            _ => false,
        };
        if let Some(l) = s.loads.iter().find(|l| self.buffer_rank(l.from).is_none()) {
            self.fault("E-KRN-006", format!("the buffer {:?} does not exist", l.from));
            return Vec::new();
        }
        let loads: Vec<DType> = s.loads.iter().map(|l| k.dtype(l.from)).collect();
        if let Err(m) = (Context { args: &loads, leaf: &|a| leaf(&f.all, a) }).check(&s.expr) {
            self.fault("E-KRN-005", m);
            return Vec::new();
        }
        let roots: Vec<DType> = s.expr.roots.iter().map(|r| s.expr.dtype(*r)).collect();
        let mut results = match &s.kind {
            Kind::Map => {
                if !s.red.is_empty() || s.post.is_some() {
                    self.fault("E-KRN-014", "a map has reduction labels or a post program");
                }
                roots
            }
            Kind::Reduce { reducer, lanes } => {
                if !lanes.is_power_of_two() || *lanes > MAX_LANES {
                    self.fault(
                        "E-KRN-014",
                        format!("{lanes} lanes; allowed are powers of two up to {MAX_LANES}"),
                    );
                }
                match expr::reducer(reducer, &roots, &|a| self.param_leaf(a)) {
                    Ok(r) => r,
                    Err(m) => {
                        self.fault("E-KRN-014", m);
                        return Vec::new();
                    }
                }
            }
            Kind::Contract { chunk } => {
                let [a, b] = roots[..] else {
                    self.fault(
                        "E-KRN-014",
                        format!("a contraction multiplies two values, not {}", roots.len()),
                    );
                    return Vec::new();
                };
                if *chunk == 0 || a != b || !(matches!(a, DType::F32 | DType::F64) || a.is_int()) {
                    self.fault("E-KRN-014", format!("a contraction of {a} and {b} in chunks of {chunk} (one type: f32, f64 or an integer; chunks of at least 1)"));
                }
                vec![a]
            }
        };
        if let Some(post) = &s.post {
            let args: Vec<DType> = results.iter().copied().chain(loads).collect();
            if let Err(m) = (Context { args: &args, leaf: &|a| leaf(&f.point, a) }).check(post) {
                self.fault("E-KRN-005", format!("post: {m}"));
                return Vec::new();
            }
            let firsts = results.len() as u32;
            results = post.roots.iter().map(|r| post.dtype(*r)).collect();
            for (node, _) in &post.nodes {
                let ENode::Arg(i) = node else { continue };
                let Some(l) = i.checked_sub(firsts).and_then(|i| s.loads.get(i as usize)) else { continue };
                if l.index.iter().any(|d| bad_leaf(d, &|a| leaf(&f.point, a)).is_some()) {
                    self.fault("E-KRN-006", "post uses a load whose index holds a reduction label or `$n`");
                }
            }
        }
        results
    }

    fn load(&mut self, f: &Frame<'_>, i: usize, l: &Load) {
        let (k, s) = (self.k, f.s);
        if self.buffer_rank(l.from) != Some(l.index.len()) {
            self.fault(
                "E-KRN-006",
                format!("load {i} has {} indices, its buffer another rank", l.index.len()),
            );
            return;
        }
        let first = s.expr.nodes.iter().position(|n| n.0 == ENode::Arg(i as u32)).unwrap_or(0);
        let value = |n: u32| (n as usize) < first && s.expr.dtype(n).is_int();
        let label = |a: &Atom| match a {
            Atom::Label(n) => f.all.has(*n),
            Atom::Sym(s) => k.params.contains(s),
            _ => false,
        };
        for d in &l.index {
            if let Some(a) = bad_leaf(d, &|a| label(a) || matches!(a, Atom::Val(n) if value(*n))) {
                self.fault(
                    "E-KRN-006",
                    format!("`{a}` in the index `{d}` of load {i} has no integer value there"),
                );
                return;
            }
        }
        let indirect = l.index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Val(_))));
        let mut known = f.when.clone();
        match &l.mode {
            Mode::Proved => {}
            Mode::Fill(p, v) => {
                self.pred_leaves(p, &label, "E-KRN-006");
                if v.dtype != k.dtype(l.from) {
                    self.fault("E-KRN-006", format!("load {i} fills {} with a {}", k.dtype(l.from), v.dtype));
                }
                known.extend(facts(p));
                if known.is_empty() && *p != Pred::True {
                    // some condition holds that could not be read: claim nothing
                    known.push(Dim::from(0));
                }
            }
            Mode::Trap(site, p) => {
                self.pred_leaves(p, &label, "E-KRN-006");
                if *site == 0 || *site as usize > k.sites.len() {
                    self.fault(
                        "E-KRN-015",
                        format!("load {i} names site {site}; there are {}", k.sites.len()),
                    );
                }
            }
        }
        let checked = matches!(l.mode, Mode::Trap(..));
        self.indices(&f.all, l.from, &l.index, &known, checked, indirect, &format!("load {i}"));
        if let Buf::Arg(a) = l.from
            && matches!(k.args[a as usize].role, Role::Out | Role::InOut)
            && !(0..k.grid.len() as u32).all(|g| l.index.contains(&Dim::label(g)))
        {
            self.fault(
                "E-KRN-011",
                format!("load {i} from `{}` may read what another tile writes", k.args[a as usize].name),
            );
        }
        let written = match l.from {
            Buf::Local(_) => false,
            Buf::Arg(a) => k.args[a as usize].role != Role::Out,
        };
        if !written && !self.stored.contains_key(&l.from) {
            self.fault("E-KRN-012", format!("load {i} reads a buffer that no earlier stage has stored"));
        }
        if s.stores.iter().any(|st| st.to == l.from && st.index != l.index) {
            self.fault(
                "E-KRN-011",
                format!("load {i} and a store use one buffer with different indices in one stage"),
            );
        }
    }

    /// Bounds of every index of an access; `checked` at run time means nothing has to hold.
    #[allow(clippy::too_many_arguments)] // one access in its parts
    fn indices(
        &mut self,
        scope: &Scope,
        b: Buf,
        index: &[Dim],
        known: &[Dim],
        checked: bool,
        indirect: bool,
        what: &str,
    ) {
        let axes: Vec<(Dim, Dim)> = match b {
            Buf::Arg(a) => index.iter().cloned().zip(self.k.args[a as usize].dims.iter().cloned()).collect(),
            Buf::Local(l) => {
                let mut v = Vec::new();
                for (d, axis) in index.iter().zip(&self.k.locals[l as usize].axes) {
                    match axis {
                        LocalAxis::Full(e) => v.push((d.clone(), e.clone())),
                        LocalAxis::Ring(_) => {}
                        LocalAxis::Tile { grid, lo, hi } => {
                            let off = d.clone() - Dim::label(*grid) + Dim::from(i64::from(*lo));
                            let width = Dim::from(i64::from(*lo) + i64::from(*hi) + 1);
                            let verdict = scope.inside(&off, &width, known);
                            let held = scope.has(*grid) && !off.any_leaf(|a| *a == Atom::Label(*grid));
                            if !held || verdict != Verdict::Proved {
                                self.fault(
                                    "E-KRN-013",
                                    format!("{what}: `{d}` must be #{grid} plus something in -{lo}..={hi}"),
                                );
                            }
                        }
                    }
                }
                v
            }
        };
        if scope.never(index) {
            return;
        }
        for (d, extent) in axes {
            let here = d.any_leaf(|a| matches!(a, Atom::Val(_)));
            let verdict = scope.inside(&d, &extent, known);
            if !checked && verdict == Verdict::Wrong {
                self.fault("E-KRN-016", format!("{what}: the index `{d}` leaves the extent `{extent}`"));
            } else if !checked && indirect && here && verdict != Verdict::Proved {
                self.fault("E-KRN-006", format!("{what}: the index `{d}` is data and is not shown to be below `{extent}`; make it a trap"));
            }
        }
    }

    fn store(&mut self, f: &Frame<'_>, st: &Store, results: &[DType]) {
        let (k, s) = (self.k, f.s);
        if self.buffer_rank(st.to) != Some(st.index.len()) {
            self.fault(
                "E-KRN-007",
                format!("a store with {} indices to {:?}, which has another rank", st.index.len(), st.to),
            );
            return;
        }
        match results.get(st.value as usize) {
            None => self
                .fault("E-KRN-007", format!("a store of result {}; there are {}", st.value, results.len())),
            Some(t) if *t != k.dtype(st.to) => {
                self.fault("E-KRN-007", format!("a store of {t} to a buffer of {}", k.dtype(st.to)));
            }
            Some(_) => {}
        }
        let map = matches!(s.kind, Kind::Map);
        let ok = |a: &Atom| match a {
            Atom::Label(n) => f.point.has(*n),
            Atom::Sym(p) => k.params.contains(p),
            Atom::Val(n) => map && (*n as usize) < s.expr.nodes.len() && s.expr.dtype(*n).is_int(),
            _ => false,
        };
        for d in &st.index {
            if let Some(a) = bad_leaf(d, &ok) {
                self.fault(
                    "E-KRN-007",
                    format!("`{a}` in the index `{d}` of a store has no integer value there"),
                );
                return;
            }
        }
        let indirect = st.index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Val(_))));
        if indirect != (st.site != 0) || st.site as usize > k.sites.len() {
            self.fault(
                "E-KRN-015",
                format!(
                    "a store names site {} of {}; it needs one exactly when its index is data",
                    st.site,
                    k.sites.len()
                ),
            );
        }
        let own = |g: u32| st.index.contains(&Dim::label(g));
        let sequential = (0..k.grid.len() as u32).all(own);
        if (indirect || st.op != Combine::Set) && !sequential {
            self.fault(
                "E-KRN-009",
                "a store that combines or is indexed by data needs every grid label as an index of its own",
            );
        }
        if let Buf::Arg(a) = st.to {
            let arg = &k.args[a as usize];
            if !matches!(arg.role, Role::Out | Role::InOut) {
                self.fault("E-KRN-007", format!("a store to `{}`, which is only read", arg.name));
            }
            let grid = |d: &Dim| d.any_leaf(|a| matches!(a, Atom::Label(g) if (*g as usize) < k.grid.len()));
            let holds =
                |g: u32| f.all.is_single(g) || st.index.iter().any(|d| d.any_leaf(|a| *a == Atom::Label(g)));
            if s.over.len() != k.grid.len() || !(0..k.grid.len() as u32).all(holds) {
                self.fault(
                    "E-KRN-008",
                    format!("a store to `{}` must run over every grid axis and use its label", arg.name),
                );
            } else if let Some(first) = self.stored.get(&st.to)
                && st.index.iter().zip(first).any(|(x, y)| x != y && (grid(x) || grid(y)))
            {
                self.fault(
                    "E-KRN-008",
                    format!("two stores to `{}` use the grid labels differently", arg.name),
                );
            }
        }
        self.indices(&f.point, st.to, &st.index, &f.when, indirect, indirect, "store");
        if !indirect && st.op == Combine::Set && not_injective(f, &st.index) {
            self.fault("E-KRN-010", "points of the stage store to one element (a label is missing from the index, or two overlap)");
        }
    }
}

/// True when two points of the stage certainly store to one element.
fn not_injective(f: &Frame<'_>, index: &[Dim]) -> bool {
    let labels = f.s.over.iter().copied().chain(f.s.inner.iter().map(|l| l.0));
    let mut open: BTreeSet<u32> = labels.filter(|l| !f.point.is_single(*l)).collect();
    let in_it = |d: &Dim, l: u32| d.any_leaf(|a| *a == Atom::Label(l));
    if open.iter().any(|l| !index.iter().any(|d| in_it(d, *l))) {
        return true;
    }
    if index.iter().any(|d| open.iter().any(|l| in_it(d, *l) && d.affine(*l).is_none())) {
        return false;
    }
    // resolve labels: alone in an index, or the slower one of a mixed radix whose faster part is smaller
    loop {
        let before = open.len();
        for d in index {
            let mine: Vec<u32> = open.iter().copied().filter(|l| in_it(d, *l)).collect();
            for l in &mine {
                let Some((step, rest)) = d.affine(*l) else { continue };
                let fixed = |a: &Atom| matches!(a, Atom::Label(m) if mine.contains(m));
                let free = rest.subst(&|a| if fixed(a) { None } else { Some(Dim::from(0)) });
                let below = f.point.nonneg(&(step - Dim::from(1) - free.clone()), &[]);
                if mine.len() == 1
                    || (below != Verdict::Wrong && f.point.nonneg(&free, &[]) != Verdict::Wrong)
                {
                    open.remove(l);
                }
            }
        }
        if open.is_empty() || open.len() == before {
            return !open.is_empty();
        }
    }
}
