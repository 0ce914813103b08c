//! Memory of a device.

use crate::device::{Backend, PoolKind};
use crate::hazard::{AccessSet, BufferAccess, HazardTracker};
use crate::pool::PoolAllocation;
use crate::uninit::HOST;
use crate::view::{AccessTracker, BufferStrided, BufferStridedMut, BufferView, BufferViewMut, ViewLayout, ViewOrigin};
use crate::{Device, Error, Result};
use kernel_dsl::compiler::ElementType;
use kernel_dsl::launcher::{self, ArgumentShape, SliceArgument, SliceMutArgument};
use kernel_dsl::{Argument, Element};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Memory of a device, freed when dropped, with its hazard tracker.
///
/// A raw buffer is `Send` and `Sync`. The buffer owns its bytes, a shared reference only reads
/// them, and accesses in flight are tracked. Any thread may use a device.
#[derive(Debug)]
pub struct RawBuffer {
    device: Device,
    memory: PoolKind,
    place: BufferPlace,
    bytes: usize,
    uses: HazardTracker,
}

/// The memory of a buffer.
enum BufferPlace {
    /// Memory of the device's pool; `None` once it is given back.
    Pool(Option<PoolAllocation>),
    /// Memory that other code allocated, and the owner that keeps it alive.
    Adopted { address: u64, _owner: Box<dyn Any + Send + Sync> },
}

impl fmt::Debug for BufferPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferPlace::Pool(piece) => piece.fmt(f),
            BufferPlace::Adopted { address, .. } => write!(f, "Adopted({address:#x})"),
        }
    }
}

impl RawBuffer {
    /// Allocates `bytes` bytes of unspecified content. On the CPU the bytes are initialized.
    pub fn new(device: &Device, memory: PoolKind, bytes: usize) -> Result<RawBuffer> {
        let (piece, pending) = device.backend().take(memory, bytes)?;
        let (device, uses) = (device.clone(), HazardTracker::inherited(pending));
        Ok(RawBuffer { device, memory, place: BufferPlace::Pool(Some(piece)), bytes, uses })
    }

    /// Makes a buffer of `bytes` bytes at `address`, which other code allocated. `owner` is dropped
    /// after the last use.
    ///
    /// # Safety
    /// The memory and `owner` are as [`Device::adopt`] requires.
    pub unsafe fn adopted(device: &Device, address: u64, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> RawBuffer {
        let place = BufferPlace::Adopted { address, _owner: owner };
        RawBuffer { device: device.clone(), memory: PoolKind::Device, place, bytes, uses: HazardTracker::default() }
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        match &self.place {
            BufferPlace::Pool(piece) => piece.as_ref().map_or(0, |piece| piece.address),
            BufferPlace::Adopted { address, .. } => *address,
        }
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the device that the memory belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn uses(&self) -> &HazardTracker {
        &self.uses
    }

    /// Returns the buffer as the argument of a launch.
    ///
    /// # Safety
    /// The shape covers only bytes of the buffer, all of which are initialized. The buffer outlives
    /// the argument, and belongs to one argument of a launch.
    pub unsafe fn argument(
        &self,
        element: ElementType,
        shape: ArgumentShape,
        mutable: bool,
    ) -> launcher::ArgumentMemory<'_> {
        // SAFETY: by the caller's promise; the tracker is that of the buffer.
        unsafe {
            launcher::ArgumentMemory::new(element, self.device.id(), self.address(), shape, mutable)
                .owned_by(&self.uses)
        }
    }

    /// Forgets all tracked accesses, for which the caller has waited.
    pub fn forget_uses(&mut self) {
        self.uses = HazardTracker::default();
    }

    /// Sets all bytes to `value`, in the order of the device's default queue.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let queue = self.device.backend().queue();
        // SAFETY: this buffer owns the memory, which is exclusive, and `AccessSet` records the
        // write.
        unsafe { queue.fill(&AccessSet::written(&self.uses), self.address(), self.bytes, value) }
    }

