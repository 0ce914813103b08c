//! The high-level representation (HIR): a checked and typed kernel, still generic, with all device
//! functions that it calls. The expansion contains the serialized HIR, so that other instances can
//! be compiled at run time.
//!
//! A [`Program`] contains a kernel, a [`DeviceLibrary`] a device item, each with all items that it
//! refers to. Names are resolved: a local is a [`LocalId`] of its [`Function`], a callee is a
//! [`FunctionId`], and a built-in method is an [`Intrinsic`]. Each expression has a type, by index
//! into the `types` of its function. No type is unknown.

pub mod collective;
pub mod fast;
pub mod instance;
pub mod intrinsic;
pub mod item;
pub mod layout;
pub mod merge;
pub mod method;
pub mod monomorphic;
pub mod serial;
pub mod visit;

pub use collective::Collective;
pub use fast::Fast;
pub use instance::{Constant, DeclaredInstance, Instance, ItemArgument, labeled, name_with_arguments};
pub use intrinsic::{Intrinsic, MemoryOrder};
pub use item::{
    Associated, Builtin, DerivedComparisons, Enum, Field, Impl, Items, Struct, Trait, TraitBound, TraitItem,
    TraitItemKind, Variant, operator_function,
};
pub use method::{Method, OnOverflow, Wide};
pub use monomorphic::{Monomorphic, monomorphic};

use crate::assertion::Assertion;
use crate::ir;
use crate::oracle::{Allowance, DeclaredOutput};
use crate::ptx::inline;
use crate::scalar::Scalar;
use crate::source::{KernelSource, Span};
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// A kernel, with all items that it refers to. `functions[0]` is the kernel's own body.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The launch shape and conditions.
    pub launch: LaunchContract,
    /// The kernel, followed by the device functions; the list contains each callee.
    pub functions: Vec<Function>,
    /// The structs, enums, traits and impls that the functions refer to.
    pub items: Items,
}

/// Device items, with all items that they refer to: the form in which a `#[device]` item is passed
/// to its users.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DeviceLibrary {
    /// The item that a path names; `None` for a library that only supplies other items.
    pub root: Option<Root>,
    /// The functions, including constants; the list contains each callee.
    pub functions: Vec<Function>,
    /// The structs, enums, traits and impls.
    pub items: Items,
}

/// The item that a path names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Root {
    /// A device function.
    Function(FunctionId),
    /// A constant: a function without parameters.
    Constant(FunctionId),
    /// A struct.
    Struct(StructId),
    /// An enum.
    Enum(EnumId),
    /// A trait.
    Trait(TraitId),
    /// A type alias, kept as a struct whose only field has the type.
    Alias(StructId),
}

/// The launch shape and conditions, as expressions over the kernel's parameters and generic
/// constants (expressions of `functions[0]`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LaunchContract {
    /// The threads of a block in x, y, z (1 to 3 extents).
    pub block: Vec<BlockExtent>,
    /// The blocks of the grid in x, y, z (1 to 3 extents).
    pub grid: Vec<Expr>,
    /// The conditions that a launch must meet.
    pub requires: Vec<Requirement>,
    /// The number of blocks that a multiprocessor should hold at once.
    pub min_blocks: Option<Expr>,
    /// The largest number of registers of a thread.
    pub max_registers: Option<Expr>,
    /// Whether sums and differences that contain a product are contracted to `mul_add`.
    pub contract: bool,
    /// Whether the unchecked form keeps assertions.
    pub assertions: bool,
    /// Whether all blocks of a launch are resident at once.
    pub cooperative: bool,
    /// The target of the declared instances, and the default target of instances compiled later.
    pub target: Target,
    /// The declared instances, each with one argument for each generic parameter.
    pub instances: Vec<DeclaredInstance>,
    /// The tolerances of a GPU's results, for parameters that approximate results reach.
    pub tolerances: Vec<Tolerance>,
    /// The declarations of how much the kernel writes to a parameter.
    pub outputs: Vec<DeclaredOutput>,
}

/// The largest difference between a float that a GPU writes and the interpreter's value: absolute +
/// relative · |value|. An adjacent 16-bit float is always within the tolerance, because values
/// within the tolerance may round to adjacent floats.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tolerance {
    /// The index of the kernel parameter.
    pub parameter: u32,
    /// The bound relative to the interpreter's value.
    pub relative: f64,
    /// The absolute bound, which is added to the relative one.
    pub absolute: f64,
}

