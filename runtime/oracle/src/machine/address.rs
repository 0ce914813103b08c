//! Addresses of a warp's accesses, and the lanes whose access is valid.
//!
//! Indices are checked against extents, addresses against the buffer that they were computed from,
//! and then alignment. Each step removes the lanes that fail it.

use crate::check::Check;
use crate::code::frame::{FULL, LANES, LaneWord, Row};
use crate::code::lanes::{mask, versions};
use crate::code::{AccessLocation, AccessOp, Dim, Offset, OffsetInElement, Origin, Pc, SharedDim};
use crate::machine::describe::DescribedTarget;
use crate::machine::memory::argument_at;
use crate::machine::{ACCESSES, Machine, Warp};
use crate::report::Description;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{Binary, MAX_VECTOR_BYTES};

versions! {
    /// Adds `index` · `stride` · `size` to each address, with operands by row; a stride of `None`
    /// is 1.
    fn add_term(rows: &[Row], address: &mut [u64; LANES], index: u32, stride: Option<u32>, size: u32);
    /// Adds `index` · `factor` to each address.
    fn add_scaled(rows: &[Row], address: &mut [u64; LANES], index: u32, factor: u64);
    /// Returns the lanes where `index` + `n` exceeds `extent`.
    fn beyond(rows: &[Row], index: u32, extent: u32, n: u32) -> u32;
    /// Returns the lanes where `index` + `n` exceeds a constant extent.
    fn beyond_constant(rows: &[Row], index: u32, extent: u32, n: u32) -> u32;
    /// Subtracts `base` from each address, and returns lanes where the result exceeds `last`.
    fn outside(address: &mut [u64; LANES], base: u64, last: u64) -> u32;
    /// Returns the lanes where `base` + `offset` has one of the `low` bits set.
    fn misaligned(offset: &[u64; LANES], base: u64, low: u64) -> u32;
}

#[inline(always)]
fn add_term(rows: &[Row], address: &mut [u64; LANES], index: u32, stride: Option<u32>, size: u32) {
    let index = u32::lanes(rows, index as usize);
    match stride {
        Some(stride) => {
            let stride = u32::lanes(rows, stride as usize);
            for l in 0..LANES {
                let term = (u64::from(index[l]) * u64::from(stride[l])).wrapping_mul(u64::from(size));
                address[l] = address[l].wrapping_add(term);
            }
        }
        None => {
            for l in 0..LANES {
                address[l] = address[l].wrapping_add(u64::from(index[l]) * u64::from(size));
            }
        }
    }
}

#[inline(always)]
fn add_scaled(rows: &[Row], address: &mut [u64; LANES], index: u32, factor: u64) {
    let index = u32::lanes(rows, index as usize);
    for l in 0..LANES {
        address[l] = address[l].wrapping_add(u64::from(index[l]).wrapping_mul(factor));
    }
}

#[inline(always)]
fn beyond(rows: &[Row], index: u32, extent: u32, n: u32) -> u32 {
    let (index, extent) = (u32::lanes(rows, index as usize), u32::lanes(rows, extent as usize));
    mask(|l| extent[l] < n || index[l] > extent[l] - n)
}

#[inline(always)]
fn beyond_constant(rows: &[Row], index: u32, extent: u32, n: u32) -> u32 {
    let Some(last) = extent.checked_sub(n) else { return FULL };
    let index = u32::lanes(rows, index as usize);
    mask(|l| index[l] > last)
}

#[inline(always)]
fn outside(address: &mut [u64; LANES], base: u64, last: u64) -> u32 {
    for address in address.iter_mut() {
        *address = address.wrapping_sub(base);
    }
    mask(|l| address[l] > last)
}

#[inline(always)]
fn misaligned(offset: &[u64; LANES], base: u64, low: u64) -> u32 {
    let any = offset.iter().fold(0, |any, o| any | base.wrapping_add(*o) & low);
    if any == 0 { 0 } else { mask(|l| base.wrapping_add(offset[l]) & low != 0) }
}

/// The lanes of an access that go to one target.
pub struct TargetLanes {
    pub target: DescribedTarget,
    /// The offset in bytes from the target's beginning.
    pub offset: [u64; LANES],
    pub lanes: u32,
}

impl AccessOp {
    /// Returns the size of all scalars in bytes.
    pub fn bytes(&self) -> u32 {
        self.element.bytes() * self.count
    }

    /// Returns the required alignment of the address in bytes. A whole access whose size is a power
    /// of two, at most [`MAX_VECTOR_BYTES`], is aligned to this size. Any other access is aligned
    /// to the size of a scalar.
    fn alignment(&self) -> u32 {
        if self.bytes().is_power_of_two() { self.bytes().min(MAX_VECTOR_BYTES) } else { self.element.bytes() }
    }
}

