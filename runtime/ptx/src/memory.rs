//! Memory, and the windows of the generic address space.
//!
//! ```text
//! (n + ½) · 2^37, n from 1   variable n − 1 of the module, then the launch's buffers; at the host's address modulo 256
//! LOCAL, SHARED, PARAM       2^32 bytes each: the thread's, the block's and the launch's own
//! ```
//!
//! For memory that outlives the launch ([`resident`](super::resident)), the owner of the memory
//! chooses the addresses of the buffers, below LOCAL.
//!
//! Each buffer has a large part of the address space for itself. An address that a kernel computes
//! from a buffer, even one outside the buffer, stays within this part. So each address identifies
//! its buffer. Addresses in the shared and local windows count from 0.

use super::Check;
use super::code::{SpaceLayout, Window};
use super::initialized::InitializedBytes;
use super::touched::TouchedWords;
use runtime_simt::ArgumentBytes;

/// log₂ of the distance between buffers.
const BUFFER_DISTANCE_BITS: u32 = 37;

/// The low bits of the host's address that a buffer's base keeps, for alignment.
const ALIGNMENT: u64 = 0xff;

/// log₂ of the size of the small windows.
const WINDOW: u32 = 32;

const LOCAL: u64 = 1 << 48;
const SHARED: u64 = LOCAL + (1 << WINDOW);
const PARAM: u64 = SHARED + (1 << WINDOW);

/// Returns the start of a small window in the generic address space. Returns 0 for the other
/// windows, whose addresses are generic already.
pub const fn window_base(window: Window) -> u64 {
    match window {
        Window::Local => LOCAL,
        Window::Shared => SHARED,
        Window::Param => PARAM,
        Window::Generic | Window::Global | Window::Const => 0,
    }
}

/// Returns the window that contains a generic address.
pub const fn window_of(address: u64) -> Window {
    match address.wrapping_sub(LOCAL) >> WINDOW {
        0 => Window::Local,
        1 => Window::Shared,
        2 => Window::Param,
        _ => Window::Global,
    }
}

/// Returns the address of function `index` of the module. No memory lies there.
pub const fn function_address(index: usize) -> u64 {
    (1 << 50) + 16 * index as u64
}

/// A buffer of the launch or a variable of the module.
#[derive(Debug)]
pub struct Buffer<'m> {
    /// The name. A buffer without a name is reported by its address.
    pub name: String,
    /// The address of the first byte.
    pub base: u64,
    /// Whether the kernel may write to the buffer.
    pub mutable: bool,
    /// Whether the buffer is a variable in constant memory.
    pub constant: bool,
    /// The contents.
    pub bytes: ArgumentBytes<'m>,
    /// Whether any of the contents depend on an approximation.
    pub approximate: bool,
    /// The words that were loaded and stored, if they are tracked.
    pub touched: Option<Box<TouchedWords>>,
    /// The bytes that were written, if they are tracked.
    pub initialized: Option<&'m mut InitializedBytes>,
    /// Whether the host may access the contents during the launch.
    pub of_host: bool,
}

