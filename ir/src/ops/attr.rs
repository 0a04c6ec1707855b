//! Attributes of ops: their values, and the macro that makes an op's struct with reading and writing of attributes.

use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::types::{DType, Dim};
use indexmap::IndexMap;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// `3`
    Int(i64),
    /// `0.5` (f64)
    Float(f64),
    /// `true`
    Bool(bool),
    /// `"text"`
    Str(String),
    /// `f32`
    DType(DType),
    /// `[1, 2]`
    Ints(Vec<i64>),
    /// `(n + 1)`: a symbolic dim.
    Dim(Dim),
    /// `(n, 4)`: symbolic dims.
    Dims(Vec<Dim>),
    /// `1.5 : f32`
    Scalar(Scalar),
    /// `dense<..> : f32[2, 2]`
    Tensor(Tensor),
}

/// Attributes by name, in order.
pub type Attrs = IndexMap<String, Attr>;

/// A Rust type that can be an attribute's value.
pub trait AttrValue: Sized + Clone + PartialEq {
    /// How it is called in messages.
    const KIND: &'static str;
    /// As an attribute.
    fn to_attr(&self) -> Attr;
    /// From an attribute, if it is of the kind.
    fn from_attr(a: &Attr) -> Option<Self>;
}

macro_rules! attr_value {
    ($ty:ty, $kind:literal, $variant:ident $(, $also:pat => $conv:expr)?) => {
        impl AttrValue for $ty {
            const KIND: &'static str = $kind;
            fn to_attr(&self) -> Attr {
                Attr::$variant(self.clone())
            }
            fn from_attr(a: &Attr) -> Option<Self> {
                match a {
                    Attr::$variant(v) => Some(v.clone()),
                    $($also => Some($conv),)?
                    _ => None,
                }
            }
        }
    };
}

attr_value!(i64, "an integer", Int);
attr_value!(f64, "a number", Float, Attr::Int(v) => *v as f64);
attr_value!(bool, "true or false", Bool);
attr_value!(String, "a string", Str);
attr_value!(DType, "an element type", DType);
attr_value!(Vec<i64>, "a list of integers", Ints);
attr_value!(Dim, "a dim", Dim, Attr::Int(v) => Dim::from(*v));
attr_value!(Vec<Dim>, "a list of dims", Dims);
attr_value!(Scalar, "a typed scalar", Scalar);
attr_value!(Tensor, "a dense tensor", Tensor);

impl<T: AttrValue> AttrValue for Option<T> {
    const KIND: &'static str = T::KIND;
    /// Only called for `Some`: None is the default and is not printed.
    fn to_attr(&self) -> Attr {
        self.as_ref().map_or(Attr::Bool(false), T::to_attr)
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        T::from_attr(a).map(Some)
    }
}

/// Takes attribute `name` out of `attrs`: its value, the default, or an error in words.
pub(crate) fn take_attr<T: AttrValue>(
    attrs: &mut Attrs,
    name: &str,
    default: Option<T>,
) -> Result<T, String> {
    match attrs.shift_remove(name) {
        Some(a) => T::from_attr(&a).ok_or_else(|| format!("attribute `{name}` must be {}", T::KIND)),
        None => default.ok_or_else(|| format!("attribute `{name}` ({}) is missing", T::KIND)),
    }
}

/// Makes an op's struct of attributes, with `attrs()` (defaults left out) and `from_attrs()`.
#[macro_export]
macro_rules! op_struct {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fm:meta])* $field:ident : $ty:ty $(= $default:expr)?),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$fm])* pub $field: $ty),* }

        impl $name {
            /// Attributes that differ from their defaults, in order of declaration.
            #[allow(unused_mut, clippy::vec_init_then_push)]
            pub fn attrs(&self) -> Vec<(&'static str, $crate::ops::Attr)> {
                let mut out = Vec::new();
                $({
                    let default: Option<$ty> = $crate::op_struct!(@default $($default)?);
                    if default.as_ref() != Some(&self.$field) {
                        out.push((stringify!($field), $crate::ops::AttrValue::to_attr(&self.$field)));
                    }
                })*
                out
            }

            /// The op from its attributes; an error in words for a missing, unknown or ill-typed one.
            #[allow(unused_mut)]
            pub fn from_attrs(mut attrs: $crate::ops::Attrs) -> Result<Self, String> {
                let op = $name {
                    $($field: $crate::ops::take_attr(&mut attrs, stringify!($field), $crate::op_struct!(@default $($default)?))?,)*
                };
                match attrs.keys().next() {
                    None => Ok(op),
                    Some(k) => {
                        let valid: &[&str] = &[$(stringify!($field)),*];
                        Err(format!("unknown attribute `{k}`; valid: {}", if valid.is_empty() { "none".to_string() } else { valid.join(", ") }))
                    }
                }
            }
        }
    };
    (@default) => { None };
    (@default $d:expr) => { Some($d) };
}