impl Tolerance {
    /// Returns the largest allowed difference from `reference`.
    pub fn bound(&self, reference: f64) -> f64 {
        self.absolute + self.relative * reference.abs()
    }

    /// Returns whether `value` is within the tolerance of `reference`. A NaN matches a NaN, and an
    /// infinity matches itself.
    pub fn holds(&self, value: f64, reference: f64) -> bool {
        let near = value.is_finite() && reference.is_finite() && (value - reference).abs() <= self.bound(reference);
        near || value == reference || value.is_nan() && reference.is_nan()
    }
}

/// The threads of a block along an axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BlockExtent {
    /// The value of an expression over constants and the kernel's parameters.
    Computed(Expr),
    /// Chosen by the launch: `least..=most`, perhaps in steps. The expressions are over constants.
    Chosen {
        /// The smallest value.
        least: Expr,
        /// The largest value, inclusive.
        most: Expr,
        /// The step; `None` for the default: 32 if both ends are multiples of 32, otherwise 1.
        step: Option<Expr>,
    },
}

impl BlockExtent {
    /// Returns the expressions of the extent.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (first, second, third) = match self {
            BlockExtent::Computed(e) => (e, None, None),
            BlockExtent::Chosen { least, most, step } => (least, Some(most), step.as_mut()),
        };
        std::iter::once(first).chain(second).chain(third)
    }
}

/// A condition of `#[requires(…)]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Requirement {
    /// The `bool` expression.
    pub condition: Expr,
    /// The Rust text.
    pub text: String,
}

/// The generic body of a kernel or device function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Name in Rust.
    pub name: String,
    /// Distinguishes functions of the same name when libraries are merged: a hash of tokens and
    /// position.
    pub hash: u64,
    /// The source text, for reports.
    pub source: KernelSource,
    /// The generic parameters, in order. The parameters of an impl precede those of its method;
    /// `Self` of a trait precedes both.
    pub generics: Vec<Generic>,
    /// The types that expressions and locals name by [`TypeId`].
    pub types: Vec<Type>,
    /// Parameters and variables; the first `parameters` are the parameters.
    pub locals: Vec<Local>,
    /// Number of parameters.
    pub parameters: u32,
    /// Return type.
    pub returns: TypeId,
    /// For a constant, which is a function without parameters that returns its value: the placement
    /// of its table, if a run-time index reads it.
    pub constant: Option<ir::Placement>,
    /// The allowed violations of the function's statements.
    pub allowances: Vec<Allowance>,
    /// The hash of the module whose items alone may name the function; 0 for a public one.
    pub private_to: u64,
    /// The body; its value is the result of the function.
    pub body: Block,
}

/// A generic parameter of a function, struct or impl.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Generic {
    /// Name in Rust.
    pub name: String,
    /// The kind of the parameter.
    pub kind: GenericKind,
}

/// The kind of a generic parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GenericKind {
    /// A constant of an integer type or `bool`.
    Constant(Scalar),
    /// A type with these bounds. Types in bounds are indices into the table of the item with the
    /// parameter.
    Type(Vec<TraitBound>),
}

/// A variable. Shadowing creates another variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Local {
    /// Name in Rust.
    pub name: String,
    /// The type.
    pub ty: TypeId,
    /// Whether the variable is declared `mut`; for a view, slice or shared array, whether it is
    /// assigned.
    pub mutable: bool,
    /// Declared `const`.
    pub constant: bool,
    /// Declared without `mut` and without a value: it is assigned once.
    pub late: bool,
    /// The declaration.
    pub span: Span,
}

/// Index into [`Function::types`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TypeId(pub u32);

/// Index into [`Function::locals`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LocalId(pub u32);

/// Index into [`Items::structs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StructId(pub u32);

/// Index into [`Items::enums`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EnumId(pub u32);

/// Index into [`Items::traits`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TraitId(pub u32);

/// Index into the functions of the program or library.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FunctionId(pub u32);

/// The trait by which a function calls a closure that it is given. Only the type of a parameter has
/// another one than `Fn`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum CallTrait {
    Fn,
    FnMut,
    FnOnce,
}

