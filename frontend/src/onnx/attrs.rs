//! Reading of a node's attributes by name and kind. Remembers which were read, so that none is ignored silently.
//! What an attribute means is for the operator's importer.

use super::check::Res;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::Diag;
use tgc_ir::ops::{Attr, Attrs as OpAttrs};
use tgc_proto::attribute_proto::AttributeType as Kind;
use tgc_proto::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// Attributes of one node.
pub(crate) struct Attrs<'m> {
    map: BTreeMap<&'m str, &'m AttributeProto>,
    read: RefCell<BTreeSet<String>>,
}

/// Arguments of the function a node stands in, by name.
pub(crate) type Arguments<'m> = BTreeMap<&'m str, &'m AttributeProto>;

fn kind(a: &AttributeProto) -> Kind {
    match a.r#type.and_then(|t| Kind::try_from(t).ok()) {
        Some(Kind::Undefined) | None => {}
        Some(k) => return k,
    }
    // files from before IR version 2 carry no kind: the filled field tells
    let filled = [
        (a.f.is_some(), Kind::Float),
        (a.i.is_some(), Kind::Int),
        (a.s.is_some(), Kind::String),
        (a.t.is_some(), Kind::Tensor),
        (a.g.is_some(), Kind::Graph),
        (!a.floats.is_empty(), Kind::Floats),
        (!a.ints.is_empty(), Kind::Ints),
        (!a.strings.is_empty(), Kind::Strings),
    ];
    filled.iter().find(|f| f.0).map_or(Kind::Undefined, |f| f.1)
}

impl<'m> Attrs<'m> {
    /// The attributes of `node`; references to arguments of the enclosing function are followed.
    pub(crate) fn new(node: &'m NodeProto, args: &Arguments<'m>) -> Res<Attrs<'m>> {
        let mut map = BTreeMap::new();
        for a in &node.attribute {
            let name = a.name.as_deref().unwrap_or("");
            let target = match a.ref_attr_name.as_deref() {
                Some(r) if !r.is_empty() => args.get(r).copied(),
                _ => Some(a),
            };
            let Some(target) = target else { continue };
            if map.insert(name, target).is_some() {
                return Err(Diag::error("E-ONNX-007", format!("attribute `{name}` is given twice")).into());
            }
        }
        Ok(Attrs { map, read: RefCell::default() })
    }

    /// Attribute `name` as it is in the file.
    pub(crate) fn raw(&self, name: &str) -> Option<&'m AttributeProto> {
        self.read.borrow_mut().insert(name.to_string());
        self.map.get(name).copied()
    }

    fn typed<T>(
        &self,
        name: &str,
        want: Kind,
        f: impl FnOnce(&'m AttributeProto) -> Option<T>,
    ) -> Res<Option<T>> {
        let Some(a) = self.raw(name) else { return Ok(None) };
        if kind(a) == want
            && let Some(v) = f(a)
        {
            return Ok(Some(v));
        }
        let (found, want) = (kind(a).as_str_name(), want.as_str_name());
        Err(Diag::error("E-ONNX-007", format!("attribute `{name}` is of kind {found}; {want} is wanted"))
            .into())
    }

    /// An integer, if given.
    pub(crate) fn opt_int(&self, name: &str) -> Res<Option<i64>> {
        self.typed(name, Kind::Int, |a| Some(a.i.unwrap_or(0)))
    }

    /// An integer or its default.
    pub(crate) fn int(&self, name: &str, default: i64) -> Res<i64> {
        Ok(self.opt_int(name)?.unwrap_or(default))
    }

    /// An integer used as a truth value.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Res<bool> {
        Ok(self.int(name, i64::from(default))? != 0)
    }

    /// A number, if given.
    pub(crate) fn opt_float(&self, name: &str) -> Res<Option<f64>> {
        self.typed(name, Kind::Float, |a| Some(f64::from(a.f.unwrap_or(0.0))))
    }

    /// A number or its default.
    pub(crate) fn float(&self, name: &str, default: f32) -> Res<f64> {
        Ok(self.opt_float(name)?.unwrap_or(f64::from(default)))
    }

    /// A list of integers, if given.
    pub(crate) fn ints(&self, name: &str) -> Res<Option<Vec<i64>>> {
        match self.raw(name) {
            // an empty list without a kind cannot be told from a missing value
            Some(a) if kind(a) == Kind::Undefined && a.ints.is_empty() => Ok(Some(Vec::new())),
            _ => self.typed(name, Kind::Ints, |a| Some(a.ints.clone())),
        }
    }

    /// A list of numbers, if given.
    pub(crate) fn floats(&self, name: &str) -> Res<Option<Vec<f32>>> {
        self.typed(name, Kind::Floats, |a| Some(a.floats.clone()))
    }

    /// A string or its default.
    pub(crate) fn string(&self, name: &str, default: &str) -> Res<String> {
        let text =
            |a: &AttributeProto| Some(String::from_utf8_lossy(a.s.as_deref().unwrap_or(&[])).into_owned());
        Ok(self.typed(name, Kind::String, text)?.unwrap_or_else(|| default.to_string()))
    }

    /// A tensor, if given.
    pub(crate) fn tensor(&self, name: &str) -> Res<Option<&'m TensorProto>> {
        self.typed(name, Kind::Tensor, |a| a.t.as_ref())
    }

    /// A graph, which must be given.
    pub(crate) fn graph(&self, name: &str) -> Res<&'m GraphProto> {
        self.typed(name, Kind::Graph, |a| a.g.as_ref())?.ok_or_else(|| {
            Diag::error("E-ONNX-007", format!("attribute `{name}` (a graph) is missing")).into()
        })
    }

    /// The attribute must have this value when given.
    pub(crate) fn only(&self, name: &str, value: i64, why: &str) -> Res<()> {
        match self.opt_int(name)? {
            Some(v) if v != value => {
                let m = format!("attribute `{name}` = {v} is not supported; only {value} is: {why}");
                Err(Diag::error("E-ONNX-007", m).into())
            }
            _ => Ok(()),
        }
    }

    /// Reads an attribute whose value changes nothing here.
    pub(crate) fn ignore(&self, names: &[&str]) {
        names.iter().for_each(|n| _ = self.raw(n));
    }

    /// Names that nobody read.
    pub(crate) fn unread(&self) -> Vec<&'m str> {
        let read = self.read.borrow();
        self.map.keys().filter(|k| !read.contains(**k)).copied().collect()
    }

    /// All attributes as an IR op's, for operators whose attributes have the same names and kinds there.
    pub(crate) fn to_op(&self) -> Res<OpAttrs> {
        let mut out = OpAttrs::new();
        for &name in self.map.keys() {
            let value = match self.raw(name) {
                Some(a) => match kind(a) {
                    Kind::Int => Attr::Int(a.i.unwrap_or(0)),
                    Kind::Float => Attr::Float(f64::from(a.f.unwrap_or(0.0))),
                    Kind::Ints => Attr::Ints(a.ints.clone()),
                    Kind::String => Attr::Str(self.string(name, "")?),
                    k => {
                        let m = format!("attribute `{name}` of kind {} is not supported", k.as_str_name());
                        return Err(Diag::error("E-ONNX-007", m).into());
                    }
                },
                None => continue,
            };
            out.insert(name.to_string(), value);
        }
        Ok(out)
    }
}