    /// Overwrites all bytes with the bytes of `from`, and waits for the copy. `from` must have the
    /// buffer's length in bytes.
    pub fn write(&mut self, from: &[u8]) -> Result<()> {
        assert_eq!(from.len(), self.bytes, "callers compare lengths");
        let backend = self.device.backend();
        let queue = backend.queue();
        let directly = || {
            // SAFETY: the memory is exclusive and as long as `from`, which is borrowed until the
            // copy is complete. No time limit ends the wait. If the wait fails, the device is lost,
            // and the copy has ended with it.
            unsafe { queue.write(&AccessSet::written(&self.uses), self.address(), from.as_ptr(), from.len())? };
            queue.wait()
        };
        if let Some(written) = backend.unlimited(directly) {
            return written;
        }
        let staged = RawBuffer::new(&self.device, PoolKind::Pinned, self.bytes)?;
        backend.wait_for(&staged.uses.before_write())?;
        let start = ptr::with_exposed_provenance_mut::<u8>(staged.address() as usize);
        let used = AccessSet::written(&self.uses).and(BufferAccess::Read(&staged.uses));
        // SAFETY: the staging memory is exclusive, equally long, and host memory; its use is
        // tracked for the next owner. If a time limit ends the wait, the device is lost, and its
        // pool allocates no more memory.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), start, self.bytes);
            queue.write(&used, self.address(), start, self.bytes)?;
        }
        queue.wait()
    }

    /// Copies all bytes to `to`, and waits for the copy. `to` must have the buffer's length in
    /// bytes.
    pub fn read(&self, to: &mut [u8]) -> Result<()> {
        assert_eq!(to.len(), self.bytes, "callers compare lengths");
        let backend = self.device.backend();
        let queue = backend.queue();
        let directly = || {
            // SAFETY: the memory is as long as `to`, which is borrowed until the copy is complete,
            // as above. A writer would need the memory exclusively.
            unsafe { queue.read(&AccessSet::read(&self.uses), self.address(), to.as_mut_ptr(), to.len())? };
            queue.wait()
        };
        if let Some(read) = backend.unlimited(directly) {
            return read;
        }
        let staged = RawBuffer::new(&self.device, PoolKind::Pinned, self.bytes)?;
        let start = ptr::with_exposed_provenance_mut::<u8>(staged.address() as usize);
        let used = AccessSet::read(&self.uses).and(BufferAccess::Write(&staged.uses));
        // SAFETY: as in `write`; the copy is complete before its bytes are read.
        unsafe {
            queue.read(&used, self.address(), start, self.bytes)?;
            queue.wait()?;
            ptr::copy_nonoverlapping(start, to.as_mut_ptr(), self.bytes);
        }
        Ok(())
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        let pending = self.uses.before_write();
        match &mut self.place {
            BufferPlace::Pool(piece) => {
                if let Some(piece) = piece.take() {
                    self.device.backend().give_back(self.memory, (piece, self.bytes), pending);
                }
            }
            // The owner may free the memory. If the wait fails, the device is lost, and nothing
            // uses the memory any more.
            BufferPlace::Adopted { .. } => drop(self.device.backend().wait_for(&pending)),
        }
    }
}

