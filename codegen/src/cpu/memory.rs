//! Reads and writes of buffer elements. Whatever is not proved to be inside is read through a selected address or a masked
//! load, never from outside its buffer; contiguous lanes move as one vector.

use super::build::{Op, R, T, V, known, lanes};
use super::emit::Emit;
use super::index::Walk;
use super::{internal, refused};
use crate::kernel::{Buf, Load, LocalAxis, Mode, Store};
use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::values::{AsValueRef, BasicValue, InstructionValue, PointerValue};
use tgc_ir::class::Combine;
use tgc_ir::scalar::{Bin, Scalar};
use tgc_ir::types::{Atom, DType, Dim};

/// An indexed place in a buffer.
struct Place<'c> {
    base: PointerValue<'c>,
    dtype: DType,
    elem: T<'c>,
    /// Index on each axis, from the buffer's first element.
    index: Vec<Dim>,
    extents: Vec<Dim>,
    flat: Dim,
    buf: Buf,
}

/// Most constants kept in memory for one row outside of a buffer.
const MOST_FILL: i64 = 8192;

impl<'c> Emit<'c, '_> {
    fn place(&self, buf: Buf, index: &[Dim]) -> R<Place<'c>> {
        let k = self.kernel;
        let dtype = k.dtype(buf);
        let elem = self
            .ir
            .mem(dtype)
            .ok_or_else(|| refused(k, &format!("values of type {dtype} in compiled code")))?;
        let bad =
            || internal(k, "an access to a buffer that is not there, or with a wrong number of indices");
        let (base, extents, index) = match buf {
            Buf::Arg(i) => {
                let a = k.args.get(i as usize).ok_or_else(bad)?;
                (*self.args.get(i as usize).ok_or_else(bad)?, a.dims.clone(), index.to_vec())
            }
            Buf::Local(i) => {
                let l = k.locals.get(i as usize).ok_or_else(bad)?;
                let moved = l.axes.iter().zip(index).map(|(axis, x)| match axis {
                    LocalAxis::Tile { grid, lo, .. } => {
                        x.clone() - Dim::sym(&super::emit::tile_sym(*grid)) + Dim::from(i64::from(*lo))
                    }
                    LocalAxis::Full(_) => x.clone(),
                    LocalAxis::Ring(n) => x.rem(&Dim::from(i64::from(*n))),
                });
                let index: Vec<Dim> = moved.collect();
                let extents = self.local_extents.get(i as usize).ok_or_else(bad)?.clone();
                (*self.locals.get(i as usize).ok_or_else(bad)?, extents, index)
            }
        };
        if index.len() != extents.len() {
            return Err(bad());
        }
        let packed = match buf {
            Buf::Arg(i) => k.args.get(i as usize).and_then(|a| a.packed.as_ref()),
            Buf::Local(_) => None,
        };
        let flat = match packed {
            Some(p) => p.flat(&index, &extents),
            None => crate::kernel::row_major(&index, &extents),
        };
        Ok(Place { base, dtype, elem, index, extents, flat, buf })
    }

    /// Reads one element (or one for each lane) as a value in registers.
    pub(super) fn read(&mut self, load: &Load) -> R<V<'c>> {
        let place = self.place(load.from, &load.index)?;
        let zero = Scalar { dtype: place.dtype, bits: 0 };
        let v = match &load.mode {
            Mode::Proved => self.read_at(&place, None, zero, false)?,
            Mode::Fill(..) if self.inside.is_some() => self.read_at(&place, None, zero, false)?,
            Mode::Fill(p, fill) => {
                let mask = self.pred(p)?;
                let by_row = self.innermost.is_some_and(|(label, _)| {
                    !crate::kernel::mentions(p, &|d| d.any_leaf(|a| *a == Atom::Label(label)))
                });
                self.read_at(&place, Some(mask), *fill, by_row)?
            }
            Mode::Trap(site, p) => {
                let mask = self.pred(p)?;
                self.check(&place, Some(mask), *site)?;
                self.read_at(&place, Some(mask), zero, false)?
            }
        };
        if place.dtype == DType::Bool {
            let zero = self.ir.int_like(v, 0)?;
            return self.ir.icmp(inkwell::IntPredicate::NE, v, zero);
        }
        Ok(v)
    }

    /// Ends the kernel with `site` if an index that the mask asks for is outside.
    fn check(&mut self, place: &Place<'c>, mask: Option<V<'c>>, site: u32) -> R<()> {
        let ok = self.inside(&place.index, &place.extents)?;
        let mut bad = self.ir.op(Op::Xor, ok, self.ir.int_like(ok, 1)?)?;
        if let Some(m) = mask {
            bad = self.ir.op(Op::And, bad, m)?;
        }
        let bad = self.ir.any(bad)?;
        if known(bad) == Some(0) {
            return Ok(());
        }
        let (on, out) = (self.ir.block(), self.trap_block(site)?);
        self.ir.branch(bad, out, on)?;
        self.ir.b.position_at_end(on);
        Ok(())
    }

    /// `by_row`: the mask is the same all along the innermost reduction label.
    fn read_at(&mut self, place: &Place<'c>, mask: Option<V<'c>>, fill: Scalar, by_row: bool) -> R<V<'c>> {
        let mask = mask.filter(|m| known(*m).is_none_or(|k| k == 0));
        let align = place.dtype.size() as u32;
        let walk = self.walk(&place.flat)?;
        let mask = match (&walk, self.vector.and_then(|v| v.active), mask) {
            (Walk::Still(_), ..) | (_, None, _) => mask,
            (_, active, None) => active,
            (_, Some(active), Some(m)) => Some(self.ir.op(Op::And, active, m)?),
        };
        match walk {
            Walk::Still(at) => {
                let Some(m) = mask else {
                    let p = self.ir.at(place.elem, place.base, at)?;
                    return self.load_noted(place, place.elem, p, align);
                };
                let some = self.ir.any(m)?;
                let row = if by_row { self.chosen_row(place, some, fill)? } else { None };
                let p = match row {
                    Some(p) => p,
                    None => {
                        let p = self.ir.at(place.elem, place.base, at)?;
                        self.choose(some, p, fill, 1)?
                    }
                };
                let v = self.load_noted(place, place.elem, p, align)?;
                if lanes(m) == 1 {
                    return Ok(v);
                }
                let fill = self.constant_mem(fill)?;
                self.ir.select(m, v, fill)
            }
            Walk::Unit(at) => {
                let width = self.vector.map_or(1, |v| v.width);
                let t = self.ir.widen(place.elem, width);
                let p = self.ir.at(place.elem, place.base, at)?;
                match mask {
                    None => self.load_noted(place, t, p, align),
                    Some(m) if lanes(m) == 1 => {
                        let p = self.choose(m, p, fill, width)?;
                        self.load_noted(place, t, p, align)
                    }
                    Some(m) => {
                        let fill = self.constant_mem(fill)?;
                        self.masked_load(t, p, m, fill, align)
                    }
                }
            }
            Walk::Second(at) if mask.is_none() => self.read_second(place, at),
            Walk::Second(at) => {
                let width = self.vector.map_or(1, |v| v.width);
                let places = self.places(at, self.ir.i64(2), width)?;
                self.read_each(place, &places, mask, fill)
            }
            Walk::Each(places) => self.read_each(place, &places, mask, fill),
        }
    }

    /// Reads every second element from `at` on: two vectors, one that ends at the middle element and one that begins there,
    /// touch nothing but what lies between the first and the last of them.
    fn read_second(&mut self, place: &Place<'c>, at: V<'c>) -> R<V<'c>> {
        let width = self.vector.map_or(1, |v| v.width);
        let align = place.dtype.size() as u32;
        let t = self.ir.widen(place.elem, width);
        let p = self.ir.at(place.elem, place.base, at)?;
        let middle = self.ir.at(place.elem, p, self.ir.i64(i64::from(width) - 1))?;
        let first = self.load_noted(place, t, p, align)?;
        let second = self.load_noted(place, t, middle, align)?;
        let half = width / 2;
        let lane = |i: u32| if i < half { 2 * i } else { width + 2 * (i - half) + 1 };
        self.ir.shuffle(first, second, (0..width).map(lane))
    }

    fn read_each(
        &mut self,
        place: &Place<'c>,
        places: &[V<'c>],
        mask: Option<V<'c>>,
        fill: Scalar,
    ) -> R<V<'c>> {
        let mut parts = Vec::with_capacity(places.len());
        for (i, &at) in places.iter().enumerate() {
            let mut p = self.ir.at(place.elem, place.base, at)?;
            if let Some(m) = mask {
                let m = self.ir.lane(m, i as u32)?;
                p = self.choose(m, p, fill, 1)?;
            }
            parts.push(self.load_noted(place, place.elem, p, place.dtype.size() as u32)?);
        }
        self.ir.gather(&parts)
    }

    fn masked_load(&self, t: T<'c>, p: PointerValue<'c>, mask: V<'c>, fill: V<'c>, align: u32) -> R<V<'c>> {
        let fill = self.ir.splat(fill, lanes(mask))?;
        let ptr = self.ir.ctx.ptr_type(AddressSpace::default()).into();
        let v = self.ir.call("llvm.masked.load", &[t, ptr], &[p.into(), mask, fill])?;
        self.align_first(v, align)?;
        Ok(v)
    }

    #[allow(unsafe_code)]
    fn align_first(&self, call: V<'c>, align: u32) -> R<()> {
        if let Some(i) = call.as_instruction_value() {
            // SAFETY: the value is the call just built.
            let call = unsafe { inkwell::values::CallSiteValue::new(i.as_value_ref()) };
            call.set_alignment_attribute(AttributeLoc::Param(0), align);
        }
        Ok(())
    }

    /// The address itself where the condition holds, else that of constants with the value `fill`.
    fn choose(&mut self, c: V<'c>, p: PointerValue<'c>, fill: Scalar, width: u32) -> R<PointerValue<'c>> {
        let other = self.fill_slot(fill, width)?;
        match self.ir.select(c, p.into(), other.into())? {
            V::PointerValue(p) => Ok(p),
            _ => Err(internal(self.kernel, "a chosen address that is none")),
        }
    }

    /// As [`Emit::choose`] where the place moves along the innermost reduction label and the condition does not: the choice is
    /// between the start of the row and a row of constants, so that it can be made before the loop.
    fn chosen_row(&mut self, place: &Place<'c>, c: V<'c>, fill: Scalar) -> R<Option<PointerValue<'c>>> {
        let Some((label, extent)) = self.innermost else { return Ok(None) };
        let Some((step, rest)) = place.flat.affine(label) else { return Ok(None) };
        let Some(last) = step.as_const().filter(|s| *s >= 0).and_then(|s| s.checked_mul(extent - 1)) else {
            return Ok(None);
        };
        if extent < 2 || last >= MOST_FILL {
            return Ok(None);
        }
        let at = self.dim(&rest)?;
        let p = self.ir.at(place.elem, place.base, at)?;
        let p = self.choose(c, p, fill, (last + 1) as u32)?;
        let along = self.dim(&(step * Dim::label(label)))?;
        Ok(Some(self.ir.at(place.elem, p, along)?))
    }

    fn fill_slot(&mut self, fill: Scalar, width: u32) -> R<PointerValue<'c>> {
        let key = (fill.dtype, fill.bits, width);
        if let Some(&p) = self.fills.get(&key) {
            return Ok(p);
        }
        let v = self.constant_mem(fill)?;
        let v = self.ir.splat(v, width)?;
        let g = self.ir.module.add_global(v.get_type(), None, "fill");
        g.set_initializer(&v);
        g.set_constant(true);
        g.set_linkage(Linkage::Private);
        g.set_unnamed_address(inkwell::values::UnnamedAddress::Global);
        g.set_alignment((fill.dtype.size() as u32 * width).next_power_of_two().min(64));
        self.fills.insert(key, g.as_pointer_value());
        Ok(g.as_pointer_value())
    }

    fn load_noted(&self, place: &Place<'c>, t: T<'c>, p: PointerValue<'c>, align: u32) -> R<V<'c>> {
        let v = self.ir.load(t, p, align)?;
        if let Some(i) = v.as_instruction_value() {
            self.note_alias(i, place.buf);
        }
        Ok(v)
    }

    fn note_alias(&self, i: InstructionValue<'c>, buf: Buf) {
        if let Some((own, others)) = self.scopes.get(&buf) {
            // Metadata is advice: an access it cannot be put on is only less optimised.
            let _ = i.set_metadata(*own, self.ir.ctx.get_kind_id("alias.scope"));
            if let Some(o) = others {
                let _ = i.set_metadata(*o, self.ir.ctx.get_kind_id("noalias"));
            }
        }
    }

    /// Writes a result.
    pub(super) fn write(&mut self, store: &Store, value: V<'c>) -> R<()> {
        let place = self.place(store.to, &store.index)?;
        if store.index.iter().any(super::stage::has_node_value) {
            self.check(&place, None, store.site)?;
        }
        let align = place.dtype.size() as u32;
        let walk = self.walk(&place.flat)?;
        let value = match (store.op, &walk) {
            (Combine::Set, _) => value,
            (op, Walk::Still(at)) => {
                let p = self.ir.at(place.elem, place.base, *at)?;
                let mut old = self.load_noted(&place, place.elem, p, align)?;
                if place.dtype == DType::Bool {
                    old = self.ir.icmp(inkwell::IntPredicate::NE, old, self.ir.int_like(old, 0)?)?;
                }
                let op = match op {
                    Combine::Mul => Bin::Mul,
                    Combine::Min => Bin::Min,
                    Combine::Max => Bin::Max,
                    _ => Bin::Add,
                };
                self.bin(op, old, value, place.dtype)?
            }
            _ => return Err(internal(self.kernel, "a combining store in vectors")),
        };
        let value =
            if place.dtype == DType::Bool { self.ir.int_cast(value, place.elem, false)? } else { value };
        match walk {
            Walk::Still(at) => {
                let last = self.ir.lane(value, lanes(value) - 1)?;
                self.put(&place, at, last, align)
            }
            Walk::Unit(at) => {
                let value = self.ir.splat(value, self.vector.map_or(1, |v| v.width))?;
                match self.vector.and_then(|v| v.active) {
                    None => self.put(&place, at, value, align),
                    Some(mask) => self.put_active(&place, at, value, mask, align),
                }
            }
            Walk::Each(_) | Walk::Second(_) if self.vector.is_some_and(|v| v.active.is_some()) => {
                Err(internal(self.kernel, "a part of a vector that is stored to places apart"))
            }
            Walk::Second(at) => {
                let width = self.vector.map_or(1, |v| v.width);
                let places = self.places(at, self.ir.i64(2), width)?;
                self.put_each(&place, places, value, align)
            }
            Walk::Each(places) => self.put_each(&place, places, value, align),
        }
    }

    fn put_each(&self, place: &Place<'c>, places: Vec<V<'c>>, value: V<'c>, align: u32) -> R<()> {
        for (i, at) in places.into_iter().enumerate() {
            let v = self.ir.lane(value, i as u32)?;
            self.put(place, at, v, align)?;
        }
        Ok(())
    }

    fn put_active(&self, place: &Place<'c>, at: V<'c>, value: V<'c>, mask: V<'c>, align: u32) -> R<()> {
        let p = self.ir.at(place.elem, place.base, at)?;
        let ptr = self.ir.ctx.ptr_type(AddressSpace::default()).into();
        self.ir.masked_store(value, p.into(), mask, ptr, align)
    }

    fn put(&self, place: &Place<'c>, at: V<'c>, value: V<'c>, align: u32) -> R<()> {
        let p = self.ir.at(place.elem, place.base, at)?;
        let i = self.ir.store(p, value, align)?;
        self.note_alias(i, place.buf);
        Ok(())
    }
}