impl<'m> Buffer<'m> {
    /// Creates buffer number `index`, which is not in constant memory.
    pub fn new(index: usize, name: String, mutable: bool, bytes: ArgumentBytes<'m>) -> Buffer<'m> {
        let base = base(index) | bytes.get().as_ptr() as u64 & ALIGNMENT;
        let (approximate, of_host) = (false, false);
        Buffer { name, base, mutable, constant: false, bytes, approximate, touched: None, initialized: None, of_host }
    }

    /// Returns the contents, if the launch may write them and threads therefore need copies.
    pub fn copied(&self) -> Option<&[u8]> {
        (self.mutable && matches!(self.bytes, ArgumentBytes::Exclusive(_))).then(|| self.bytes.get())
    }

    /// Returns the bytes for writing, if a launch may write them.
    pub fn written(&mut self) -> Option<&mut [u8]> {
        match &mut self.bytes {
            ArgumentBytes::Exclusive(bytes) if self.mutable => Some(bytes),
            _ => None,
        }
    }

    /// Returns a view of the same buffer, at the same address, on `copy` if there is one. Accesses
    /// to the copy are tracked.
    pub fn over<'c>(&'c self, copy: &'c mut Option<Vec<u8>>) -> Buffer<'c> {
        let Buffer { base, mutable, constant, approximate, of_host, .. } = *self;
        let touched = copy.as_ref().map(|copy| Box::new(TouchedWords::new(copy.len())));
        let bytes = match copy {
            Some(copy) => ArgumentBytes::Exclusive(copy),
            None => ArgumentBytes::Shared(self.bytes.get()),
        };
        let name = self.name.clone();
        Buffer { name, base, mutable, constant, bytes, approximate, touched, initialized: None, of_host }
    }
}

/// Returns the base address of buffer `index`: the middle of its part of the address space.
pub const fn base(index: usize) -> u64 {
    ((index as u64 + 1) << BUFFER_DISTANCE_BITS) + (1 << (BUFFER_DISTANCE_BITS - 1))
}

/// Returns the index of the buffer whose part of the address space contains `address`. The buffer
/// need not exist.
const fn index_of(address: u64) -> usize {
    (address >> BUFFER_DISTANCE_BITS).wrapping_sub(1) as usize
}

/// The way in which a launch finds the buffer of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// Buffer `n` lies at [`base`]`(n)`.
    Number,
    /// The last buffer that begins at or before the address; buffers are sorted by base.
    Search,
}

impl Lookup {
    /// Returns the index of the buffer to which `address` belongs. The buffer need not exist.
    #[inline(always)]
    pub fn index(self, buffers: &[Buffer<'_>], address: u64) -> usize {
        match self {
            Lookup::Number => index_of(address),
            Lookup::Search => buffers.partition_point(|buffer| buffer.base <= address).wrapping_sub(1),
        }
    }
}

/// The largest number of buffers.
pub const MAX_BUFFERS: usize = (LOCAL >> BUFFER_DISTANCE_BITS) as usize - 2;

/// Memory of a block or of a warp's threads, with the bytes that were stored.
#[derive(Debug)]
pub struct ScratchMemory {
    /// The contents.
    pub bytes: Vec<u8>,
    /// For each byte, 1 if it was stored.
    pub written: Vec<u8>,
    /// Whether any of the contents depend on an approximation.
    pub approximate: bool,
    /// For each four bytes, whether the contents depend on an approximation. Empty if no contents
    /// ever did.
    marks: Vec<bool>,
}

impl ScratchMemory {
    /// Creates memory of `bytes` bytes, all uninitialized.
    pub fn new(bytes: usize) -> ScratchMemory {
        ScratchMemory { bytes: vec![0; bytes], written: vec![0; bytes], approximate: false, marks: Vec::new() }
    }

    /// Marks all bytes as uninitialized.
    pub fn forget(&mut self) {
        self.written.fill(0);
        self.approximate = false;
        self.marks.fill(false);
    }

    /// Records whether `bytes` bytes from `at` depend on an approximation.
    pub fn mark(&mut self, at: usize, bytes: usize, approximate: bool) {
        if !approximate && !self.approximate {
            return;
        }
        self.approximate = true;
        self.marks.resize(self.bytes.len().div_ceil(4), false);
        if let Some(marks) = self.marks.get_mut(at / 4..(at + bytes).div_ceil(4)) {
            marks.fill(approximate);
        }
    }

