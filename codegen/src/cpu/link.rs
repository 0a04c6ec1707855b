//! The linker: objects of one kernel each to one image of code and constants that runs wherever it is mapped. It knows
//! the few relocations that position-independent kernels have and refuses all others.

use object::read::elf::ElfFile64;
use object::{
    Architecture, LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionKind, SymbolSection,
};
use std::collections::BTreeMap;
use tgc_ir::diag::Diag;

/// Code and constants of all kernels, to be mapped readable and executable at a multiple of 64 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Each kernel's name and where its function begins, in the order given.
    pub symbols: Vec<(String, u64)>,
}

/// Greatest image, so that all displacements fit.
const LIMIT: usize = 1 << 31;

fn fail(name: &str, what: &str) -> Diag {
    Diag::error("E-CPU-010", format!("the code of kernel `{name}` cannot be linked: {what}"))
        .help("this is a bug; please report it with the output of --emit kernels")
}

/// Links objects in the given order; each defines the function it is named by.
pub fn link(objects: &[(String, Vec<u8>)]) -> Result<Image, Diag> {
    let mut image = Image::default();
    for (name, bytes) in objects {
        let file = ElfFile64::<LittleEndian>::parse(&bytes[..]).map_err(|e| fail(name, &e.to_string()))?;
        let places = place(name, &file, &mut image.bytes)?;
        relocate(name, &file, &places, &mut image.bytes)?;
        let entry = file
            .symbols()
            .find(|s| s.is_definition() && s.name() == Ok(name))
            .and_then(|s| Some(*places.get(&s.section_index()?.0)? + s.address()))
            .ok_or_else(|| fail(name, "it does not define the kernel"))?;
        image.symbols.push((name.clone(), entry));
    }
    Ok(image)
}

type File<'d> = ElfFile64<'d, LittleEndian>;

/// Appends the sections that are needed at run time; gives their offsets by section number.
fn place(name: &str, file: &File<'_>, image: &mut Vec<u8>) -> Result<BTreeMap<usize, u64>, Diag> {
    let mut places = BTreeMap::new();
    for s in file.sections() {
        let section = s.name().unwrap_or("?");
        let wanted = match s.kind() {
            SectionKind::Text | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => {
                !section.starts_with(".eh_frame")
            }
            SectionKind::Data
            | SectionKind::UninitializedData
            | SectionKind::Tls
            | SectionKind::UninitializedTls
            | SectionKind::ReadOnlyDataWithRel
                if s.size() > 0 =>
            {
                return Err(fail(
                    name,
                    &format!("it has the section {section}, which would have to be written at load"),
                ));
            }
            _ => false,
        };
        if !wanted || s.size() == 0 {
            continue;
        }
        let data = s.data().map_err(|e| fail(name, &e.to_string()))?;
        let align = usize::try_from(s.align().clamp(1, 4096))
            .unwrap_or(64)
            .max(if s.kind() == SectionKind::Text { 64 } else { 1 });
        let filler = if s.kind() == SectionKind::Text && file.architecture() == Architecture::X86_64 {
            0xcc
        } else {
            0
        };
        image.resize(image.len().next_multiple_of(align), filler);
        if image.len().saturating_add(data.len()) > LIMIT {
            return Err(fail(name, "the image would be greater than 2 GB"));
        }
        places.insert(s.index().0, image.len() as u64);
        image.extend_from_slice(data);
    }
    Ok(places)
}

fn relocate(
    name: &str,
    file: &File<'_>,
    places: &BTreeMap<usize, u64>,
    image: &mut [u8],
) -> Result<(), Diag> {
    for s in file.sections() {
        let Some(&base) = places.get(&s.index().0) else { continue };
        for (at, r) in s.relocations() {
            let RelocationTarget::Symbol(symbol) = r.target() else {
                return Err(fail(name, "a relocation to something that is no symbol"));
            };
            let symbol = file.symbol_by_index(symbol).map_err(|e| fail(name, &e.to_string()))?;
            let target = match symbol.section() {
                SymbolSection::Section(i) => places.get(&i.0).map(|p| p + symbol.address()),
                _ => None,
            };
            let target = target.ok_or_else(|| {
                fail(name, &format!("`{}` is not in the object", symbol.name().unwrap_or("?")))
            })?;
            let RelocationFlags::Elf { r_type } = r.flags() else {
                return Err(fail(name, "a relocation that is not ELF's"));
            };
            let place = base + at;
            let value = target.wrapping_add_signed(r.addend());
            let field = usize::try_from(place).ok().and_then(|p| image.get_mut(p..)).unwrap_or_default();
            let done = match file.architecture() {
                Architecture::X86_64 => patch_x86(r_type, field, value, place),
                Architecture::Aarch64 => patch_arm(r_type, field, value, place),
                _ => None,
            };
            done.ok_or_else(|| {
                fail(
                    name,
                    &format!("relocation of type {r_type} at {at:#x}, or its displacement, is not allowed"),
                )
            })?;
        }
    }
    Ok(())
}

