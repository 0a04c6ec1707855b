//! Printing of kernels.

use crate::kernel::{Buf, Item, Kernel, Kind, Load, LocalAxis, Mode, Role, Stage, Store};
use std::fmt::{Display, Write};
use tgc_ir::class::Combine;
use tgc_ir::scalar::{ENode, Expr, Scalar};
use tgc_ir::types::{Dim, Pred};

/// The kernel's text, ending in a line break.
pub fn print(k: &Kernel) -> String {
    let mut p = Printer { k, out: String::new(), depth: 0 };
    p.kernel();
    p.out
}

struct Printer<'k> {
    k: &'k Kernel,
    out: String,
    depth: usize,
}

fn list<T: Display>(v: impl IntoIterator<Item = T>) -> String {
    v.into_iter().map(|d| d.to_string()).collect::<Vec<_>>().join(", ")
}

fn value(s: &Scalar) -> String {
    format!("{s} : {}", s.dtype)
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }

    fn block(&mut self, head: &str, f: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        f(self);
        self.depth -= 1;
        self.line("}");
    }

    fn kernel(&mut self) {
        let k = self.k;
        let args = k.args.iter().map(|a| {
            let role = match a.role {
                Role::In => "in",
                Role::Out => "out",
                Role::InOut => "inout",
                Role::Const => "const",
            };
            let packed = a.packed.as_ref().map_or(String::new(), |p| {
                let order: Vec<String> = p.order.iter().map(u32::to_string).collect();
                format!(" packed {} axis {} order [{}]", p.width, p.axis, order.join(", "))
            });
            format!("%{}: {role} {}[{}]{packed}", a.name, a.dtype, list(&a.dims))
        });
        let head =
            format!("kernel @{}({})({}) grid [{}]", k.name, list(&k.params), list(args), list(&k.grid));
        self.block(&head, |p| {
            for l in &k.locals {
                let axes = l.axes.iter().map(|a| match a {
                    LocalAxis::Tile { grid, lo, hi } if (*lo, *hi) == (0, 0) => format!("tile {grid}"),
                    LocalAxis::Tile { grid, lo, hi } => format!("tile {grid} -{lo} +{hi}"),
                    LocalAxis::Full(d) => format!("full {d}"),
                    LocalAxis::Ring(n) => format!("ring {n}"),
                });
                p.line(&format!("local %{} : {}[{}]", l.name, l.dtype, list(axes)));
            }
            for (i, s) in k.sites.iter().enumerate() {
                p.line(&format!("site {} {s:?}", i + 1));
            }
            p.items(&k.body);
        });
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Stage(s) => self.stage(s),
                Item::Loop { var, lo, hi, body } => {
                    self.block(&format!("loop #{var} in {lo}..{hi}"), |p| p.items(body));
                }
            }
        }
    }

    fn stage(&mut self, s: &Stage) {
        let axes = |name: &str, v: &[(u32, Dim)]| match v {
            [] => String::new(),
            v => format!(" {name} [{}]", list(v.iter().map(|(l, d)| format!("#{l} < {d}")))),
        };
        let kind = match &s.kind {
            Kind::Map => "map".to_string(),
            Kind::Reduce { lanes, .. } => format!("reduce lanes {lanes}"),
            Kind::Contract { chunk } => format!("contract chunk {chunk}"),
        };
        let when = if s.when == Pred::True { String::new() } else { format!(" when {}", s.when) };
        let over = list(s.over.iter().map(|g| format!("#{g}")));
        let (inner, red) = (axes("inner", &s.inner), axes("red", &s.red));
        self.block(&format!("stage {:?} over [{over}]{inner}{red} {kind}{when}", s.name), |p| {
            if let Kind::Reduce { reducer, .. } = &s.kind {
                p.line(&format!("init {}", list(reducer.init.iter().map(value))));
                p.block("step", |p| p.expr(&reducer.step));
                p.block("combine", |p| p.expr(&reducer.combine));
                p.block("finish", |p| p.expr(&reducer.finish));
            }
            s.loads.iter().enumerate().for_each(|(i, l)| p.load(i, l));
            p.expr(&s.expr);
            if let Some(e) = &s.post {
                p.block("post", |p| p.expr(e));
            }
            s.stores.iter().for_each(|st| p.store(st));
        });
    }

    fn buffer(&self, b: Buf) -> String {
        let name = match b {
            Buf::Arg(i) => self.k.args.get(i as usize).map(|a| &a.name),
            Buf::Local(i) => self.k.locals.get(i as usize).map(|l| &l.name),
        };
        format!("%{}", name.map_or("?", String::as_str))
    }

    fn load(&mut self, i: usize, l: &Load) {
        let mode = match &l.mode {
            Mode::Proved => String::new(),
            Mode::Fill(p, v) => format!(" fill {p} {}", value(v)),
            Mode::Trap(site, p) => format!(" trap {site} {p}"),
        };
        self.line(&format!("load {i} {}[{}]{mode}", self.buffer(l.from), list(&l.index)));
    }

    fn store(&mut self, s: &Store) {
        let op = match s.op {
            Combine::Set => "",
            Combine::Add => " add",
            Combine::Mul => " mul",
            Combine::Min => " min",
            Combine::Max => " max",
        };
        let site = if s.site == 0 { String::new() } else { format!(" site {}", s.site) };
        self.line(&format!("store {}[{}] = {}{op}{site}", self.buffer(s.to), list(&s.index), s.value));
    }

    fn expr(&mut self, e: &Expr) {
        for (at, (node, dtype)) in e.nodes.iter().enumerate() {
            let operands = list(node.operands().iter().map(|o| format!("${o}")));
            let text = match node {
                ENode::Arg(i) => format!("arg {i}"),
                ENode::Const(s) => format!("const {s}"),
                ENode::Dim(d) => format!("dim {d}"),
                ENode::Un(op, _) => format!("{} {operands}", op.name()),
                ENode::Bin(op, ..) => format!("{} {operands}", op.name()),
                ENode::Fma(..) => format!("fma {operands}"),
                ENode::Select(..) => format!("select {operands}"),
                ENode::Cast(_) => format!("cast {operands}"),
                ENode::Bitcast(_) => format!("bitcast {operands}"),
            };
            self.line(&format!("${at} = {text} : {dtype}"));
        }
        let roots = list(e.roots.iter().map(|r| format!("${r}")));
        self.line(format!("result {roots}").trim_end());
    }
}
