//! Memory, and the windows of the generic address space that it is seen through.
//!
//! ```text
//! (n + ½) · 2^37, n from 1   variable n − 1 of the module, then the launch's buffers; at the host's address modulo 256
//! LOCAL, SHARED, PARAM       2^32 bytes each: the thread's, the block's and the launch's own
//! ```
//!
//! On memory that outlives the launch ([`resident`](super::resident)) buffers lie where its owner has put them, below LOCAL.
//!
//! Whatever a kernel computes from a buffer's address, before it or behind it, stays nearer to it than to another one, so
//! that the address itself says which buffer it is from. Addresses in shared and local memory by themselves count from 0.

use super::check::Check;
use super::code::{Layout, Window};
use super::touched::Touched;
use crate::interpreter::Bytes;

/// log₂ of the distance between buffers.
const APART: u32 = 37;

/// Bits of the host's address that are kept, for alignment.
const ALIGNMENT: u64 = 0xff;

/// log₂ of the size of the small windows.
const WINDOW: u32 = 32;

const LOCAL: u64 = 1 << 48;
const SHARED: u64 = LOCAL + (1 << WINDOW);
const PARAM: u64 = SHARED + (1 << WINDOW);

/// Where a small window begins in the generic address space; 0 for the others, which are the same there.
pub const fn window_base(window: Window) -> u64 {
    match window {
        Window::Local => LOCAL,
        Window::Shared => SHARED,
        Window::Param => PARAM,
        Window::Generic | Window::Global | Window::Const => 0,
    }
}

/// The window that a generic address lies in.
pub const fn window_of(address: u64) -> Window {
    match address.wrapping_sub(LOCAL) >> WINDOW {
        0 => Window::Local,
        1 => Window::Shared,
        2 => Window::Param,
        _ => Window::Global,
    }
}

/// The address of function `index` of the module: of no memory.
pub const fn function_address(index: usize) -> u64 {
    (1 << 50) + 16 * index as u64
}

/// A buffer of the launch or a variable of the module.
#[derive(Debug)]
pub struct Buffer<'m> {
    /// Its name; without one, it is called by its address.
    pub name: String,
    /// Where it begins.
    pub base: u64,
    /// Whether the kernel may write.
    pub mutable: bool,
    /// Whether it is a variable in constant memory.
    pub constant: bool,
    /// What it holds.
    pub bytes: Bytes<'m>,
    /// Whether something in it comes of an approximation.
    pub approximate: bool,
    /// What was touched of it, where that is kept.
    pub touched: Option<Box<Touched>>,
}

impl<'m> Buffer<'m> {
    /// Number `index` of them.
    pub fn new(index: usize, name: String, mutable: bool, constant: bool, bytes: Bytes<'m>) -> Buffer<'m> {
        let base = base(index) | bytes.get().as_ptr() as u64 & ALIGNMENT;
        Buffer { name, base, mutable, constant, bytes, approximate: false, touched: None }
    }

    /// Its bytes, if a launch may write them.
    pub fn copied(&self) -> Option<&[u8]> {
        (self.mutable && matches!(self.bytes, Bytes::Exclusive(_))).then(|| self.bytes.get())
    }

    /// The same, to write.
    pub fn written(&mut self) -> Option<&mut [u8]> {
        match &mut self.bytes {
            Bytes::Exclusive(bytes) if self.mutable => Some(bytes),
            _ => None,
        }
    }

    /// The same memory as it looks to the kernel, with `copy` for its bytes where there is one; what is touched of that is kept.
    pub fn over<'c>(&'c self, copy: &'c mut Option<Vec<u8>>) -> Buffer<'c> {
        let Buffer { base, mutable, constant, approximate, .. } = *self;
        let touched = copy.as_ref().map(|copy| Box::new(Touched::new(copy.len())));
        let bytes = match copy {
            Some(copy) => Bytes::Exclusive(copy),
            None => Bytes::Shared(self.bytes.get()),
        };
        Buffer { name: self.name.clone(), base, mutable, constant, bytes, approximate, touched }
    }
}

/// The middle of the part of the address space that is buffer `index`'s.
pub const fn base(index: usize) -> u64 {
    ((index as u64 + 1) << APART) + (1 << (APART - 1))
}

/// The buffer whose part of the address space `address` lies in, whether there is such a buffer or not.
const fn index_of(address: u64) -> usize {
    (address >> APART).wrapping_sub(1) as usize
}

/// How the buffer of an address is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// Buffer `n` lies at [`base`]`(n)`.
    Number,
    /// The nearest that does not begin behind it, by ascending bases.
    Search,
}