fn word(field: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(field.get(..4)?.try_into().ok()?))
}

fn put(field: &mut [u8], v: u32) -> Option<()> {
    field.get_mut(..4)?.copy_from_slice(&v.to_le_bytes());
    Some(())
}

/// PC32 and PLT32: 32-bit displacements from the field.
fn patch_x86(r_type: u32, field: &mut [u8], value: u64, place: u64) -> Option<()> {
    use object::elf::{R_X86_64_PC32, R_X86_64_PLT32};
    let delta = i32::try_from(value.wrapping_sub(place) as i64).ok()?;
    matches!(r_type, R_X86_64_PC32 | R_X86_64_PLT32).then_some(())?;
    put(field, delta as u32)
}

/// Page addresses, offsets in a page, branches and 32-bit displacements.
fn patch_arm(r_type: u32, field: &mut [u8], value: u64, place: u64) -> Option<()> {
    use object::elf::*;
    let delta = value.wrapping_sub(place) as i64;
    let low = |shift: u32| {
        let v = (value & 0xfff) as u32;
        (v.trailing_zeros() >= shift || v == 0).then_some((v >> shift) << 10)
    };
    let insn = word(field)?;
    match r_type {
        R_AARCH64_ADR_PREL_PG_HI21 => {
            let pages = ((value & !0xfff).wrapping_sub(place & !0xfff) as i64) >> 12;
            (-(1 << 20)..1 << 20).contains(&pages).then_some(())?;
            let p = pages as u32;
            put(field, (insn & 0x9f00_001f) | ((p & 3) << 29) | (((p >> 2) & 0x7_ffff) << 5))
        }
        R_AARCH64_ADD_ABS_LO12_NC | R_AARCH64_LDST8_ABS_LO12_NC => put(field, insn | low(0)?),
        R_AARCH64_LDST16_ABS_LO12_NC => put(field, insn | low(1)?),
        R_AARCH64_LDST32_ABS_LO12_NC => put(field, insn | low(2)?),
        R_AARCH64_LDST64_ABS_LO12_NC => put(field, insn | low(3)?),
        R_AARCH64_LDST128_ABS_LO12_NC => put(field, insn | low(4)?),
        R_AARCH64_CALL26 | R_AARCH64_JUMP26 => {
            (delta & 3 == 0 && (-(1 << 27)..1 << 27).contains(&delta)).then_some(())?;
            put(field, (insn & 0xfc00_0000) | ((delta >> 2) as u32 & 0x3ff_ffff))
        }
        R_AARCH64_PREL32 => put(field, i32::try_from(delta).ok()? as u32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::*;

    #[test]
    fn only_relative_relocations_in_range_are_applied() {
        let mut field = [0u8; 8];
        assert_eq!(patch_x86(R_X86_64_PC32, &mut field, 0x100, 0x180), Some(()));
        assert_eq!(i32::from_le_bytes(field[..4].try_into().unwrap()), -0x80);
        assert_eq!(patch_x86(R_X86_64_64, &mut field, 0x100, 0x180), None);
        assert_eq!(patch_x86(R_X86_64_PC32, &mut field, 1 << 32, 0), None);
        assert_eq!(patch_x86(R_X86_64_PC32, &mut field[..3], 0x100, 0x180), None);
    }

    #[test]
    fn arm_instructions_get_their_fields() {
        let patched = |r: u32, insn: u32, value: u64, place: u64| {
            let mut field = insn.to_le_bytes();
            patch_arm(r, &mut field, value, place).map(|()| u32::from_le_bytes(field))
        };
        // adrp x0, two pages on; ldr q0, [x0, #0x20]; b back by 8 bytes.
        assert_eq!(patched(R_AARCH64_ADR_PREL_PG_HI21, 0x9000_0000, 0x2020, 0x10), Some(0xd000_0000));
        assert_eq!(patched(R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc0_0000, 0x2020, 0), Some(0x3dc0_0800));
        assert_eq!(patched(R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc0_0000, 0x2028, 0), None);
        assert_eq!(patched(R_AARCH64_JUMP26, 0x1400_0000, 8, 16), Some(0x17ff_fffe));
        assert_eq!(patched(R_AARCH64_ABS64, 0, 8, 16), None);
    }

    #[test]
    fn damaged_objects_are_refused() {
        for bytes in [vec![], b"\x7fELF".to_vec(), vec![0x7f; 4096]] {
            let e = link(&[("k".to_string(), bytes)]).unwrap_err();
            assert!(e.to_string().contains("kernel `k`"), "{e}");
        }
    }
}
