//! Memory of a device.

use crate::device::{Backend, Memory};
use crate::hazard::{Access, AccessSet, HazardTracker};
use crate::pool::Allocation;
use crate::uninit::HOST;
use crate::view::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut, Keeper, Layout, Origin};
use crate::{Device, Error, Result};
use kernel_dsl::launcher::{self, Shape, SliceArgument, SliceMutArgument};
use kernel_dsl::{Argument, Element};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Memory of a device, given back when dropped, and who still uses it.
///
/// It is `Send` and `Sync`: it owns its bytes, `&` only reads them, devices may be used from any thread, and what is still under way
/// with it is noted.
#[derive(Debug)]
pub(crate) struct RawBuffer {
    device: Device,
    memory: Memory,
    /// There until it is dropped.
    piece: Option<Allocation>,
    bytes: usize,
    uses: HazardTracker,
}

impl RawBuffer {
    /// `bytes` bytes that are still to be written. On the CPU they are initialised.
    pub fn new(device: &Device, memory: Memory, bytes: usize) -> Result<RawBuffer> {
        let (piece, pending) = device.backend().take(memory, bytes)?;
        let (device, uses) = (device.clone(), HazardTracker::inherited(pending));
        Ok(RawBuffer { device, memory, piece: Some(piece), bytes, uses })
    }

    pub fn address(&self) -> u64 {
        self.piece.as_ref().map_or(0, |piece| piece.address)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    pub fn uses(&self) -> &HazardTracker {
        &self.uses
    }

    /// All that was noted of it has been waited for.
    pub fn forget_uses(&mut self) {
        self.uses = HazardTracker::default();
    }

    /// Has all bytes set, in the device's own queue: whoever uses them comes after it.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let queue = self.device.backend().queue();
        // SAFETY: the memory is ours alone, and its uses are noted.
        unsafe { queue.fill(&AccessSet::written(&self.uses), self.address(), self.bytes, value) }
    }

    /// Overwrites all bytes; `from` has as many.
    pub fn write(&mut self, from: &[u8]) -> Result<()> {
        assert_eq!(from.len(), self.bytes, "callers compare lengths");
        let backend = self.device.backend();
        let queue = backend.queue();
        let directly = || {
            // SAFETY: the memory is ours alone, and as long as `from`, which is borrowed until the copy is over: no limit ends the wait, and
            // where it fails the device is lost, and with it the copy.
            unsafe { queue.write(&AccessSet::written(&self.uses), self.address(), from.as_ptr(), from.len())? };
            queue.wait()
        };
        if let Some(written) = backend.unlimited(directly) {
            return written;
        }
        let staged = RawBuffer::new(&self.device, Memory::Pinned, self.bytes)?;
        backend.wait_for(&staged.uses.before_write())?;
        let start = ptr::with_exposed_provenance_mut::<u8>(staged.address() as usize);
        let used = AccessSet::written(&self.uses).and(Access::Read(&staged.uses));
        // SAFETY: the staged memory is ours alone, as long, and of the host; its use is noted for whoever has it next. Should the
        // wait be given up, the device is lost, and its pool hands out nothing any more.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), start, self.bytes);
            queue.write(&used, self.address(), start, self.bytes)?;
        }
        queue.wait()
    }

    /// Reads all bytes; `to` has as many.
    pub fn read(&self, to: &mut [u8]) -> Result<()> {
        assert_eq!(to.len(), self.bytes, "callers compare lengths");
        let backend = self.device.backend();
        let queue = backend.queue();
        let directly = || {
            // SAFETY: the memory is as long as `to`, which is borrowed until the copy is over, as above; a writer would need the memory
            // exclusively.
            unsafe { queue.read(&AccessSet::read(&self.uses), self.address(), to.as_mut_ptr(), to.len())? };
            queue.wait()
        };
        if let Some(read) = backend.unlimited(directly) {
            return read;
        }
        let staged = RawBuffer::new(&self.device, Memory::Pinned, self.bytes)?;
        let start = ptr::with_exposed_provenance_mut::<u8>(staged.address() as usize);
        let used = AccessSet::read(&self.uses).and(Access::Write(&staged.uses));
        // SAFETY: as in `write`; the copy is over when it is looked at.
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
        if let Some(piece) = self.piece.take() {
            self.device.backend().give(self.memory, (piece, self.bytes), self.uses.before_write());
        }
    }
}

