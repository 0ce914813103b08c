//! Copies and fills of boxes of rows. A one-dimensional copy is a box of one row.

use super::space::{Allocations, vanished};
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use std::ptr;
use std::sync::Arc;

/// Host memory that the program passed to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPointer(*mut u8);

// SAFETY: the program leaves the bytes to the driver, on any thread, until the copy is complete.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// Wraps a pointer argument of a call.
    ///
    /// # Safety
    /// The program must keep the copied bytes allocated, and unused by others, until the copy is
    /// complete.
    pub unsafe fn new(pointer: *mut u8) -> HostPointer {
        HostPointer(pointer)
    }

    /// Returns the address as a number.
    pub fn address(self) -> u64 {
        self.0.addr() as u64
    }
}

/// The start of one side of a copy.
#[derive(Clone, Debug)]
pub enum CopyPlace {
    /// In host memory.
    Host(HostPointer),
    /// In a staging buffer of the driver.
    Staged(Arc<[u8]>),
    /// In the memory of a context.
    Device(Arc<Context>, u64),
}

/// One side of a copy.
#[derive(Clone, Debug)]
pub struct CopySide {
    /// The first byte.
    pub place: CopyPlace,
    /// The bytes from one row to the next.
    pub pitch: u64,
    /// The bytes from one layer to the next.
    pub layer: u64,
}

/// The size of a box of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyExtent {
    /// The bytes of a row.
    pub width: u64,
    /// The rows of a layer.
    pub height: u64,
    /// The number of layers.
    pub depth: u64,
}

impl CopyExtent {
    /// Returns the size of one row of `width` bytes.
    pub fn row(width: u64) -> CopyExtent {
        CopyExtent { width, height: 1, depth: 1 }
    }

    /// Returns whether the box is empty.
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Returns the bytes from the first to the last, including the gaps between rows and layers.
    fn span(self, pitch: u64, layer: u64) -> Result<u64> {
        let rows = (self.height - 1).checked_mul(pitch);
        let layers = (self.depth - 1).checked_mul(layer);
        let span = rows.zip(layers).and_then(|(a, b)| a.checked_add(b)?.checked_add(self.width));
        span.ok_or_else(|| Error::value("the copy exceeds the address space"))
    }
}

/// A copy.
#[derive(Clone, Debug)]
pub struct MemoryCopy {
    /// The source.
    pub from: CopySide,
    /// The destination.
    pub to: CopySide,
    /// The size.
    pub extent: CopyExtent,
}

impl CopySide {
    /// Describes bytes without gaps.
    pub fn row(place: CopyPlace) -> CopySide {
        CopySide { place, pitch: 0, layer: 0 }
    }

    /// Returns whether the side is host memory that is neither pinned nor managed.
    fn is_pageable(&self, context: &Context, extent: CopyExtent) -> bool {
        let CopyPlace::Host(pointer) = self.place else { return false };
        let span = extent.span(self.pitch, self.layer).unwrap_or(u64::MAX);
        !context.memory().is_pinned(pointer.address(), span)
    }

    /// Checks that the bytes lie in an allocation.
    fn check(&self, extent: CopyExtent) -> Result {
        let span = extent.span(self.pitch, self.layer)?;
        if extent.height > 1 && self.pitch < extent.width {
            return Err(Error::value(format!("rows of {} bytes do not fit a pitch of {}", extent.width, self.pitch)));
        }
        match &self.place {
            CopyPlace::Host(pointer) if pointer.0.is_null() => Err(Error::value("the pointer to host memory is null")),
            CopyPlace::Host(_) | CopyPlace::Staged(_) => Ok(()),
            CopyPlace::Device(context, address) => context.memory().check(*address, span),
        }
    }

    /// Returns the host address of the first byte.
    fn pointer(&self, memory: Option<&Allocations>, extent: CopyExtent) -> Result<*mut u8> {
        match (&self.place, memory) {
            (CopyPlace::Host(pointer), _) => Ok(pointer.0),
            (CopyPlace::Staged(bytes), _) => Ok(bytes.as_ptr().cast_mut()),
            (CopyPlace::Device(_, address), Some(memory)) => {
                memory.pointer(*address, extent.span(self.pitch, self.layer)?).map_err(vanished)
            }
            (CopyPlace::Device(_, address), None) => Err(Error::value(format!("{address:#x} is in no memory"))),
        }
    }

    fn context(&self) -> Option<&Arc<Context>> {
        if let CopyPlace::Device(context, _) = &self.place { Some(context) } else { None }
    }
}

impl MemoryCopy {
    /// Checks that the bytes of both sides lie in allocations.
    pub fn check(&self) -> Result {
        if self.extent.is_empty() {
            return Ok(());
        }
        self.from.check(self.extent)?;
        self.to.check(self.extent)
    }

    /// Copies the source to a staging buffer if it is pageable host memory, which the program may
    /// change after the call.
    pub fn stage(&mut self, context: &Context) {
        if self.extent.is_empty() || !self.from.is_pageable(context, self.extent) {
            return;
        }
        let (CopyPlace::Host(pointer), Ok(span)) =
            (&self.from.place, self.extent.span(self.from.pitch, self.from.layer))
        else {
            return;
        };
        // SAFETY: the program guarantees the bytes of the copy, and the gaps lie between these
        // bytes.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.0, span as usize) };
        self.from.place = CopyPlace::Staged(bytes.into());
    }

