//! Arrays in memory, and the part of them that an access names.
//!
//! Memory consists of arrays of *elements*. An element is a scalar or an aggregate (a `repr(C)`
//! struct, a register array). An access reads or writes scalars: [`AccessPlace`] names the element
//! by its indices. In an aggregate, [`ElementOffset`] names the first of these scalars.

use super::{Formula, MAX_VECTOR_BYTES, SharedId, Value};
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::fmt;

/// The element type of an array in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryElement {
    /// A scalar.
    Scalar(Scalar),
    /// Several scalars, each at a multiple of its size from the element's first byte.
    Aggregate {
        /// Distance between adjacent elements in bytes; a multiple of `align`.
        bytes: u32,
        /// Alignment of an element: a power of two, at least the size of each scalar in it.
        align: u32,
    },
}

impl MemoryElement {
    /// Returns an aggregate of `bytes` bytes. The scalars in it are aligned to the largest power of
    /// two, up to [`MAX_VECTOR_BYTES`], that divides the size. Buffers and shared arrays have this
    /// alignment too, which the launch ensures.
    pub const fn aggregate(bytes: u32) -> MemoryElement {
        let widest = MAX_VECTOR_BYTES.trailing_zeros();
        let zeros = bytes.trailing_zeros();
        MemoryElement::Aggregate { bytes, align: 1 << if zeros < widest { zeros } else { widest } }
    }

    /// Returns the bytes from one element to the next.
    pub const fn bytes(self) -> u32 {
        match self {
            MemoryElement::Scalar(s) => s.bytes(),
            MemoryElement::Aggregate { bytes, .. } => bytes,
        }
    }

    /// Returns the alignment of an element.
    pub const fn align(self) -> u32 {
        match self {
            MemoryElement::Scalar(s) => s.bytes(),
            MemoryElement::Aggregate { align, .. } => align,
        }
    }
}

impl From<Scalar> for MemoryElement {
    fn from(s: Scalar) -> MemoryElement {
        MemoryElement::Scalar(s)
    }
}

impl fmt::Display for MemoryElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryElement::Scalar(s) => s.fmt(f),
            MemoryElement::Aggregate { bytes, .. } => write!(f, "{{{bytes} bytes}}"),
        }
    }
}

/// The first of the consecutive scalars in memory that an access reads or writes.
#[derive(Clone, PartialEq, Debug)]
pub enum AccessPlace {
    /// Element Σ indexᵢ · strideᵢ from `base` in global memory. Each index must be below its
    /// extent. For an access to `n` elements, the last index + n must not exceed the last extent. A
    /// place in a table has no dimensions: the table is one element.
    Global {
        /// Address of the first element of the slice or view, or of the table.
        base: Value,
        /// Dimensions, outermost first.
        dims: SmallVec<[Dim; 2]>,
        /// Part of the element, or part of a scalar that consists of several elements; `None` if
        /// elements are scalars of the access's type.
        within: Option<Box<ElementOffset>>,
    },
    /// An element as in `Global`, in shared memory whose size the launch evaluates.
    #[allow(missing_docs)]
    Dynamic { base: Value, dims: SmallVec<[Dim; 2]>, within: Option<Box<ElementOffset>> },
    /// Element of a shared array; as many indices as dimensions, each below its extent.
    Shared {
        /// The shared array.
        array: SharedId,
        /// Outermost first.
        indices: SmallVec<[Value; 3]>,
        /// The part of the element, as in `Global`.
        within: Option<Box<ElementOffset>>,
    },
    /// An address computed by the kernel plus a constant number of bytes. Only passes make it.
    #[allow(missing_docs)]
    Address { base: Value, offset: i32 },
}

impl AccessPlace {
    /// Returns the part of an element that the place names.
    pub fn element_offset(&self) -> Option<&ElementOffset> {
        match self {
            AccessPlace::Global { within, .. }
            | AccessPlace::Dynamic { within, .. }
            | AccessPlace::Shared { within, .. } => within.as_deref(),
            AccessPlace::Address { .. } => None,
        }
    }

    /// Returns the size of an element in bytes, for an access to scalars of type `scalar`.
    pub fn unit(&self, scalar: Scalar) -> u32 {
        self.element_offset().map_or(scalar.bytes(), |w| w.bytes)
    }