/// `len` elements in the memory of a device, freed when dropped.
///
/// A kernel takes `&buffer` for `&[T]`, `&mut buffer` for `&mut [T]`, and a
/// [`view`](DeviceBuffer::view) for a `View`.
///
/// ```
/// # fn main() -> runtime::Result<()> {
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(x.download()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[repr(transparent)]
pub struct DeviceBuffer<T: Element> {
    raw: RawBuffer,
    element: PhantomData<T>,
}

impl Device {
    /// Returns a buffer over `len` elements at `address` that other code allocated, such as an
    /// array of another library. Nothing is copied. `owner` keeps the memory alive, and is dropped
    /// after the last use.
    ///
    /// # Errors
    /// If the size in bytes overflows.
    ///
    /// # Safety
    /// The elements lie in one initialized allocation of this device, aligned to their size, that
    /// exists until `owner` is dropped. On the CPU, `address` comes from a host pointer whose
    /// provenance is exposed. Until then, no other code writes the elements while this buffer is
    /// used, nor reads them while a launch or a method may write them. Other buffers that adopt the
    /// same memory are other code.
    pub unsafe fn adopt<T: Element>(
        &self,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<DeviceBuffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        // SAFETY: by the caller's promise.
        let raw = unsafe { RawBuffer::adopted(self, address, bytes, owner) };
        Ok(DeviceBuffer { raw, element: PhantomData })
    }

    /// Allocates a buffer with a copy of `data`, and waits for the copy.
    ///
    /// # Errors
    /// If the device is out of memory or lost.
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, data.len())?;
        buffer.copy_from(data)?;
        Ok(buffer)
    }

    /// Allocates a buffer of `len` zeros.
    ///
    /// # Errors
    /// If the size in bytes overflows, or the device is out of memory or lost.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, len)?;
        if !self.allocates_zeros() {
            buffer.raw.fill(0)?;
        }
        Ok(buffer)
    }

    /// Returns whether new buffers are zeros before anything writes them.
    fn allocates_zeros(&self) -> bool {
        matches!(self.backend(), Backend::Cpu(cpu) if cpu.allocates_zeros())
    }

    /// Allocates a buffer of `len` uninitialized elements. On a GPU the memory keeps its former
    /// content. On the CPU each byte is 0xFF, which makes every float a NaN. The CPU device tracks
    /// which elements copies and launches write. A kernel that loads an unwritten element is
    /// [reported](runtime_oracle::Check::UninitializedBuffer). A call of
    /// [`as_mut_slice`](DeviceBuffer::as_mut_slice) or of
    /// [`device_address`](DeviceBuffer::device_address) counts as writing all elements.
    ///
    /// # Errors
    /// If the size in bytes overflows, or the device is out of memory or lost.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, len)?;
        if let (Backend::Cpu(_), false) = (self.backend(), self.allocates_zeros()) {
            buffer.raw.fill(0xff)?;
            HOST.add_buffer(buffer.raw.address(), buffer.raw.bytes());
        }
        Ok(buffer)
    }
}

/// Returns the size of `len` elements in bytes.
pub(crate) fn bytes_of<T: Element>(len: usize) -> Result<usize> {
    const { assert!(size_of::<T>() == T::TYPE.bytes() as usize, "an element is as wide on the host as on the device") };
    len.checked_mul(size_of::<T>()).ok_or(Error::BufferSize { element: T::TYPE, len })
}

/// Rejects a copy between memories of different lengths, each with its name.
pub(crate) fn same_length((from, from_len): (&'static str, usize), (to, to_len): (&'static str, usize)) -> Result<()> {
    if from_len == to_len { Ok(()) } else { Err(Error::Length { from, from_len, to, to_len }) }
}

