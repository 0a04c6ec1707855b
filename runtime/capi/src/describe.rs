//! What a model offers, as structures that C reads: made once a model, read-only. What must not be here: the calls that
//! hand them out.

use std::ffi::{CStr, CString, c_char};

use tgc_runtime::{DType as Element, Expr, Manifest};

/// `tgc_dtype`.
pub type DType = i32;

/// The number of an element type.
pub(crate) const fn number(element: Element) -> DType {
    match element {
        Element::F32 => 0,
        Element::F64 => 1,
        Element::F16 => 2,
        Element::BF16 => 3,
        Element::I8 => 4,
        Element::I16 => 5,
        Element::I32 => 6,
        Element::I64 => 7,
        Element::U8 => 8,
        Element::U16 => 9,
        Element::U32 => 10,
        Element::U64 => 11,
        Element::Bool => 12,
    }
}

/// All element types, in the order of their numbers.
pub(crate) const ELEMENTS: [Element; 13] = [
    Element::F32,
    Element::F64,
    Element::F16,
    Element::BF16,
    Element::I8,
    Element::I16,
    Element::I32,
    Element::I64,
    Element::U8,
    Element::U16,
    Element::U32,
    Element::U64,
    Element::Bool,
];

/// `tgc_dim`.
#[repr(C)]
pub struct Dim {
    pub size: i64,
    pub lo: i64,
    pub hi: i64,
    pub text: *const c_char,
}

/// `tgc_port`.
#[repr(C)]
pub struct Port {
    pub name: *const c_char,
    pub dtype: DType,
    pub has_default: i32,
    pub rank: usize,
    pub dims: *const Dim,
}

/// `tgc_entry`.
#[repr(C)]
pub struct Entry {
    pub name: *const c_char,
    pub input_count: usize,
    pub inputs: *const *const Port,
    pub output_count: usize,
    pub outputs: *const *const Port,
}

/// The descriptions of a model's entries, and all that their pointers lead to.
pub(crate) struct Descriptions {
    pub(crate) entries: Vec<Entry>,
    kept: Kept,
}

/// What descriptions point to. Only the boxes' and vectors' own memory is pointed to, so that all of this may move.
#[derive(Default)]
struct Kept {
    texts: Vec<CString>,
    dims: Vec<Vec<Dim>>,
    ports: Vec<Vec<Port>>,
    tables: Vec<Vec<*const Port>>,
}

impl Descriptions {
    pub(crate) fn new(m: &Manifest) -> Descriptions {
        let mut kept = Kept::default();
        let entries = m.entries.iter().map(|e| {
            let (inputs, outputs) = (kept.ports(e, &e.inputs), kept.ports(e, &e.outputs));
            Entry {
                name: kept.text(&e.name),
                input_count: e.inputs.len(),
                inputs,
                output_count: e.outputs.len(),
                outputs,
            }
        });
        let entries = entries.collect();
        Descriptions { entries, kept }
    }
}

impl std::fmt::Debug for Descriptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts = self.kept.texts.len();
        write!(f, "Descriptions({} entries, {texts} texts)", self.entries.len())
    }
}

impl Kept {
    fn text(&mut self, text: &str) -> *const c_char {
        // Without 0 bytes it is a C string.
        let text = CString::new(text.replace('\0', "\u{FFFD}")).unwrap_or_default();
        let at = text.as_ptr();
        self.texts.push(text);
        at
    }

    fn ports(&mut self, e: &tgc_runtime::Entry, ports: &[tgc_runtime::Port]) -> *const *const Port {
        let ports: Vec<Port> = ports.iter().map(|p| self.port(e, p)).collect();
        let table: Vec<*const Port> = ports.iter().map(std::ptr::from_ref).collect();
        let at = table.as_ptr();
        self.ports.push(ports);
        self.tables.push(table);
        at
    }

    fn port(&mut self, e: &tgc_runtime::Entry, p: &tgc_runtime::Port) -> Port {
        let dims: Vec<Dim> = p.dims.iter().map(|d| self.dim(e, d)).collect();
        let port = Port {
            name: self.text(&p.name),
            dtype: number(p.dtype),
            has_default: p.default.is_some().into(),
            rank: dims.len(),
            dims: dims.as_ptr(),
        };
        self.dims.push(dims);
        port
    }

    fn dim(&mut self, e: &tgc_runtime::Entry, d: &Expr) -> Dim {
        let names: Vec<&str> = e.symbols.iter().map(|s| s.name.as_str()).collect();
        let text = self.text(&d.show(&names));
        let (size, lo, hi) = match d {
            Expr::Const(size) => (*size, *size, *size),
            Expr::Sym(slot) => e.symbols.get(*slot as usize).map_or((-1, 0, i64::MAX), |s| (-1, s.lo, s.hi)),
            _ => (-1, 0, i64::MAX),
        };
        Dim { size, lo, hi, text }
    }
}

/// The place of a port among ports by name, or the names there are.
pub(crate) fn find(names: &[&CStr], name: &str) -> Result<usize, String> {
    let found = names.iter().position(|n| n.to_bytes() == name.as_bytes());
    found.ok_or_else(|| {
        let shown: Vec<String> = names.iter().map(|n| format!("`{}`", n.to_string_lossy())).collect();
        if shown.is_empty() {
            "the entry has none".to_string()
        } else {
            format!("there are {}", shown.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_number_of_their_place() {
        for (i, e) in ELEMENTS.iter().enumerate() {
            assert_eq!(number(*e), i as DType);
        }
    }
}