    /// Returns whether any of `bytes` bytes from `at` depends on an approximation.
    pub fn is_approximate(&self, at: usize, bytes: usize) -> bool {
        self.approximate && self.marks.get(at / 4..(at + bytes).div_ceil(4)).is_some_and(|marks| marks.contains(&true))
    }
}

/// The memory that a warp sees.
pub struct WarpMemory<'a, 'm> {
    /// The buffers, sorted by address.
    pub buffers: &'a mut [Buffer<'m>],
    /// The way to find the buffer of an address.
    pub lookup: Lookup,
    /// The shared memory of the block.
    pub shared: &'a mut ScratchMemory,
    /// The local memory of the warp's threads, one after the other.
    pub local: &'a mut ScratchMemory,
    /// The parameters of the launch.
    pub parameters: &'a [u8],
    /// The bytes of local memory of each thread.
    pub local_bytes: u32,
}

/// A region of memory to which addresses belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryRegion {
    /// The buffer with this index.
    Buffer(usize),
    /// The block's shared memory.
    Shared,
    /// A thread's local memory.
    Local,
    /// The kernel's parameters.
    Param,
}

/// A region with its first address and size.
#[derive(Clone, Copy, Debug)]
pub struct RegionExtent {
    /// The region.
    pub region: MemoryRegion,
    /// The first address.
    pub base: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl WarpMemory<'_, '_> {
    /// Returns the region of `address`; an error if there is none.
    pub fn region(&self, window: Window, address: u64) -> Result<RegionExtent, Check> {
        let extent = |region, base, bytes: usize| Ok(RegionExtent { region, base, bytes: bytes as u64 });
        let generic = window == Window::Generic;
        let base = if generic { window_base(window_of(address)) } else { 0 };
        let window = if generic { window_of(address) } else { window };
        match window {
            Window::Shared => extent(MemoryRegion::Shared, base, self.shared.bytes.len()),
            Window::Local => extent(MemoryRegion::Local, base, self.local_bytes as usize),
            Window::Param => extent(MemoryRegion::Param, base, self.parameters.len()),
            Window::Global | Window::Const | Window::Generic => {
                if window_of(address) != Window::Global {
                    return Err(Check::WrongSpace);
                }
                let index = self.lookup.index(self.buffers, address);
                let Some(buffer) = self.buffers.get(index) else { return Err(Check::OutOfBounds) };
                if !generic && buffer.constant != (window == Window::Const) {
                    return Err(Check::WrongSpace);
                }
                extent(MemoryRegion::Buffer(index), buffer.base, buffer.bytes.get().len())
            }
        }
    }

    /// Returns the bytes of a lane's region, from its first address.
    #[inline(always)]
    pub fn bytes(&self, region: MemoryRegion, lane: usize) -> &[u8] {
        match region {
            MemoryRegion::Buffer(i) => self.buffers[i].bytes.get(),
            MemoryRegion::Shared => &self.shared.bytes,
            MemoryRegion::Local => &self.local.bytes[lane * self.local_bytes as usize..][..self.local_bytes as usize],
            MemoryRegion::Param => self.parameters,
        }
    }

    /// Returns the bytes of a lane's region for writing; empty if the region is read-only.
    #[inline(always)]
    pub fn bytes_mut(&mut self, region: MemoryRegion, lane: usize) -> &mut [u8] {
        match region {
            MemoryRegion::Buffer(i) => match &mut self.buffers[i] {
                Buffer { mutable: true, bytes: ArgumentBytes::Exclusive(bytes), .. } => bytes,
                _ => &mut [],
            },
            MemoryRegion::Shared => &mut self.shared.bytes,
            MemoryRegion::Local => {
                &mut self.local.bytes[lane * self.local_bytes as usize..][..self.local_bytes as usize]
            }
            MemoryRegion::Param => &mut [],
        }
    }

    /// Returns whether the region may be written.
    pub fn writable(&self, region: MemoryRegion) -> bool {
        match region {
            MemoryRegion::Buffer(i) => {
                let buffer = &self.buffers[i];
                buffer.mutable && matches!(buffer.bytes, ArgumentBytes::Exclusive(_))
            }
            MemoryRegion::Shared | MemoryRegion::Local => true,
            MemoryRegion::Param => false,
        }
    }

    /// Returns which bytes of a lane's region were stored, if they are tracked.
    #[inline(always)]
    pub fn written(&mut self, region: MemoryRegion, lane: usize) -> Option<&mut [u8]> {
        match region {
            MemoryRegion::Shared => Some(&mut self.shared.written),
            MemoryRegion::Local => {
                Some(&mut self.local.written[lane * self.local_bytes as usize..][..self.local_bytes as usize])
            }
            MemoryRegion::Buffer(_) | MemoryRegion::Param => None,
        }
    }

    /// Returns the flag of whether contents of the region depend on an approximation; `None` if
    /// they never can.
    pub fn approximate(&mut self, region: MemoryRegion) -> Option<&mut bool> {
        match region {
            MemoryRegion::Buffer(i) => Some(&mut self.buffers[i].approximate),
            MemoryRegion::Shared => Some(&mut self.shared.approximate),
            MemoryRegion::Local => Some(&mut self.local.approximate),
            MemoryRegion::Param => None,
        }
    }

    /// Describes an address for a report: the buffer or variable, and the offset in it.
    pub fn describe(
        &self,
        window: Window,
        address: u64,
        bytes: u64,
        shared: &SpaceLayout,
        local: &SpaceLayout,
    ) -> String {
        let Ok(RegionExtent { region, base, bytes: length }) = self.region(window, address) else {
            return format!("{address:#x}, which is in no buffer");
        };
        let (name, start, length) = match region {
            MemoryRegion::Buffer(i) if self.buffers[i].name.is_empty() => (format!("{base:#x}"), 0, length),
            MemoryRegion::Buffer(i) => (self.buffers[i].name.clone(), 0, length),
            MemoryRegion::Param => ("the parameters".to_string(), 0, length),
            MemoryRegion::Shared | MemoryRegion::Local => {
                let layout = if region == MemoryRegion::Shared { shared } else { local };
                let offset = address.wrapping_sub(base);
                let open = layout.open.as_ref().filter(|(_, start)| offset >= u64::from(*start));
                match (open, layout.nearest(offset)) {
                    (Some((name, start)), _) => {
                        (name.clone(), u64::from(*start), length.saturating_sub(u64::from(*start)))
                    }
                    (None, Some(v)) => (v.name.clone(), u64::from(v.offset), u64::from(v.bytes)),
                    (None, None) => (format!("{} memory, which is empty", window.name()), 0, 0),
                }
            }
        };
        let offset = address.wrapping_sub(base).wrapping_sub(start) as i64;
        let place = match offset {
            ..0 => format!("{} bytes before `{name}`", offset.unsigned_abs()),
            _ if offset as u64 >= length => format!("{} bytes past the end of `{name}`", offset as u64 - length),
            _ if offset as u64 + bytes > length => format!("byte {offset} of `{name}`, beyond its end"),
            _ => format!("byte {offset} of `{name}`"),
        };
        format!("{place} ({length} bytes)")
    }
}

/// Returns the `N` bytes at `at` as a little-endian number.
#[inline(always)]
pub fn read<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(from) = bytes.get(at..at + N) {
        word[..N].copy_from_slice(from);
    }
    u64::from_le_bytes(word)
}

/// Writes the low `N` bytes of `value` to `at`, in little-endian order.
#[inline(always)]
pub fn write<const N: usize>(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(to) = bytes.get_mut(at..at + N) {
        to.copy_from_slice(&value.to_le_bytes()[..N]);
    }
}

/// Evaluates the body with `N` as a constant: the size of an element in bytes.
macro_rules! sized {
    ($bytes:expr, $n:ident => $body:expr) => {
        match $bytes {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            4 => {
                const $n: usize = 4;
                $body
            }
            _ => {
                const $n: usize = 8;
                $body
            }
        }
    };
}
pub(super) use sized;