/// `len` elements in the memory of a device, freed when dropped.
///
/// A kernel takes `&buffer` for `&[T]`, `&mut buffer` for `&mut [T]`, and a [`view`](DeviceBuffer::view) for a `View`.
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
    /// A buffer that holds a copy of `data`.
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, data.len())?;
        buffer.copy_from(data)?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, len)?;
        buffer.raw.fill(0)?;
        Ok(buffer)
    }

    /// A buffer of `len` elements that are still to be written. On a GPU they are what the memory held before. On the CPU
    /// each byte is 0xFF, which makes NaNs of floats, and it is kept which of them are written, by copies and launches: one whose kernel
    /// loads another is [told so](crate::interpreter::Check::UninitialisedBuffer). Who takes them all to write, by
    /// [`as_mut_slice`](DeviceBuffer::as_mut_slice) or their address, counts as having written them.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::new(self, len)?;
        if let Backend::Cpu(_) = self.backend() {
            buffer.raw.fill(0xff)?;
            HOST.made(buffer.raw.address(), buffer.raw.bytes());
        }
        Ok(buffer)
    }
}

/// Bytes of `len` elements.
pub(crate) fn bytes_of<T: Element>(device: &Device, len: usize) -> Result<usize> {
    const { assert!(size_of::<T>() == T::TYPE.bytes() as usize, "an element is as wide on the host as on the device") };
    len.checked_mul(size_of::<T>()).ok_or_else(|| Error::OutOfMemory {
        requested: usize::MAX,
        device: device.to_string(),
        free: None,
        pool: None,
    })
}