impl Lookup {
    /// The buffer whose part of the address space `address` lies in, whether there is such a buffer or not.
    #[inline(always)]
    pub fn index(self, buffers: &[Buffer<'_>], address: u64) -> usize {
        match self {
            Lookup::Number => index_of(address),
            Lookup::Search => buffers.partition_point(|buffer| buffer.base <= address).wrapping_sub(1),
        }
    }
}

/// Buffers that there is room for.
pub const MOST_BUFFERS: usize = (LOCAL >> APART) as usize - 2;

/// Memory that a block or a warp's threads keep for themselves, and which of its bytes have been stored to.
#[derive(Debug)]
pub struct Scratch {
    /// Contents.
    pub bytes: Vec<u8>,
    /// 1 for a byte that has been stored to.
    pub written: Vec<u8>,
    /// Whether something in it comes of an approximation.
    pub approximate: bool,
    /// Of each four bytes, where something does. Empty where nothing ever did.
    marks: Vec<bool>,
}

impl Scratch {
    /// That many bytes, nothing stored.
    pub fn new(bytes: usize) -> Scratch {
        Scratch { bytes: vec![0; bytes], written: vec![0; bytes], approximate: false, marks: Vec::new() }
    }

    /// Nothing has been stored any more.
    pub fn forget(&mut self) {
        self.written.fill(0);
        self.approximate = false;
        self.marks.fill(false);
    }

    /// What was stored to `bytes` bytes from `at` on comes of an approximation, or does not.
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

    /// Whether something of `bytes` bytes from `at` on comes of an approximation.
    pub fn is_approximate(&self, at: usize, bytes: usize) -> bool {
        self.approximate && self.marks.get(at / 4..(at + bytes).div_ceil(4)).is_some_and(|marks| marks.contains(&true))
    }
}

/// What a warp sees.
pub struct View<'a, 'm> {
    /// By their addresses.
    pub buffers: &'a mut [Buffer<'m>],
    /// How they are found.
    pub lookup: Lookup,
    /// The block's.
    pub shared: &'a mut Scratch,
    /// Of the warp's threads, one after the other.
    pub local: &'a mut Scratch,
    /// The launch's.
    pub parameters: &'a [u8],
    /// Bytes of a thread in `local`.
    pub local_bytes: u32,
}

/// Something that addresses lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// That one of the buffers.
    Buffer(usize),
    /// The block's shared memory.
    Shared,
    /// A thread's local memory.
    Local,
    /// The kernel's parameters.
    Param,
}