    /// Returns the number of elements, from the last index on, that an access to `n` scalars
    /// touches.
    pub fn reach(&self, n: u32, scalar: Scalar) -> u32 {
        self.element_offset().map_or(n, |w| w.reach(n, scalar))
    }
}

/// A scalar that begins `offset` + Σ indexᵢ · bytesᵢ bytes after the start of an element. The
/// scalar is in an aggregate, or consists of whole elements: a word of two floats of 16 bits, for
/// example.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementOffset {
    /// Bytes of an element.
    pub bytes: u32,
    /// The constant part; below `bytes`.
    pub offset: u32,
    /// Indices into arrays in the element, outermost first. An access stays within the entry that
    /// the last index names. Without indices, an access may continue into the following elements.
    pub indices: SmallVec<[ElementIndex; 1]>,
}

impl ElementOffset {
    /// Returns the number of elements that an access to `n` scalars touches.
    pub fn reach(&self, n: u32, scalar: Scalar) -> u32 {
        match self.indices.is_empty() {
            true => (self.offset + n * scalar.bytes()).div_ceil(self.bytes.max(1)),
            false => 1,
        }
    }
}

/// An index into an array in an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementIndex {
    /// The index; `usize`.
    pub index: Value,
    /// Number of entries of the array.
    pub extent: u32,
    /// Distance between adjacent entries in bytes.
    pub bytes: u32,
}

/// One dimension of an access to a slice or view; all `usize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// The index of the element.
    pub index: Value,
    /// Extent of the dimension.
    pub extent: Value,
    /// Distance between adjacent indices in elements; `None` is 1.
    pub stride: Option<Value>,
}

/// An array in the block's shared memory, laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedArray {
    /// Name in Rust.
    pub name: String,
    /// The element type.
    pub element: MemoryElement,
    /// Extents, outermost first.
    pub shape: SmallVec<[u32; 3]>,
    /// Distance between adjacent indices in elements, outermost first; the last is 1.
    pub strides: SmallVec<[u32; 3]>,
    /// How the strides were chosen, for the comment in the PTX and for reports.
    pub layout: SharedLayout,
    /// The shared array whose memory this array reuses, from the first byte on.
    pub over: Option<SharedId>,
    /// First byte in the block's shared memory.
    pub offset: u32,
}

impl SharedArray {
    /// Returns the bytes that the array takes, from its first element to its last.
    pub fn bytes(&self) -> u32 {
        if self.shape.contains(&0) {
            return 0;
        }
        let reach = self.shape.iter().zip(&self.strides).map(|(n, s)| (n - 1).saturating_mul(*s));
        reach.fold(1, u32::saturating_add).saturating_mul(self.element.bytes())
    }

    /// Returns the swizzle, if there is one.
    pub fn swizzle(&self) -> Option<Swizzle> {
        match self.layout {
            SharedLayout::Swizzled(swizzle) => Some(swizzle),
            _ => None,
        }
    }

    /// Returns the element, counted along the strides, that lies at a byte of the array.
    pub fn element_at(&self, byte: u32) -> u32 {
        let size = self.element.bytes().max(1);
        let (Some(swizzle), [.., rows, _], [.., pitch, _]) = (self.swizzle(), &self.shape[..], &self.strides[..])
        else {
            return byte / size;
        };
        let row = byte / (pitch * size).max(1) % rows.max(&1);
        (byte ^ swizzle.bits(row)) / size
    }
}

/// How a shared array's strides were chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedLayout {
    /// No gap between rows.
    Packed,
    /// No gap between rows. The compiler made the array to exchange values between threads of a
    /// block. Barriers separate all writes and reads of an element.
    Exchange,
    /// The pitch that the kernel names.
    Pitch,
    /// The pitch that the compiler found to have the fewest bank conflicts.
    Padded {
        /// Elements between the end of a row and the start of the next.
        pad: u32,
    },
    /// No gap between rows. The 16-byte pieces of each row are permuted.
    Swizzled(Swizzle),
}

/// The permutation of the 16-byte pieces of a row: piece p of row r lies at p XOR ((r >> shift) &
/// mask). Here, r is the index of the second-to-last dimension.
///
/// Eight lanes that each access 16 bytes then use each bank once. The lanes may access eight
/// consecutive rows of one column, or eight consecutive pieces of one row. A row of n pieces, n a
/// multiple of eight, has mask 7 and shift 0. If only a smaller power of two divides n, pieces are
/// permuted within groups of that size, and rows alternate after 8 / n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swizzle {
    /// Number of pieces that are permuted among each other, minus 1; the number is a power of two.
    pub mask: u32,
    /// log₂ of the number of adjacent rows with the same permutation.
    pub shift: u32,
}