impl CallTrait {
    /// Returns the trait of this name.
    pub fn from_name(name: &str) -> Option<CallTrait> {
        [CallTrait::Fn, CallTrait::FnMut, CallTrait::FnOnce].into_iter().find(|of| of.name() == name)
    }

    /// Returns the name, as Rust writes it.
    pub fn name(self) -> &'static str {
        match self {
            CallTrait::Fn => "Fn",
            CallTrait::FnMut => "FnMut",
            CallTrait::FnOnce => "FnOnce",
        }
    }
}

/// A type after inference.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// `()`.
    Unit,
    /// `!`: the type of an expression that yields no value.
    Never,
    /// A number or `bool`.
    Scalar(Scalar),
    /// A tuple of two or more.
    Tuple(Vec<TypeId>),
    /// An array in registers with this number of elements.
    Array(TypeId, Size),
    /// `&[T]` or `&mut [T]`: a buffer in global memory.
    #[allow(missing_docs)]
    Slice { element: TypeId, mutable: bool },
    /// `View<T, R>` or `ViewMut<T, R>`; `Strided<T, R>` or `StridedMut<T, R>`, whose last stride is
    /// a value instead of 1.
    #[allow(missing_docs)]
    View { element: TypeId, rank: u32, mutable: bool, strided: bool },
    /// `Shared<T, R>`: a handle to an array in shared memory.
    #[allow(missing_docs)]
    Shared { element: TypeId, rank: u32 },
    /// `Pending`: a token for copies to shared memory in flight.
    Pending,
    /// `warp::Group<W>`: W adjacent lanes. The value has no parts at run time.
    Group(Size),
    /// `&mut T` or `&T` of a variable: a parameter of a device function that names a place of the
    /// caller.
    #[allow(missing_docs)]
    Reference { to: TypeId, mutable: bool },
    /// `Option<T>`.
    Option(TypeId),
    /// A closure or device function. Lowering resolves each call to one closure or function.
    #[allow(missing_docs)]
    Function { parameters: Vec<TypeId>, returns: TypeId, calls: CallTrait },
    /// A generic argument that is a number (`true` is 1), and not a type.
    Constant(Size),
    /// A generic parameter, by index into the generics of the item with the table.
    Parameter(u32),
    /// `<T as Trait>::Name`: an associated type, by its index in the trait's items.
    #[allow(missing_docs)]
    Projection { of: TypeId, of_trait: TraitId, item: u32 },
    /// A struct with its generic arguments. In a monomorphic program it is replaced by the tuple of
    /// its fields.
    Struct(StructId, Vec<TypeId>),
    /// An enum with its generic arguments. In a monomorphic program it is replaced by the `i32` of
    /// its discriminant, or by the parts of its data.
    Enum(EnumId, Vec<TypeId>),
    /// A device function as a type that implements `DeviceFn` and has no values.
    Item(FunctionId),
}

/// Returns the Rust name of a view type.
pub(crate) fn view_name(mutable: bool, strided: bool) -> &'static str {
    match (strided, mutable) {
        (false, false) => "View",
        (false, true) => "ViewMut",
        (true, false) => "Strided",
        (true, true) => "StridedMut",
    }
}

/// A number in a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Size {
    /// A literal size, or a `bool`.
    Known(u32),
    /// A generic constant of another integer type; never the length of an array.
    Value(i128),
    /// A generic constant, by index into [`Function::generics`].
    Generic(u32),
}

/// Statements and the value of the last expression.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// The block's value; `None` is `()`.
    pub value: Option<Box<Expr>>,
}

/// A statement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Statement {
    /// `let pattern = value;`, or `let name;`.
    #[allow(missing_docs)]
    Let { pattern: Pattern, value: Option<Expr>, span: Span },
    /// `let pattern = value else { … };`; control does not reach the end of `otherwise`.
    #[allow(missing_docs)]
    LetElse { pattern: Pattern, value: Expr, otherwise: Block, span: Span },
    /// An expression whose value is dropped.
    Expr(Expr),
    /// `const { assert!(condition, …) }`: evaluated for each instance.
    #[allow(missing_docs)]
    Assert { condition: Expr, message: String },
}