impl TargetLanes {
    /// Returns the location of scalar `i` of the access in a lane: the buffer and the offset of the
    /// scalar's first byte. The buffer is `None` for the block's shared memory.
    pub fn scalar(&self, access: &AccessOp, i: usize, lane: usize) -> (Option<usize>, u64) {
        let buffer = if let DescribedTarget::Buffer(b) = self.target { Some(b) } else { None };
        (buffer, self.offset[lane] + u64::from(access.element.bytes()) * i as u64)
    }
}

impl Machine<'_, '_> {
    /// Calls `each` with the lanes of an access, grouped by target. Only repeated runs use this
    /// function: the first run has already reported the access's errors.
    pub fn each_part(
        &mut self,
        site: Pc,
        warp: &Warp,
        mask: u32,
        access: &AccessOp,
        mut each: impl FnMut(&mut Self, &TargetLanes),
    ) {
        let active = self.guarded(warp, mask, access);
        let (address, mut rest) = self.addresses::<ACCESSES>(site, warp, active, access);
        while rest != 0 {
            let part = self.part::<ACCESSES>(site, warp, &mut rest, &address, access);
            each(self, &part);
        }
    }

    /// Returns the bytes of a target.
    pub fn contents(&self, target: DescribedTarget) -> &[u8] {
        match target {
            DescribedTarget::Buffer(b) => self.buffers[b].bytes.get(),
            DescribedTarget::Shared => bytemuck::cast_slice(&self.shared[..]),
        }
    }

