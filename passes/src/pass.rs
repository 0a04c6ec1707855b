//! What a pass is, and the editor through which it changes a graph: by patches only, each one counted, named and
//! paid for in fuel. No particular pass lives here.

use indexmap::IndexMap;
use std::collections::BTreeMap;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::patch::{Edit, Patch};
use tgc_ir::tensor::Tensor;

/// Whether something was edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Changed {
    Yes,
    No,
}

impl Changed {
    pub(crate) fn from(changed: bool) -> Changed {
        if changed { Changed::Yes } else { Changed::No }
    }

    pub(crate) fn or(self, other: Changed) -> Changed {
        if self == Changed::Yes { self } else { other }
    }
}

/// A pass. It keeps no state from one run to the next.
pub(crate) trait Pass {
    /// Name in pipelines and on the command line.
    const NAME: &'static str;
    /// One line: what it does.
    const SUMMARY: &'static str;
    /// Needed for a correct program; others only make it better.
    const REQUIRED: bool;
    /// Passes that must come before it in a pipeline that has them.
    const AFTER: &'static [&'static str];
    /// Works on one graph. Regions of region ops are graphs of their own, and have been worked on already.
    fn run(editor: &mut Editor<'_>, cx: &mut Cx<'_>) -> Result<Changed, Diag>;
}

type Run = fn(&mut Editor<'_>, &mut Cx<'_>) -> Result<Changed, Diag>;

/// A row of the table of passes.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) required: bool,
    pub(crate) after: &'static [&'static str],
    pub(crate) run: Run,
}

impl Row {
    pub(crate) const fn of<P: Pass>() -> Row {
        Row { name: P::NAME, summary: P::SUMMARY, required: P::REQUIRED, after: P::AFTER, run: P::run }
    }
}

/// What passes see beside the graph.
pub(crate) struct Cx<'a> {
    /// The module's weights; folding may add some.
    pub(crate) weights: &'a mut IndexMap<String, Tensor>,
    /// How often each weight is used in the module.
    pub(crate) weight_uses: BTreeMap<String, usize>,
    /// Weights whose use was replaced.
    pub(crate) replaced: Vec<String>,
}

impl Cx<'_> {
    /// Adds a weight under a name made from `base`.
    pub(crate) fn add_weight(&mut self, base: &str, value: Tensor) -> String {
        let free = |n: &String| !self.weights.contains_key(n);
        let numbered = (1..).map(|i| format!("{base}.{i}"));
        let name = std::iter::once(base.to_string()).chain(numbered).find(free).unwrap_or_default();
        self.weights.insert(name.clone(), value);
        self.weight_uses.insert(name.clone(), 1);
        name
    }
}

/// The record of a run: rules that fired, and what may still be done.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) fired: IndexMap<String, usize>,
    pub(crate) warnings: Vec<Diag>,
    /// Patches by optional passes so far.
    pub(crate) optional: usize,
    /// Patches that optional passes may apply in all.
    pub(crate) limit: Option<usize>,
    /// Patches that the pass at work may still apply.
    pub(crate) fuel: usize,
    pub(crate) pass: &'static str,
    pub(crate) required: bool,
}

/// A graph being edited.
pub(crate) struct Editor<'g> {
    graph: &'g mut Graph,
    log: &'g mut Log,
}

impl<'g> Editor<'g> {
    pub(crate) fn new(graph: &'g mut Graph, log: &'g mut Log) -> Editor<'g> {
        Editor { graph, log }
    }

    /// The graph, to read.
    pub(crate) fn graph(&self) -> &Graph {
        self.graph
    }

    /// Applies an edit on behalf of `rule` and gives the nodes it made; None when the pass must stop here because the
    /// limit of a bisection is reached or the fuel is used up.
    pub(crate) fn apply(&mut self, edit: Edit, rule: &str) -> Result<Option<Vec<NodeId>>, Diag> {
        let log = &mut *self.log;
        if !log.required && log.limit.is_some_and(|l| log.optional >= l) {
            return Ok(None);
        }
        if log.fuel == 0 {
            let message = format!("pass `{}` does not come to an end; rule `{rule}` was next", log.pass);
            if cfg!(debug_assertions) {
                return Err(Diag::error("E-PASS-002", message).help("report this graph as a bug of tgc"));
            }
            log.warnings.push(Diag::warning("E-PASS-002", message + "; the rest of it was skipped"));
            return Ok(None);
        }
        let made = self.graph.apply(edit, rule)?;
        log.fuel -= 1;
        log.optional += usize::from(!log.required);
        *log.fired.entry(rule.to_string()).or_insert(0) += 1;
        Ok(Some(made))
    }

    /// Runs `run` on every region of region ops (kernels' regions excepted), inner ones first.
    pub(crate) fn regions(&mut self, run: Run, cx: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        for id in self.graph.topo() {
            let Some(node) = self.graph.node(id) else { continue };
            if node.regions.is_empty() || is_kernel(self.graph, id) {
                continue;
            }
            let (op, count, mut regions) = (node.op.clone(), node.results.len(), node.regions.clone());
            let mut inner = Changed::No;
            for region in &mut regions {
                let mut editor = Editor::new(region, self.log);
                inner = inner.or(editor.regions(run, cx)?);
                inner = inner.or(run(&mut editor, cx)?);
            }
            if inner == Changed::Yes {
                let operands: Vec<_> = self.graph.operands(id).into_iter().map(Into::into).collect();
                let mut patch = Patch::new(self.graph, id);
                let results = patch.node(op, &operands, regions)?;
                for (r, new) in results.into_iter().enumerate().take(count) {
                    patch.replace(Value { node: id, result: r as u32 }, new);
                }
                let edit = patch.finish();
                self.graph.apply(edit, self.log.pass)?;
                changed = Changed::Yes;
            }
        }
        Ok(changed)
    }
}

/// True for a node that is a kernel already.
pub(crate) fn is_kernel(g: &Graph, id: NodeId) -> bool {
    matches!(g.op_of(id), Some(tgc_ir::ops::Op::Fused(_)))
}