/// The pattern of a `let`, `for`, `match` or closure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pattern {
    /// `_`.
    Ignore,
    /// A variable.
    Local(LocalId),
    /// A pattern for each part of a tuple or array.
    Parts(Vec<Pattern>),
    /// The value of a literal or associated constant.
    Value(Box<Expr>),
    /// `low..=high`, `low..high`, or a range with one bound.
    #[allow(missing_docs)]
    Range { low: Option<Box<Expr>>, high: Option<Box<Expr>>, closed: bool },
    /// `a | b`; all alternatives bind the same variables.
    Any(Vec<Pattern>),
    /// `name @ pattern`
    Named(LocalId, Box<Pattern>),
    /// `Some(pattern)`
    Some(Box<Pattern>),
    /// `None`
    None,
    /// `&pattern`, or a pattern of a value that is matched through a reference: matches the value
    /// that the reference names.
    Dereference(Box<Pattern>),
    /// `name`, or `name @ pattern`, where a value is matched through a reference: the name is a
    /// reference to the value.
    Borrowed(LocalId, Box<Pattern>),
}

impl Pattern {
    /// Calls `f` for each variable that the pattern binds. A variable that several alternatives
    /// bind counts once.
    pub fn variables(&self, f: &mut dyn FnMut(LocalId)) {
        match self {
            Pattern::Ignore | Pattern::None | Pattern::Value(_) | Pattern::Range { .. } => {}
            Pattern::Local(id) => f(*id),
            Pattern::Named(id, inner) | Pattern::Borrowed(id, inner) => {
                f(*id);
                inner.variables(f);
            }
            Pattern::Parts(parts) => parts.iter().for_each(|part| part.variables(f)),
            Pattern::Any(patterns) => patterns.iter().take(1).for_each(|pattern| pattern.variables(f)),
            Pattern::Some(inner) | Pattern::Dereference(inner) => inner.variables(f),
        }
    }

    /// Returns whether the pattern binds a variable.
    pub fn binds(&self) -> bool {
        let mut binds = false;
        self.variables(&mut |_| binds = true);
        binds
    }

    /// Returns whether the pattern binds the variable `wanted`.
    pub fn binds_variable(&self, wanted: LocalId) -> bool {
        let mut binds = false;
        self.variables(&mut |id| binds |= id == wanted);
        binds
    }
}

/// A case of a `match`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Arm {
    /// The values that the arm matches.
    pub pattern: Pattern,
    /// The guard, a `bool` that must also hold.
    pub guard: Option<Expr>,
    /// The value of the arm.
    pub body: Expr,
}