impl Swizzle {
    /// Size of a piece in bytes: the widest access, so that no access spans two pieces.
    pub const PIECE: u32 = MAX_VECTOR_BYTES;

    /// Returns the swizzle of rows of `bytes` bytes, which must be whole pieces.
    pub fn of(bytes: u32) -> Option<Swizzle> {
        if bytes == 0 || !bytes.is_multiple_of(Self::PIECE) {
            return None;
        }
        let among = (bytes / Self::PIECE).trailing_zeros().min(3);
        Some(Swizzle { mask: (1 << among) - 1, shift: 3 - among })
    }

    /// Returns the bits of the byte offset that are flipped in `row`.
    pub const fn bits(self, row: u32) -> u32 {
        ((row >> self.shift) & self.mask) * Self::PIECE
    }

    /// Returns the number of rows after which the pattern of flipped bits repeats.
    pub const fn period(self) -> u32 {
        (self.mask + 1) << self.shift
    }
}

/// An array in shared memory whose size the launch evaluates.
#[derive(Clone, PartialEq, Debug)]
pub struct DynamicArray {
    /// Name in Rust.
    pub name: String,
    /// The element type.
    pub element: MemoryElement,
    /// Extents, outermost first.
    pub extents: SmallVec<[Formula; 2]>,
}

impl DynamicArray {
    /// Returns the size of the array in bytes and its extents, for these parameter bits and this
    /// block size. Returns an error if an extent cannot be evaluated.
    pub fn bytes(&self, parameters: &[u64], block: [u32; 3]) -> Result<(u64, Vec<u64>), String> {
        let extents: Vec<u64> = self.extents.iter().map(|e| e.evaluate(parameters, block)).collect::<Result<_, _>>()?;
        let bytes = extents.iter().fold(u64::from(self.element.bytes()), |n, extent| n.saturating_mul(*extent));
        Ok((bytes, extents))
    }
}

/// Maximum bytes of shared memory of a block, on every target, without the driver's opt-in for
/// more.
pub const SHARED_LIMIT: u32 = 48 * 1024;

/// The shared memory that a launch must provide.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedMemoryNeed {
    /// Bytes of the arrays of fixed size.
    pub fixed: u32,
    /// The arrays whose size the launch evaluates, which follow the others.
    pub dynamic: Vec<DynamicArray>,
}

impl SharedMemoryNeed {
    /// Lays out the arrays of dynamic size, for parameters of the entry with these bits and blocks
    /// of that size. Returns the start of each in the block's shared memory, and the end of all.
    ///
    /// # Errors
    /// The reason why a size has no value, or that the arrays exceed [`SHARED_LIMIT`].
    pub fn layout(&self, parameters: &[u64], block: [u32; 3]) -> Result<(Vec<u32>, u32), String> {
        if self.dynamic.is_empty() {
            return Ok((Vec::new(), self.fixed));
        }
        let mut end = u64::from(self.fixed.next_multiple_of(MAX_VECTOR_BYTES));
        let mut starts = Vec::with_capacity(self.dynamic.len());
        let mut each = Vec::new();
        if self.fixed > 0 {
            each.push(format!("arrays of fixed size {}", self.fixed));
        }
        for array in &self.dynamic {
            let name = &array.name;
            let (bytes, extents) = array
                .bytes(parameters, block)
                .map_err(|why| format!("the size of `{name}` in shared memory: {why}"))?;
            let extents: Vec<_> = extents.iter().map(u64::to_string).collect();
            each.push(format!("`{name}` of {} elements {bytes}", extents.join(" × ")));
            starts.push(end as u32);
            end = end.saturating_add(bytes).checked_next_multiple_of(MAX_VECTOR_BYTES.into()).unwrap_or(u64::MAX);
            if end > SHARED_LIMIT.into() {
                let each = each.join(", ");
                return Err(format!(
                    "the block needs more than {SHARED_LIMIT} bytes of shared memory: {each}; \
                     launch smaller blocks, or pass smaller sizes"
                ));
            }
        }
        Ok((starts, end as u32))
    }
}