/// Where the addresses of a region count from, and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Which.
    pub region: Region,
    /// Its first address.
    pub base: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl View<'_, '_> {
    /// The region that `address` is from; `None` if it is from none.
    pub fn region(&self, window: Window, address: u64) -> Result<Extent, Check> {
        let extent = |region, base, bytes: usize| Ok(Extent { region, base, bytes: bytes as u64 });
        let generic = window == Window::Generic;
        let base = if generic { window_base(window_of(address)) } else { 0 };
        let window = if generic { window_of(address) } else { window };
        match window {
            Window::Shared => extent(Region::Shared, base, self.shared.bytes.len()),
            Window::Local => extent(Region::Local, base, self.local_bytes as usize),
            Window::Param => extent(Region::Param, base, self.parameters.len()),
            Window::Global | Window::Const | Window::Generic => {
                if window_of(address) != Window::Global {
                    return Err(Check::WrongSpace);
                }
                let index = self.lookup.index(self.buffers, address);
                let Some(buffer) = self.buffers.get(index) else { return Err(Check::OutOfBounds) };
                if !generic && buffer.constant != (window == Window::Const) {
                    return Err(Check::WrongSpace);
                }
                extent(Region::Buffer(index), buffer.base, buffer.bytes.get().len())
            }
        }
    }

    /// The bytes of a region, for a lane, from its first address.
    #[inline(always)]
    pub fn bytes(&self, region: Region, lane: usize) -> &[u8] {
        match region {
            Region::Buffer(i) => self.buffers[i].bytes.get(),
            Region::Shared => &self.shared.bytes,
            Region::Local => &self.local.bytes[lane * self.local_bytes as usize..][..self.local_bytes as usize],
            Region::Param => self.parameters,
        }
    }

    /// The same, to write; nothing where that is not allowed.
    #[inline(always)]
    pub fn bytes_mut(&mut self, region: Region, lane: usize) -> &mut [u8] {
        match region {
            Region::Buffer(i) => match &mut self.buffers[i] {
                Buffer { mutable: true, bytes: Bytes::Exclusive(bytes), .. } => bytes,
                _ => &mut [],
            },
            Region::Shared => &mut self.shared.bytes,
            Region::Local => &mut self.local.bytes[lane * self.local_bytes as usize..][..self.local_bytes as usize],
            Region::Param => &mut [],
        }
    }

    /// Whether the region may be written.
    pub fn writable(&self, region: Region) -> bool {
        match region {
            Region::Buffer(i) => {
                let buffer = &self.buffers[i];
                buffer.mutable && matches!(buffer.bytes, Bytes::Exclusive(_))
            }
            Region::Shared | Region::Local => true,
            Region::Param => false,
        }
    }

    /// Which bytes of a lane's region have been stored to, where that is kept.
    #[inline(always)]
    pub fn written(&mut self, region: Region, lane: usize) -> Option<&mut [u8]> {
        match region {
            Region::Shared => Some(&mut self.shared.written),
            Region::Local => {
                Some(&mut self.local.written[lane * self.local_bytes as usize..][..self.local_bytes as usize])
            }
            Region::Buffer(_) | Region::Param => None,
        }
    }

    /// Whether something in the region comes of an approximation; `None` where nothing can.
    pub fn approximate(&mut self, region: Region) -> Option<&mut bool> {
        match region {
            Region::Buffer(i) => Some(&mut self.buffers[i].approximate),
            Region::Shared => Some(&mut self.shared.approximate),
            Region::Local => Some(&mut self.local.approximate),
            Region::Param => None,
        }
    }

    /// A place in words: the buffer or variable, and how the access lies to it.
    pub fn describe(&self, window: Window, address: u64, bytes: u64, shared: &Layout, local: &Layout) -> String {
        let Ok(Extent { region, base, bytes: length }) = self.region(window, address) else {
            return format!("{address:#x}, an address of no buffer");
        };
        let (name, start, length) = match region {
            Region::Buffer(i) if self.buffers[i].name.is_empty() => (format!("{base:#x}"), 0, length),
            Region::Buffer(i) => (self.buffers[i].name.clone(), 0, length),
            Region::Param => ("the parameters".to_string(), 0, length),
            Region::Shared | Region::Local => {
                let layout = if region == Region::Shared { shared } else { local };
                match layout.nearest(address.wrapping_sub(base)) {
                    Some(v) => (v.name.clone(), u64::from(v.offset), u64::from(v.bytes)),
                    None => (format!("{} memory, of which there is none", window.name()), 0, 0),
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

/// The `N` bytes at `at` as a number, the lowest first.
#[inline(always)]
pub fn read<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(from) = bytes.get(at..at + N) {
        word[..N].copy_from_slice(from);
    }
    u64::from_le_bytes(word)
}

/// The low `N` bytes of `value` to `at`.
#[inline(always)]
pub fn write<const N: usize>(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(to) = bytes.get_mut(at..at + N) {
        to.copy_from_slice(&value.to_le_bytes()[..N]);
    }
}

/// `N` as a constant of one of the sizes of an element.
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
