//! The locations in memory that accesses name.

use super::{Decoder, Result};
use crate::code::{AccessLocation, AccessOp, Dim, OffsetInElement, SharedDim};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{self, Type, Value};

impl Decoder<'_> {
    /// Returns an access to `count` scalars in all lanes, without registers yet.
    pub(super) fn access(&mut self, place: &ir::AccessPlace, element: Scalar, count: u32) -> Result<AccessOp> {
        let (place, within) = self.place(place, element, count)?;
        let (values, otherwise) = (Box::default(), Box::default());
        Ok(AccessOp { place, within, element, count, values, guard: None, otherwise, split: None, flat: false })
    }

    /// Returns a place, and the start inside its element of an access to `n` scalars.
    fn place(&mut self, place: &ir::AccessPlace, scalar: Scalar, n: u32) -> Result<(AccessLocation, OffsetInElement)> {
        let index = |v: Value| self.typed(v, Scalar::Usize);
        let within = place.element_offset();
        let step = |s: &ir::ElementIndex| Ok(SharedDim { index: index(s.index)?, extent: s.extent, stride: s.bytes });
        let steps = within.into_iter().flat_map(|w| &w.indices).map(step).collect::<Result<_>>()?;
        let (unit, reach) = (place.unit(scalar), place.reach(n, scalar));
        let within = OffsetInElement { unit, offset: within.map_or(0, |w| w.offset), steps, reach };
        let dim = |d: &ir::Dim| {
            Ok(Dim { index: index(d.index)?, extent: index(d.extent)?, stride: d.stride.map(index).transpose()? })
        };
        let place = match place {
            ir::AccessPlace::Global { base, dims, .. } => {
                if !self.ty(*base)?.is_wide_address() || dims.is_empty() && place.element_offset().is_none() {
                    return self.refuse(format!(
                        "an access to global memory at %{} has no dimension, or %{0} is no address there",
                        base.0
                    ));
                }
                let (base, origin) = (self.register_of(*base)?.row, self.origins[base.0 as usize]);
                AccessLocation::Global { base, dims: dims.iter().map(dim).collect::<Result<_>>()?, origin }
            }
            ir::AccessPlace::Dynamic { base, dims, .. } => {
                if self.ty(*base)? != Type::Shared || dims.is_empty() {
                    return self.refuse(format!(
                        "an access to shared memory at %{} has no dimension, or %{0} is no address there",
                        base.0
                    ));
                }
                let (row, array) = (self.register_of(*base)?.row, self.dynamic[base.0 as usize]);
                AccessLocation::Dynamic { array, base: row, dims: dims.iter().map(dim).collect::<Result<_>>()? }
            }
            ir::AccessPlace::Shared { array, indices, .. } => {
                let Some(shared) = self.kernel.shared.get(array.0 as usize) else {
                    return self.refuse(format!("shared array {} does not exist", array.0));
                };
                if indices.len() != shared.shape.len() {
                    return self.refuse(format!(
                        "an access to `{}` has {} indices for {} dimensions",
                        shared.name,
                        indices.len(),
                        shared.shape.len()
                    ));
                }
                if unit != shared.element.bytes() {
                    return self.refuse(format!(
                        "an access of {unit} bytes to `{}`, whose elements have {} bytes",
                        shared.name,
                        shared.element.bytes()
                    ));
                }
                let shape = shared.shape.iter().zip(&shared.strides);
                let dim = |(v, (extent, stride)): (&Value, (&u32, &u32))| {
                    Ok(SharedDim { index: index(*v)?, extent: *extent, stride: *stride })
                };
                let dims = indices.iter().zip(shape).map(dim).collect::<Result<_>>()?;
                let swizzle = shared.swizzle().filter(|_| indices.len() > 1);
                AccessLocation::Shared { array: array.0, offset: shared.offset, dims, swizzle }
            }
            ir::AccessPlace::Address { base, offset } => {
                let (row, origin, offset) = (self.register_of(*base)?.row, self.origins[base.0 as usize], *offset);
                match self.ty(*base)? {
                    Type::Global | Type::Constant => AccessLocation::Address { base: row, offset, origin },
                    Type::Shared => AccessLocation::SharedAddress { base: row, offset },
                    Type::Scalar(scalar) => {
                        return self.refuse(format!("%{} is `{scalar}` instead of an address", base.0));
                    }
                }
            }
        };
        Ok((place, within))
    }
}