/// Returns a pointer to host memory at an address that came from a pointer.
fn host(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl<T: Element> DeviceBuffer<T> {
    fn new(device: &Device, len: usize) -> Result<DeviceBuffer<T>> {
        let raw = RawBuffer::new(device, PoolKind::Device, bytes_of::<T>(len)?)?;
        Ok(DeviceBuffer { raw, element: PhantomData })
    }

    /// Returns the memory.
    pub(crate) fn raw(&self) -> &RawBuffer {
        &self.raw
    }

    /// Returns the buffer with the memory `raw`.
    ///
    /// # Safety
    /// `raw` was the memory of a `DeviceBuffer<T>`.
    pub(crate) unsafe fn of_raw(raw: &RawBuffer) -> &DeviceBuffer<T> {
        // SAFETY: a `DeviceBuffer<T>` consists of its memory alone; the caller guarantees the
        // element type.
        unsafe { &*ptr::from_ref(raw).cast() }
    }

    /// Returns the buffer with the memory `raw`, exclusively.
    ///
    /// # Safety
    /// As for `of_raw`.
    pub(crate) unsafe fn of_raw_mut(raw: &mut RawBuffer) -> &mut DeviceBuffer<T> {
        // SAFETY: as above. A replacement is a `DeviceBuffer<T>` too.
        unsafe { &mut *ptr::from_mut(raw).cast() }
    }

    /// Returns the memory with its shared ownership.
    pub(crate) fn shared_raw(shared: Arc<DeviceBuffer<T>>) -> Arc<RawBuffer> {
        // SAFETY: a `DeviceBuffer<T>` is its memory and nothing else.
        unsafe { Arc::from_raw(Arc::into_raw(shared).cast()) }
    }

    pub(crate) fn into_raw(self) -> RawBuffer {
        self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> &mut RawBuffer {
        &mut self.raw
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.raw.bytes() / size_of::<T>()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the device that owns the memory.
    pub fn device(&self) -> &Device {
        self.raw.device()
    }

    /// Returns the device address of the first element, for other users of the driver; 0 if there
    /// are no elements. Accesses through the address are not tracked. Such an access must be
    /// ordered after the streams' pending work on the buffer, and before later work.
    pub fn device_address(&self) -> u64 {
        if self.device().is_cpu() {
            // Writes through the address are not tracked.
            HOST.stored(self.address(), self.raw.bytes());
        }
        self.address()
    }

    /// Waits for pending writes to the buffer, and copies all elements to the host: the counterpart
    /// of [`Device::upload`].
    ///
    /// # Errors
    /// If the device is lost, or out of memory for the copy.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut data = Vec::with_capacity(self.len());
        // SAFETY: all-zero bits are a value of `T`, as every bit pattern is; the capacity suffices.
        unsafe {
            ptr::write_bytes(data.as_mut_ptr(), 0, self.len());
            data.set_len(self.len());
        }
        self.copy_to(&mut data)?;
        Ok(data)
    }

    /// Copies all elements to `data`, and waits for the copy.
    ///
    /// # Errors
    /// If `data` has another length than the buffer, or the device is lost.
    pub fn copy_to(&self, data: &mut [T]) -> Result<()> {
        same_length(("the buffer", self.len()), ("the slice", data.len()))?;
        // SAFETY: `Element`s are numbers without padding, of which every bit pattern is a value.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) };
        self.raw.read(bytes)
    }

    /// Overwrites all elements with those of `data`, and waits for the copy.
    ///
    /// # Errors
    /// If `data` has another length than the buffer, or the device is lost.
    pub fn copy_from(&mut self, data: &[T]) -> Result<()> {
        same_length(("the slice", data.len()), ("the buffer", self.len()))?;
        // SAFETY: `Element`s are numbers without padding.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) };
        self.raw.write(bytes)
    }

    /// Returns all elements as a row-major array of rank 1 to 5, with these extents in elements.
    ///
    /// # Errors
    /// If the product of the extents is not the buffer's length.
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>> {
        Ok(BufferView::new(self.origin(), ViewLayout::row_major::<T>(self.len(), extents)?))
    }

    /// Returns all elements as [`view`](DeviceBuffer::view) does, for a kernel to write.
    ///
    /// # Errors
    /// Returns the errors of [`view`](DeviceBuffer::view).
    pub fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> Result<BufferViewMut<'_, T, R>> {
        let layout = ViewLayout::row_major::<T>(self.len(), extents)?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// Returns elements Σ indexᵢ · strideᵢ as an array of these extents. Strides are in elements;
    /// the last one is 1. `view_strided([rows, columns], [pitch, 1])` is a matrix whose rows are
    /// `pitch` elements apart.
    ///
    /// # Errors
    /// If the last stride is not 1, or the buffer does not contain the last element.
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>> {
        Ok(BufferView::new(self.origin(), ViewLayout::strided::<T>(self.len(), extents, strides)?))
    }

    /// Returns a view as [`view_strided`](DeviceBuffer::view_strided) does, for a kernel to write.
    ///
    /// # Errors
    /// If two indices select the same element; and the errors of
    /// [`view_strided`](DeviceBuffer::view_strided).
    pub fn view_strided_mut<const R: usize>(
        &mut self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferViewMut<'_, T, R>> {
        let layout = ViewLayout::strided::<T>(self.len(), extents, strides)?.check_distinct::<T>(self.len())?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// Returns elements `start` + Σ indexᵢ · strideᵢ as an array of these extents, for a kernel's
    /// `Strided<T, R>`. `start` and strides are in elements. `strided(j, [rows], [columns])` is
    /// column j of a matrix, `strided(0, [columns, rows], [1, columns])` the transposed matrix.
    ///
    /// # Errors
    /// If the buffer does not contain the last element.
    pub fn strided<const R: usize>(
        &self,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferStrided<'_, T, R>> {
        Ok(BufferStrided::new(self.origin(), ViewLayout::with_strides::<T>(self.len(), start, extents, strides)?))
    }

    /// Returns a view as [`strided`](DeviceBuffer::strided) does, for a kernel to write.
    ///
    /// # Errors
    /// If two indices select the same element; and the errors of
    /// [`strided`](DeviceBuffer::strided).
    pub fn strided_mut<const R: usize>(
        &mut self,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferStridedMut<'_, T, R>> {
        let layout =
            ViewLayout::with_strides::<T>(self.len(), start, extents, strides)?.check_distinct::<T>(self.len())?;
        Ok(BufferStridedMut::new(self.origin(), layout))
    }

    /// Returns the elements of `range`, for a kernel's `&[T]` or `View<T, 1>`.
    ///
    /// # Errors
    /// If the range does not lie in the buffer.
    pub fn range(&self, range: Range<usize>) -> Result<BufferView<'_, T, 1>> {
        Ok(BufferView::new(self.origin(), ViewLayout::range::<T>(self.len(), range)?))
    }

    /// Returns the elements of `range`, for a kernel to write.
    ///
    /// # Errors
    /// If the range does not lie in the buffer.
    pub fn range_mut(&mut self, range: Range<usize>) -> Result<BufferViewMut<'_, T, 1>> {
        let layout = ViewLayout::range::<T>(self.len(), range)?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// Splits the elements at index `at` into two views, for two arguments of one launch or of two
    /// launches.
    ///
    /// # Errors
    /// If `at` exceeds the length.
    pub fn split_at_mut(&mut self, at: usize) -> Result<(BufferViewMut<'_, T, 1>, BufferViewMut<'_, T, 1>)> {
        let len = self.len();
        self.range_mut(0..len)?.split_at(at)
    }

    /// Returns all bytes as elements of another type.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the size of `U`.
    pub fn cast<U: Element>(&self) -> Result<BufferView<'_, U, 1>> {
        self.range(0..self.len())?.cast()
    }

    /// Returns all bytes as elements of another type, for a kernel to write.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the size of `U`.
    pub fn cast_mut<U: Element>(&mut self) -> Result<BufferViewMut<'_, U, 1>> {
        let len = self.len();
        self.range_mut(0..len)?.cast()
    }

    /// Returns the elements in host memory without a copy, on the CPU. Returns `None` on a GPU.
    pub fn as_slice(&self) -> Option<&[T]> {
        match self.device().is_cpu() {
            false => None,
            true if self.is_empty() => Some(&[]),
            // SAFETY: the memory is the host's, owned, of this length, aligned to 256 and
            // initialized, and every bit pattern is an `Element`. A writer needs it exclusively,
            // and on the CPU all submitted work is complete.
            true => Some(unsafe { std::slice::from_raw_parts(host(self.address()).cast_const().cast(), self.len()) }),
        }
    }

    /// Returns the elements for writing as [`as_slice`](DeviceBuffer::as_slice) does.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        match self.device().is_cpu() {
            false => None,
            true if self.is_empty() => Some(&mut []),
            true => {
                // Writes through the slice are not tracked.
                HOST.stored(self.address(), self.bytes());
                // SAFETY: as above; `self` is exclusive.
                Some(unsafe { std::slice::from_raw_parts_mut(host(self.address()).cast(), self.len()) })
            }
        }
    }

    fn origin(&self) -> ViewOrigin<'_> {
        ViewOrigin { device: self.device().id(), address: self.address(), tracker: AccessTracker::Whole(self.uses()) }
    }

    pub(crate) fn address(&self) -> u64 {
        self.raw.address()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.raw.bytes()
    }

    pub(crate) fn uses(&self) -> &HazardTracker {
        self.raw.uses()
    }

    fn memory(&self, mutable: bool) -> launcher::ArgumentMemory<'_> {
        let shape = ArgumentShape::Slice(self.len() as u64);
        // SAFETY: the buffer owns that many elements and is borrowed for the argument's lifetime,
        // exclusively if `mutable`, as the callers ensure. On the CPU they are initialized. The
        // tracker is the buffer's own.
        unsafe {
            launcher::ArgumentMemory::new(T::TYPE, self.device().id(), self.address(), shape, mutable)
                .owned_by(self.uses())
        }
    }
}

impl<T: Element> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer<{}>({} elements on {})", T::TYPE, self.len(), self.device())
    }
}

impl<'a, T: Element> SliceArgument<'a, T> for &'a DeviceBuffer<T> {
    fn argument(self) -> Argument<'a> {
        Argument::Memory(self.memory(false))
    }
}

impl<'a, T: Element> SliceMutArgument<'a, T> for &'a mut DeviceBuffer<T> {
    fn argument(self) -> Argument<'a> {
        Argument::Memory(self.memory(true))
    }
}