    /// Returns whether the destination is pageable host memory, which the program may read directly
    /// after the call.
    pub fn is_to_wait_for(&self, context: &Context) -> bool {
        !self.extent.is_empty() && self.to.is_pageable(context, self.extent)
    }

    /// Runs the copy.
    pub fn run(&self) -> Result {
        let MemoryCopy { from, to, extent } = self;
        if extent.is_empty() {
            return Ok(());
        }
        let mut first = from.context().or(to.context()).map(|context| context.memory());
        // Only this function locks two contexts, and only one copy runs at a time, so no deadlock
        // is possible.
        let mut second = match (from.context(), to.context()) {
            (Some(a), Some(b)) if !Arc::ptr_eq(a, b) => Some(b.memory()),
            _ => None,
        };
        let source = from.pointer(first.as_deref(), *extent)?;
        let target = to.pointer(second.as_deref().or(first.as_deref()), *extent)?;
        for layer in 0..extent.depth {
            for row in 0..extent.height {
                let at = |side: &CopySide| (layer * side.layer + row * side.pitch) as usize;
                // SAFETY: both rows were checked above under the lock, or the program guarantees
                // them. `copy` permits overlap.
                unsafe {
                    let (source, target) = (source.wrapping_add(at(from)), target.wrapping_add(at(to)));
                    ptr::copy(source, target, extent.width as usize);
                }
            }
        }
        self.propagate_written(first.as_deref_mut(), second.as_deref_mut());
        Ok(())
    }

    /// Records which bytes of the destination are written: those that are written in the source.
    /// `first` is the memory of the source, or of the destination if the source is on the host.
    /// `second` is the memory of the destination if it belongs to another context.
    fn propagate_written(&self, first: Option<&mut Allocations>, second: Option<&mut Allocations>) {
        let MemoryCopy { from, to, extent } = self;
        let (CopyPlace::Device(_, target), Some(first)) = (&to.place, first) else { return };
        if !second.as_deref().unwrap_or(first).is_tracked(*target) {
            return;
        }
        let rows = (0..extent.depth).flat_map(|layer| (0..extent.height).map(move |row| (layer, row)));
        let at = |side: &CopySide, (layer, row): (u64, u64)| layer * side.layer + row * side.pitch;
        // The rows of a copy inside an allocation may overlap, so all sources are read first.
        let source = |place| match from.place {
            CopyPlace::Device(_, address) => first.written(address + at(from, place), extent.width),
            CopyPlace::Host(_) | CopyPlace::Staged(_) => None,
        };
        let written: Vec<_> = rows.clone().map(source).collect();
        let memory = second.unwrap_or(first);
        for (place, written) in rows.zip(written) {
            memory.set_written(target + at(to, place), extent.width, written.as_deref());
        }
    }
}

/// A fill with a repeated value.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The context that owns the memory.
    pub context: Arc<Context>,
    /// The first address.
    pub address: u64,
    /// The bytes from one row to the next.
    pub pitch: u64,
    /// The size.
    pub extent: CopyExtent,
    /// The repeated value.
    pub value: FillValue,
}

/// A value of 8, 16 or 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FillValue {
    Byte(u8),
    Half(u16),
    Word(u32),
}

impl FillValue {
    /// Returns the width in bytes.
    pub fn width(self) -> u64 {
        match self {
            FillValue::Byte(_) => 1,
            FillValue::Half(_) => 2,
            FillValue::Word(_) => 4,
        }
    }
}

impl Fill {
    /// Checks that the bytes lie in an allocation.
    pub fn check(&self) -> Result {
        let Fill { extent, value, .. } = self;
        if extent.is_empty() {
            return Ok(());
        }
        if !self.address.is_multiple_of(value.width()) || extent.height > 1 && !self.pitch.is_multiple_of(value.width())
        {
            return Err(Error::value(format!(
                "{:#x} or the pitch is not a multiple of {} bytes",
                self.address,
                value.width()
            )));
        }
        if extent.height > 1 && self.pitch < extent.width {
            return Err(Error::value(format!("rows of {} bytes do not fit a pitch of {}", extent.width, self.pitch)));
        }
        let span = extent.span(self.pitch, 0)?;
        self.context.memory().check(self.address, span)
    }

    /// Runs the fill.
    pub fn run(&self) -> Result {
        let Fill { extent, value, .. } = self;
        if extent.is_empty() {
            return Ok(());
        }
        let mut memory = self.context.memory();
        let start = memory.pointer(self.address, extent.span(self.pitch, 0)?).map_err(vanished)?;
        for row in 0..extent.height {
            let (start, width) = (start.wrapping_add((row * self.pitch) as usize), extent.width as usize);
            // SAFETY: the row was checked above under the lock.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, width) };
            match value {
                FillValue::Byte(value) => bytes.fill(*value),
                FillValue::Half(value) => {
                    bytes.chunks_exact_mut(2).for_each(|to| to.copy_from_slice(&value.to_le_bytes()))
                }
                FillValue::Word(value) => {
                    bytes.chunks_exact_mut(4).for_each(|to| to.copy_from_slice(&value.to_le_bytes()))
                }
            }
            memory.set_written(self.address + row * self.pitch, extent.width, None);
        }
        Ok(())
    }
}