/// Memory of the host at an address that was made of a pointer.
fn host(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl<T: Element> DeviceBuffer<T> {
    fn new(device: &Device, len: usize) -> Result<DeviceBuffer<T>> {
        let raw = RawBuffer::new(device, Memory::Device, bytes_of::<T>(device, len)?)?;
        Ok(DeviceBuffer { raw, element: PhantomData })
    }

    /// Its memory.
    pub(crate) fn raw(&self) -> &RawBuffer {
        &self.raw
    }

    /// The buffer whose memory `raw` is.
    ///
    /// # Safety
    /// It was that of a `DeviceBuffer<T>`.
    pub(crate) unsafe fn of_raw(raw: &RawBuffer) -> &DeviceBuffer<T> {
        // SAFETY: a `DeviceBuffer<T>` is its memory and nothing else; by the caller's promise it is of such.
        unsafe { &*ptr::from_ref(raw).cast() }
    }

    /// The same, exclusively.
    ///
    /// # Safety
    /// As for `of_raw`.
    pub(crate) unsafe fn of_raw_mut(raw: &mut RawBuffer) -> &mut DeviceBuffer<T> {
        // SAFETY: as above. Whatever is put there is a `DeviceBuffer<T>` too.
        unsafe { &mut *ptr::from_mut(raw).cast() }
    }

    /// Its memory, with whoever else owns it.
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

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.raw.bytes() / size_of::<T>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device whose memory it is.
    pub fn device(&self) -> &Device {
        self.raw.device()
    }

    /// Where its first element is in the device's memory, for whatever else speaks to the driver: kernels get it by themselves. What is done
    /// with it is not noted: it must come after what streams still do with the buffer, and before what they do next. 0 if there
    /// are no elements.
    pub fn device_address(&self) -> u64 {
        if self.device().is_cpu() {
            // Who writes by it is not seen.
            HOST.stored(self.address(), self.raw.bytes());
        }
        self.address()
    }

    /// A copy of all elements on the host: the counterpart of [`Device::upload`].
    pub fn download(&self) -> Result<Vec<T>> {
        let mut data = Vec::with_capacity(self.len());
        // SAFETY: zeros are values of `T`, of which every bit pattern is one; the capacity is there.
        unsafe {
            ptr::write_bytes(data.as_mut_ptr(), 0, self.len());
            data.set_len(self.len());
        }
        self.copy_to(&mut data)?;
        Ok(data)
    }

    /// Copies all elements to `data`, which has as many.
    pub fn copy_to(&self, data: &mut [T]) -> Result<()> {
        if data.len() != self.len() {
            return Err(Error::Length { direction: "from the device", buffer: self.len(), slice: data.len() });
        }
        // SAFETY: `Element`s are numbers without padding, of which every bit pattern is a value.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) };
        self.raw.read(bytes)
    }

    /// Overwrites all elements with those of `data`, which has as many.
    pub fn copy_from(&mut self, data: &[T]) -> Result<()> {
        if data.len() != self.len() {
            return Err(Error::Length { direction: "to the device", buffer: self.len(), slice: data.len() });
        }
        // SAFETY: `Element`s are numbers without padding.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) };
        self.raw.write(bytes)
    }

    /// All elements as an array of these extents, row-major; their product is the buffer's length. Rank 1 to 5.
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>> {
        Ok(BufferView::new(self.origin(), Layout::whole::<T>(self.len(), extents)?))
    }

    /// The same, for a kernel to write.
    pub fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> Result<BufferViewMut<'_, T, R>> {
        let layout = Layout::whole::<T>(self.len(), extents)?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// Elements Σ indexᵢ · strideᵢ as an array of these extents; the last stride is 1, and the buffer holds the last element.
    /// `view_strided([rows, columns], [pitch, 1])` is a matrix whose rows are `pitch` elements apart.
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>> {
        Ok(BufferView::new(self.origin(), Layout::strided::<T>(self.len(), extents, strides)?))
    }

    /// The same, for a kernel to write: no two indices may name one element.
    pub fn view_strided_mut<const R: usize>(
        &mut self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferViewMut<'_, T, R>> {
        let layout = Layout::strided::<T>(self.len(), extents, strides)?.distinct::<T>(self.len())?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// Elements `start` + Σ indexᵢ · strideᵢ as an array of these extents, for a kernel's `Strided<T, R>`; the buffer holds the
    /// last element. `strided(j, [rows], [columns])` is column j of a matrix, `strided(0, [columns, rows], [1, columns])` the
    /// matrix transposed.
    pub fn strided<const R: usize>(
        &self,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferStrided<'_, T, R>> {
        Ok(BufferStrided::new(self.origin(), Layout::any::<T>(self.len(), start, extents, strides)?))
    }

    /// The same, for a kernel to write: no two indices may name one element.
    pub fn strided_mut<const R: usize>(
        &mut self,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferStridedMut<'_, T, R>> {
        let layout = Layout::any::<T>(self.len(), start, extents, strides)?.distinct::<T>(self.len())?;
        Ok(BufferStridedMut::new(self.origin(), layout))
    }

    /// The elements of `range`, for a kernel's `&[T]` or `View<T, 1>`.
    pub fn range(&self, range: Range<usize>) -> Result<BufferView<'_, T, 1>> {
        Ok(BufferView::new(self.origin(), Layout::range::<T>(self.len(), range)?))
    }

    /// The same, for a kernel to write.
    pub fn range_mut(&mut self, range: Range<usize>) -> Result<BufferViewMut<'_, T, 1>> {
        let layout = Layout::range::<T>(self.len(), range)?;
        Ok(BufferViewMut::new(self.origin(), layout))
    }

    /// The elements below `at`, and the others, for two arguments of one launch or for two.
    pub fn split_at_mut(&mut self, at: usize) -> Result<(BufferViewMut<'_, T, 1>, BufferViewMut<'_, T, 1>)> {
        let len = self.len();
        self.range_mut(0..len)?.split_at(at)
    }

    /// All bytes as elements of another type: the buffer is as long as a multiple of its size.
    pub fn cast<U: Element>(&self) -> Result<BufferView<'_, U, 1>> {
        self.range(0..self.len())?.cast()
    }

    /// The same, for a kernel to write.
    pub fn cast_mut<U: Element>(&mut self) -> Result<BufferViewMut<'_, U, 1>> {
        let len = self.len();
        self.range_mut(0..len)?.cast()
    }

    /// The elements where they lie, without a copy: on the CPU, whose memory is the host's; `None` on a GPU.
    pub fn as_slice(&self) -> Option<&[T]> {
        match self.device().is_cpu() {
            false => None,
            true if self.is_empty() => Some(&[]),
            // SAFETY: the memory is the host's, ours, as long, aligned to 256, initialised, and every bit pattern is an `Element`; who writes it
            // needs it exclusively, and on the CPU all that was submitted is over.
            true => Some(unsafe { std::slice::from_raw_parts(host(self.address()).cast_const().cast(), self.len()) }),
        }
    }

    /// The same, to write.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        match self.device().is_cpu() {
            false => None,
            true if self.is_empty() => Some(&mut []),
            true => {
                // What is written there is not seen.
                HOST.stored(self.address(), self.bytes());
                // SAFETY: as above; `self` is exclusive.
                Some(unsafe { std::slice::from_raw_parts_mut(host(self.address()).cast(), self.len()) })
            }
        }
    }

    fn origin(&self) -> Origin<'_> {
        Origin { device: self.device().id(), address: self.address(), keeper: Keeper::Whole(self.uses()) }
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

    fn memory(&self, mutable: bool) -> launcher::Memory<'_> {
        let shape = Shape::Slice(self.len() as u64);
        // SAFETY: the buffer owns that many elements and is borrowed for as long as the argument lives, exclusively where `mutable`
        // (the callers see to it); on the CPU they are initialised. The uses are its own.
        unsafe {
            launcher::Memory::new(T::TYPE, self.device().id(), self.address(), shape, mutable).owned_by(self.uses())
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
