//! A kernel, with the declarations that its body refers to: parameters, locals, arrays, source
//! locations.

use super::{
    BlockExtents, DynamicArray, Location, MAX_VECTOR_BYTES, MemoryElement, Region, SharedArray, SharedMemoryNeed,
    Table, Type, Value,
};
use crate::oracle::OracleDeclarations;
use crate::scalar::Scalar;
use crate::source::{KernelSource, Span};
use crate::target::Target;

/// Maximum number of instructions of a kernel after unrolling, unless lowering sets another limit.
/// A larger kernel takes seconds to assemble and overflows the instruction cache.
pub const MAX_UNROLLED_INSTRUCTIONS: usize = 1 << 18;

/// One instance of a kernel, for one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Entry name in PTX, such as `matmul_16`.
    pub name: String,
    /// The instance as Rust names it, such as `matmul::<16>`.
    pub rust_name: String,
    /// The instance as reports name it, such as `matmul<T = 16>` or `gemm@tile`.
    pub instance: String,
    /// The target that the kernel is compiled for.
    pub target: Target,
    /// Threads of a block in x, y, z.
    pub block: BlockExtents,
    /// Blocks that a multiprocessor should hold at once (`.minnctapersm`), if the kernel sets it.
    pub min_blocks: Option<u32>,
    /// Maximum number of registers of a thread (`.maxnreg`), if the kernel sets it.
    pub max_registers: Option<u32>,
    /// The parameters of the PTX entry, in order.
    pub parameters: Vec<Parameter>,
    /// The type of each value.
    pub values: Vec<Type>,
    /// Mutable variables and register arrays.
    pub locals: Vec<Local>,
    /// Arrays in shared memory.
    pub shared: Vec<SharedArray>,
    /// Arrays in shared memory whose size the launch evaluates.
    pub dynamic: Vec<DynamicArray>,
    /// Arrays that are known at compile time and read by a run-time index.
    pub tables: Vec<Table>,
    /// The functions whose lines appear in `locations`; the kernel's own is the first.
    pub sources: Vec<KernelSource>,
    /// The source locations that a [`Location`] indexes.
    pub locations: Vec<SourceLocation>,
    /// Declarations of the kernel to the oracle.
    pub declared: OracleDeclarations,
    /// Maximum number of instructions after unrolling.
    pub unrolled: usize,
    /// The code of a thread.
    pub body: Region,
}

impl Kernel {
    /// Returns a kernel without a name, parameters and code.
    pub fn empty(target: Target, block: BlockExtents) -> Kernel {
        Kernel {
            name: String::new(),
            rust_name: String::new(),
            instance: String::new(),
            target,
            block,
            min_blocks: None,
            max_registers: None,
            parameters: Vec::new(),
            values: Vec::new(),
            locals: Vec::new(),
            shared: Vec::new(),
            dynamic: Vec::new(),
            tables: Vec::new(),
            sources: Vec::new(),
            locations: Vec::new(),
            declared: OracleDeclarations::default(),
            unrolled: MAX_UNROLLED_INSTRUCTIONS,
            body: Region::default(),
        }
    }

    /// Returns the type of `value`.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.0 as usize]
    }

    /// Adds a value of type `ty`, which an instruction must define.
    pub fn value(&mut self, ty: Type) -> Value {
        self.values.push(ty);
        Value(self.values.len() as u32 - 1)
    }

    /// Returns the shared memory that a launch must provide for a block.
    pub fn shared_memory(&self) -> SharedMemoryNeed {
        SharedMemoryNeed { fixed: self.shared_bytes(), dynamic: self.dynamic.clone() }
    }

    /// Returns the first byte of the arrays in shared memory whose size the launch evaluates.
    pub fn dynamic_offset(&self) -> u32 {
        self.shared_bytes().next_multiple_of(MAX_VECTOR_BYTES)
    }

    /// Returns the bytes of static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared.iter().map(|s| s.offset.saturating_add(s.bytes())).max().unwrap_or(0)
    }
}

/// A parameter of the PTX entry. A slice argument has two parameters: address and length. A view of
/// rank R has 2R: address, R extents, R − 1 strides. A view with a stride in every dimension has
/// one more. A scalar argument has one parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name in PTX, unique: `x`, `x_len`, `a_dim0`, `a_stride0`.
    pub name: String,
    /// Index of the Rust argument that the parameter belongs to.
    pub argument: u32,
    /// The part of the argument.
    pub role: Role,
}

/// The content of a parameter of the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A scalar argument.
    Value(Scalar),
    /// The address of a slice's or view's first element.
    Address {
        /// The element type of the array.
        element: MemoryElement,
        /// Whether the kernel may write to the array.
        mutable: bool,
    },
    /// The number of elements of a slice, or the extent of dimension `.0` of a view; `usize`.
    Extent(u32),
    /// The distance in elements between adjacent indices of dimension `.0` of a view; `usize`. A
    /// last dimension without this parameter has stride 1.
    Stride(u32),
}

impl Parameter {
    /// Returns the type of the result of `Op::Parameter`.
    pub fn ty(&self) -> Type {
        match self.role {
            Role::Value(s) => Type::Scalar(s),
            Role::Address { .. } => Type::Global,
            Role::Extent(_) | Role::Stride(_) => Type::Scalar(Scalar::Usize),
        }
    }
}

/// A mutable variable of each thread, or an array of them. Contents are undefined until written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Name in Rust, for reading; not unique.
    pub name: String,
    /// Element type: a scalar, or an address in global memory.
    pub element: Type,
    /// Number of elements; 1 for a plain variable. Arrays of arrays are flattened, row-major.
    pub len: u32,
    /// Whether the kernel places the array in local memory if not all of its indices are constant.
    pub memory: bool,
}

impl Local {
    /// Returns the bytes that an element takes in local memory.
    pub fn element_bytes(&self) -> u32 {
        match self.element {
            Type::Scalar(scalar) => scalar.bytes(),
            Type::Global | Type::Constant => 8,
            Type::Shared => 4,
        }
    }

    /// Returns the bytes that the array takes in local memory of each thread.
    pub fn bytes(&self) -> u32 {
        self.element_bytes().saturating_mul(self.len)
    }
}

/// A location in the source of one of the functions that a kernel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation {
    /// Index into [`Kernel::sources`].
    pub source: u32,
    /// The range of tokens in that source.
    pub span: Span,
    /// The call that inlined this function here, if it is not the kernel's own code.
    pub caller: Option<Location>,
}