    /// Adds an offset to an address.
    pub fn offset<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, offset: &Offset) {
        for &(index, stride) in &offset.terms {
            if TIER >= ACCESSES
                && offset.checked
                && let Some(stride) = stride
            {
                let bad = self.simd.overflows(&warp.rows, Binary::Mul, Scalar::Usize, index, stride) & mask;
                if bad != 0 {
                    self.report(Check::UsizeOverflow, site, warp.index, bad, |_, lane| {
                        let at = |row| u32::lanes(&warp.rows, row as usize)[lane];
                        let (index, stride) = (at(index), at(stride));
                        Description::new(format!("`{index} * {stride}` overflows `usize` where a view moves"))
                    });
                }
            }
        }
        let base = offset.base.row as usize;
        let mut address =
            if offset.base.wide { *u64::lanes(&warp.rows, base) } else { u32::lanes(&warp.rows, base).map(u64::from) };
        for &(index, stride) in &offset.terms {
            self.simd.add_term(&warp.rows, &mut address, index, stride, offset.size);
        }
        let to = offset.to.row as usize;
        if offset.to.wide {
            *u64::lanes_mut(&mut warp.rows, to) = address;
        } else {
            *u32::lanes_mut(&mut warp.rows, to) = address.map(|a| a as u32);
        }
    }

    /// Returns the address of each lane, and the lanes whose indices are in bounds.
    pub fn addresses<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &Warp,
        active: u32,
        access: &AccessOp,
    ) -> ([u64; LANES], u32) {
        let (simd, rows) = (self.simd, &warp.rows[..]);
        let OffsetInElement { unit: size, offset: first, steps, reach: n } = &access.within;
        let (size, n) = (*size, *n);
        let mut bad = 0;
        let mut address;
        let mut swizzled = None;
        match &access.place {
            AccessLocation::Global { base, dims, .. } | AccessLocation::Dynamic { base, dims, .. } => {
                address = match access.place.is_shared() {
                    true => u32::lanes(rows, *base as usize).map(u64::from),
                    false => *u64::lanes(rows, *base as usize),
                };
                for (i, &Dim { index, extent, stride }) in dims.iter().enumerate() {
                    simd.add_term(rows, &mut address, index, stride, size);
                    if TIER >= ACCESSES {
                        bad |= simd.beyond(rows, index, extent, if i + 1 == dims.len() { n } else { 1 });
                    }
                }
            }
            AccessLocation::Shared { offset, dims, swizzle, .. } => {
                address = [u64::from(*offset); LANES];
                if let (Some(swizzle), [.., row, _]) = (swizzle, &dims[..]) {
                    swizzled = Some((*swizzle, row.index, *offset));
                }
                for (i, &SharedDim { index, extent, stride }) in dims.iter().enumerate() {
                    simd.add_scaled(rows, &mut address, index, u64::from(stride) * u64::from(size));
                    if TIER >= ACCESSES {
                        bad |= simd.beyond_constant(rows, index, extent, if i + 1 == dims.len() { n } else { 1 });
                    }
                }
            }
            AccessLocation::Address { base, offset, .. } => {
                address = u64::lanes(rows, *base as usize).map(|a| a.wrapping_add_signed((*offset).into()));
            }
            AccessLocation::SharedAddress { base, offset } => {
                address = u32::lanes(rows, *base as usize).map(|a| u64::from(a).wrapping_add_signed((*offset).into()));
            }
        }
        if *first > 0 {
            address.iter_mut().for_each(|a| *a = a.wrapping_add(u64::from(*first)));
        }
        let mut outside = 0;
        for (i, &SharedDim { index, extent, stride }) in steps.iter().enumerate() {
            simd.add_scaled(rows, &mut address, index, stride.into());
            if TIER >= ACCESSES {
                let n = if i + 1 == steps.len() && stride == access.element.bytes() { access.count } else { 1 };
                outside |= simd.beyond_constant(rows, index, extent, n);
            }
        }
        if let Some((swizzle, row, offset)) = swizzled {
            // Rows are multiples of the swizzle's period, so the flipped bits are those of the
            // array's own offset.
            let rows = u32::lanes(rows, row as usize);
            for l in 0..LANES {
                let byte = address[l].wrapping_sub(offset.into());
                address[l] = (byte ^ u64::from(swizzle.bits(rows[l]))).wrapping_add(offset.into());
            }
        }
        bad &= active;
        outside &= active & !bad;
        if TIER >= ACCESSES && bad != 0 {
            self.out_of_extent(site, warp, bad, access);
        }
        if TIER >= ACCESSES && outside != 0 {
            self.out_of_element(site, warp, outside, access);
        }
        (address, active & !bad & !outside)
    }

    /// Removes from `rest` all lanes with the same target as its first lane. Returns those of the
    /// removed lanes whose access is valid.
    pub fn part<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &Warp,
        rest: &mut u32,
        address: &[u64; LANES],
        access: &AccessOp,
    ) -> TargetLanes {
        let mut lanes = *rest;
        let mut by_address = |address: &[u64; LANES]| {
            let argument = argument_at(address[rest.trailing_zeros() as usize % LANES]);
            lanes = *rest & mask(|l| argument_at(address[l]) == argument);
            argument.and_then(|a| *self.setting.by_argument.get(a as usize)?)
        };
        let target = match access.place {
            AccessLocation::Shared { .. } | AccessLocation::Dynamic { .. } | AccessLocation::SharedAddress { .. } => {
                Some(DescribedTarget::Shared)
            }
            AccessLocation::Global { origin: Origin::Argument(a), .. }
            | AccessLocation::Address { origin: Origin::Argument(a), .. } => {
                self.setting.by_argument.get(a as usize).copied().flatten().map(DescribedTarget::Buffer)
            }
            AccessLocation::Global { .. } | AccessLocation::Address { .. } => {
                by_address(address).map(DescribedTarget::Buffer)
            }
        };
        *rest &= !lanes;
        let mut offset = *address;
        let Some(target) = target else {
            if TIER >= ACCESSES {
                self.report(Check::OutOfBounds, site, warp.index, lanes, |_, lane| {
                    Description::new(format!("an access at address {:#x}, which is in no buffer", address[lane]))
                });
            }
            return TargetLanes { target: DescribedTarget::Shared, offset, lanes: 0 };
        };
        let (base, len) = match target {
            DescribedTarget::Buffer(b) => (self.buffers[b].base, self.buffers[b].bytes.get().len() as u64),
            DescribedTarget::Shared => (0, u64::from(self.setting.shared_bytes)),
        };
        let size = u64::from(access.bytes());
        let mut bad = self.simd.outside(&mut offset, base, len.saturating_sub(size)) & lanes;
        if len < size {
            bad = lanes;
        }
        if bad != 0 {
            if TIER >= ACCESSES {
                self.report(Check::OutOfBounds, site, warp.index, bad, |machine, lane| {
                    let object = machine.object(target, offset[lane], access);
                    let (name, byte) = (&object.name, offset[lane] as i64);
                    Description::new(format!(
                        "{size} bytes at byte {byte} are outside of `{name}`, which has {len} bytes"
                    ))
                    .about(object)
                });
            }
            lanes &= !bad;
        }
        if TIER >= ACCESSES {
            let low = u64::from(access.alignment()) - 1;
            let bad = self.simd.misaligned(&offset, base, low) & lanes;
            if bad != 0 {
                self.report(Check::Misaligned, site, warp.index, bad, |machine, lane| {
                    let object = machine.object(target, offset[lane], access);
                    let (name, byte, low) = (&object.name, offset[lane], base.wrapping_add(offset[lane]) & 0xff);
                    let which = machine.which_access(site);
                    Description::new(format!(
                        "an access of {size} bytes at byte {byte} of `{name}` is not aligned to {size} bytes \
                         (its address ends in {low:#04x}){which}"
                    ))
                    .about(object)
                });
                lanes &= !bad;
            }
        }
        TargetLanes { target, offset, lanes }
    }
}