/// A typed expression.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// The type.
    pub ty: TypeId,
    /// The source range.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ExprKind {
    /// The bits of a scalar of the expression's type, zero-extended to 64 bits.
    Literal(u64),
    /// A literal of type `u128` with more than 64 bits.
    LongLiteral(u128),
    /// A variable.
    Local(LocalId),
    /// The value of a generic constant.
    Generic(u32),
    /// −x or !x.
    Unary(ir::Unary, Box<Expr>),
    /// An arithmetic operator. Shifts take any integer on the right.
    Binary(ir::Binary, Box<Expr>, Box<Expr>),
    /// A comparison of values of one type. The parts of structs, tuples, arrays and options are
    /// compared in order.
    Compare(ir::Comparison, Box<Expr>, Box<Expr>),
    /// `&&`; the right side runs only if the left holds.
    AndAlso(Box<Expr>, Box<Expr>),
    /// `||`; the right side runs only if the left does not hold.
    OrElse(Box<Expr>, Box<Expr>),
    /// `place = value`, or `place op= value`.
    Assign {
        place: Box<Expr>,
        operator: Option<ir::Binary>,
        value: Box<Expr>,
    },
    /// `value as ty`.
    Cast(Box<Expr>),
    /// A built-in function or method.
    Intrinsic {
        intrinsic: Intrinsic,
        arguments: Vec<Expr>,
    },
    /// A call of a device function, with a generic argument for each generic parameter: a
    /// [`Type::Constant`] or a type.
    Call {
        function: FunctionId,
        generics: Vec<TypeId>,
        arguments: Vec<Expr>,
    },
    /// An associated function or constant of a trait, by its index in the trait's items. The type
    /// `of` determines the impl. Not in a monomorphic program.
    CallMethod {
        of: TypeId,
        of_trait: TraitId,
        item: u32,
        generics: Vec<TypeId>,
        arguments: Vec<Expr>,
    },
    /// An associated function of a trait passed as a closure. Not in a monomorphic program.
    MethodValue {
        of: TypeId,
        of_trait: TraitId,
        item: u32,
        generics: Vec<TypeId>,
    },
    /// `F::call(arguments)` for a type parameter that is a device function. Not in a monomorphic
    /// program.
    CallItem {
        of: TypeId,
        arguments: Vec<Expr>,
    },
    /// `base[index]`: an element of an array, slice, view or shared array. The index is a `usize`,
    /// or a tuple or array of them.
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    /// `base.0`
    Field {
        base: Box<Expr>,
        field: u32,
    },
    Tuple(Vec<Expr>),
    /// `Name { field: value, … }`: the fields by index, in source order, and the struct that
    /// supplies the others.
    Struct {
        fields: Vec<(u32, Expr)>,
        rest: Option<Box<Expr>>,
    },
    /// `size_of::<T>()`, in bytes. Not in a monomorphic program.
    SizeOf(TypeId),
    /// `[a, b, c]`
    Array(Vec<Expr>),
    /// `[value; N]`; N is in the type.
    Repeat(Box<Expr>),
    /// `ptx!(…)` with its input values, in order. The value is the output, or a tuple of the
    /// outputs.
    Inline {
        source: inline::InlineSource,
        arguments: Vec<Expr>,
    },
    /// `assert!(condition, …)`, or `panic!(…)` without a condition. The message has a `{}` for each
    /// value, followed by one for each side of a comparison.
    Assertion {
        assertion: Assertion,
        condition: Option<Box<Expr>>,
        message: String,
        values: Vec<Expr>,
    },
    /// `log!(…)`. The message has a `{}` for each value.
    Log {
        message: String,
        values: Vec<Expr>,
    },
    /// `&place` or `&mut place`, as an argument of a device function.
    Reference(Box<Expr>),
    /// `*reference`
    Dereference(Box<Expr>),
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Option<Box<Expr>>,
    },
    /// A `match`: the first arm that matches. The last arm matches if no other does.
    Match {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    /// `|parameters| body`: captures by reference, and is inlined at each call.
    Closure {
        parameters: Vec<Pattern>,
        body: Box<Expr>,
    },
    /// A device function passed as a closure.
    Function {
        function: FunctionId,
        generics: Vec<TypeId>,
    },
    /// A call of a closure or of a function passed as one.
    CallValue {
        callee: Box<Expr>,
        arguments: Vec<Expr>,
    },
    Block(Block),
    /// `'label: { … }`
    Labeled {
        label: LabelId,
        body: Block,
    },
    /// `loop`
    Loop {
        label: LabelId,
        body: Block,
    },
    While {
        label: LabelId,
        condition: Box<Expr>,
        body: Block,
    },
    For {
        label: LabelId,
        pattern: Pattern,
        range: Box<Range>,
        body: Block,
    },
    Break {
        label: LabelId,
        value: Option<Box<Expr>>,
    },
    Continue {
        label: LabelId,
    },
    Return(Option<Box<Expr>>),
}

/// The label of a loop or labeled block, for `break` and `continue`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LabelId(pub u32);

/// The range of a `for`: `start..end` or `start..=end`, perhaps stepped.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Range {
    /// The first index.
    pub start: Expr,
    /// The end.
    pub end: Expr,
    /// Whether the end is an index of the range.
    pub closed: bool,
    /// The step of `step_by`.
    pub step: Option<Expr>,
    /// The unrolling hint: `unroll(…)`, `unroll_by::<F>(…)` or `rolled(…)`.
    pub unroll: Unroll,
    /// The order, set by `.rev()`.
    pub order: IterationOrder,
    /// For `.enumerate()`: the variable for the number of each index.
    pub enumerate: Option<LocalId>,
}

/// The unrolling hint of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unroll {
    /// No hint.
    Auto,
    /// `unroll(…)`.
    Full,
    /// `rolled(…)`.
    Never,
    /// `unroll_by::<F>(…)`.
    By(Size),
}

/// The order of iteration over a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum IterationOrder {
    /// Ascending from `start`.
    Ascending,
    /// `(a..b).rev()`, perhaps stepped: descending from end − 1.
    Descending,
    /// `(a..b).step_by(n).rev()`: descending from the last index of the stepped range to `start`.
    Reversed,
}

impl Function {
    /// Returns the type with index `id`.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}
