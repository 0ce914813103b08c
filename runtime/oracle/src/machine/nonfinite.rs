//! Non-finite floats: their classification, and whether a launch stores one to a buffer.

use crate::code::AccessOp;
use crate::code::frame::{FrameRegister, LaneWord, Row, lanes_of};
use crate::machine::address::TargetLanes;
use crate::machine::describe::DescribedTarget;
use crate::machine::memory::word;
use crate::machine::{Machine, Warp};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::float16::Float16Policy;

/// Whether the launch has stored a non-finite float to a buffer; tracked only when origins are
/// requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredNonFinite {
    /// Not tracked.
    Ignored,
    /// No NaN and no infinity so far.
    Finite,
    /// A NaN or an infinity.
    NonFinite,
}

/// The class of a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatClass {
    Finite,
    Infinite,
    Nan,
}

/// Returns the class of a float with these bits. Other types count as finite.
pub fn class_of(ty: Scalar, bits: u64) -> FloatClass {
    let code = bits as u16 & 0x7fff;
    let by_code = |infinity: u16| match code.cmp(&infinity) {
        std::cmp::Ordering::Less => FloatClass::Finite,
        std::cmp::Ordering::Equal => FloatClass::Infinite,
        std::cmp::Ordering::Greater => FloatClass::Nan,
    };
    let of = |nan: bool, infinite: bool| match (nan, infinite) {
        (true, _) => FloatClass::Nan,
        (_, true) => FloatClass::Infinite,
        _ => FloatClass::Finite,
    };
    match ty {
        Scalar::F32 => of(f32::from_bits(bits as u32).is_nan(), f32::from_bits(bits as u32).is_infinite()),
        Scalar::F64 => of(f64::from_bits(bits).is_nan(), f64::from_bits(bits).is_infinite()),
        Scalar::F16 => by_code(0x7c00),
        Scalar::Bf16 => by_code(0x7f80),
        Scalar::Custom(format) if format.policy() == Float16Policy::Ieee => by_code(format.infinity()),
        Scalar::Custom(_) => of(code == 0x7fff, false),
        _ => FloatClass::Finite,
    }
}

/// Returns whether the type is a float of any width.
pub fn is_any_float(ty: Scalar) -> bool {
    ty.is_float() || ty.is_half()
}

impl Machine<'_, '_> {
    /// Inspects floats that are about to be stored to a buffer.
    #[inline]
    pub fn inspect_store(&mut self, warp: &Warp, mask: u32, access: &AccessOp) {
        if self.stored == StoredNonFinite::Finite && !access.place.is_shared() && is_any_float(access.element) {
            let active = self.guarded(warp, mask, access);
            if access.values.iter().any(|from| is_nonfinite(&warp.rows, *from, access.element, active)) {
                self.stored = StoredNonFinite::NonFinite;
            }
        }
    }

    /// Inspects floats that an atomic operation has stored to a buffer.
    pub fn inspect_atomic(&mut self, element: Scalar, part: &TargetLanes) {
        let DescribedTarget::Buffer(b) = part.target else { return };
        if self.stored == StoredNonFinite::Finite && element.is_float() {
            let memory = self.buffers[b].bytes.get();
            if lanes_of(part.lanes)
                .any(|l| class_of(element, word(memory, part.offset[l], element)) != FloatClass::Finite)
            {
                self.stored = StoredNonFinite::NonFinite;
            }
        }
    }
}

/// Returns whether a lane of `mask` is not finite.
fn is_nonfinite(rows: &[Row], register: FrameRegister, ty: Scalar, mask: u32) -> bool {
    let any = match ty {
        Scalar::F32 => {
            let row = u32::lanes(rows, register.row as usize);
            row.iter().fold(false, |any, bits| any | (bits & 0x7f80_0000 == 0x7f80_0000))
        }
        _ => true,
    };
    any && lanes_of(mask).any(|l| class_of(ty, register.get(rows, l)) != FloatClass::Finite)
}
