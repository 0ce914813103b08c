//! The high-level representation: a kernel as checked, typed, still generic, closed over the device functions that it
//! calls, and serialised into the expansion so that other instances can be compiled at run time.
//!
//! A [`Program`] holds a kernel; a [`Library`] a device function with all that it calls. Names are resolved: a local is
//! a [`LocalId`] of its [`Function`], a callee a [`FunctionId`] of the closed list, a method an [`Intrinsic`]. Each
//! expression has a type, by index into its function's `types`, where inference has left no unknowns.

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
pub use instance::{Constant, Instance, Item};
pub use intrinsic::Intrinsic;
pub use item::{
    Associated, Bound, Builtin, Enum, Field, Impl, Items, Struct, Trait, TraitItem, TraitItemKind, Variant,
};
pub use method::{Method, OnOverflow};
pub use monomorphic::{Monomorphic, monomorphic};

use crate::ir;
use crate::oracle::{Allowance, Output};
use crate::ptx::inline;
use crate::scalar::Scalar;
use crate::source::{Source, Span};
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// A kernel, closed over what it calls. `functions[0]` is the kernel's own body.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// What the launch needs to know.
    pub launch: Launch,
    /// The kernel and, after it, the device functions; each callee is in the list.
    pub functions: Vec<Function>,
    /// The structs, enums, traits and impls that the functions name.
    pub items: Items,
}

/// Device items, closed over what they name: what a `#[device]` item hands to those that use it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Library {
    /// The item that was asked for; `None` for a library that only brings others along.
    pub root: Option<Root>,
    /// Functions, constants among them; each callee is in the list.
    pub functions: Vec<Function>,
    /// The structs, enums, traits and impls that come along.
    pub items: Items,
}

/// What a path names.
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
}

/// Launch shape and conditions, as expressions over the kernel's parameters and generic constants (expressions of
/// `functions[0]`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Threads of a block in x, y, z (1 to 3 of them).
    pub block: Vec<BlockExtent>,
    /// Blocks of the grid in x, y, z (1 to 3 of them).
    pub grid: Vec<Expr>,
    /// Conditions that a launch must meet.
    pub requires: Vec<Requirement>,
    /// Blocks that a multiprocessor should hold at once.
    pub min_blocks: Option<Expr>,
    /// Registers a thread at most.
    pub max_registers: Option<Expr>,
    /// Whether a sum or difference with a product written in it is one `mul_add`.
    pub contract: bool,
    /// What its declared instances are compiled for, and those compiled later unless another target is asked for.
    pub target: Target,
    /// The instances that the kernel declares: one value a generic parameter.
    pub instances: Vec<Instance>,
    /// How near a GPU's results must be, for parameters that the hardware's approximations reach.
    pub tolerances: Vec<Tolerance>,
    /// Parameters of which the kernel says how much it writes.
    pub outputs: Vec<Output>,
}

/// How far floats that a kernel writes may be from those of the interpreter: absolute + relative · |value|.
/// Of numbers of 16 bits the next one is near enough, too: what is within the tolerance before it is rounded may round apart.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tolerance {
    /// Which parameter of the kernel, by its index.
    pub parameter: u32,
    /// The part of the interpreter's value.
    pub relative: f64,
    /// What is added to that.
    pub absolute: f64,
}

impl Tolerance {
    /// Whether `value` is as near to `reference` as it must be: a NaN to a NaN, an infinity to itself.
    pub fn holds(&self, value: f64, reference: f64) -> bool {
        let room = self.absolute + self.relative * reference.abs();
        let near = value.is_finite() && reference.is_finite() && (value - reference).abs() <= room;
        near || value == reference || value.is_nan() && reference.is_nan()
    }
}

/// Threads of a block along an axis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BlockExtent {
    /// What an expression comes to: over constants, or over the kernel's parameters too.
    Computed(Expr),
    /// What the launch says: `least..=most`, perhaps in steps. The expressions are over constants.
    Chosen {
        /// The least.
        least: Expr,
        /// The largest, included.
        most: Expr,
        /// From one to the next; none is written where whole warps or single threads are meant.
        step: Option<Expr>,
    },
}

impl BlockExtent {
    /// Its expressions.
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
    /// Its Rust text.
    pub text: String,
}

/// A kernel's or device function's body, generic.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Name in Rust.
    pub name: String,
    /// Tells functions of one name apart when libraries are merged: a hash over tokens and place.
    pub hash: u64,
    /// The text, for reports.
    pub source: Source,
    /// Generic parameters, in order. Those of an impl come before those of its method; `Self` of a trait before both.
    pub generics: Vec<Generic>,
    /// The types that expressions and locals name by [`TypeId`].
    pub types: Vec<Type>,
    /// Parameters and variables; the first `parameters` are the parameters.
    pub locals: Vec<Local>,
    /// Number of parameters.
    pub parameters: u32,
    /// Return type.
    pub returns: TypeId,
    /// Of a constant, which is a function without parameters that gives its value: where it is to lie, if it is read by an index
    /// of run time.
    pub constant: Option<ir::Placement>,
    /// What its statements may do though the oracle forbids it.
    pub allowances: Vec<Allowance>,
    /// What it does; its value is the function's.
    pub body: Block,
}

/// A generic parameter of a function, struct or impl.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Generic {
    /// Name in Rust.
    pub name: String,
    /// What stands for it.
    pub kind: GenericKind,
}

/// What can stand for a generic parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GenericKind {
    /// A constant: `usize` or `bool`.
    Constant(Scalar),
    /// A type with these bounds; types in them are of the table of whatever has the parameter.
    Type(Vec<Bound>),
}

/// A variable. Shadowing makes another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Local {
    /// Name in Rust.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// Declared `mut`; a view or slice: assigned anew somewhere.
    pub mutable: bool,
    /// Declared `const`.
    pub constant: bool,
    /// Where it is declared.
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

/// Index into the closed list of functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FunctionId(pub u32);

/// A type, with inference done.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// `()`.
    Unit,
    /// `!`: of an expression that does not give a value.
    Never,
    /// A number or a truth value.
    Scalar(Scalar),
    /// A tuple of two or more.
    Tuple(Vec<TypeId>),
    /// A register array of that many elements.
    Array(TypeId, Size),
    /// `&[T]` or `&mut [T]`: a buffer in global memory.
    #[allow(missing_docs)]
    Slice { element: TypeId, mutable: bool },
    /// `View<T, R>` or `ViewMut<T, R>`; `Strided<T, R>` or `StridedMut<T, R>`, whose last stride is not 1 but a value.
    #[allow(missing_docs)]
    View { element: TypeId, rank: u32, mutable: bool, strided: bool },
    /// `Shared<T, R>`: a handle to an array in shared memory.
    #[allow(missing_docs)]
    Shared { element: TypeId, rank: u32 },
    /// `Pending`: copies to shared memory that have begun.
    Pending,
    /// `warp::Group<W>`: as many neighbouring lanes. It holds nothing at run time.
    Group(Size),
    /// `&mut T` or `&T` of a variable: a parameter of a device function that names the caller's place.
    #[allow(missing_docs)]
    Reference { to: TypeId, mutable: bool },
    /// `Option<T>`.
    Option(TypeId),
    /// A closure or device function; which one is known where it is called.
    #[allow(missing_docs)]
    Function { parameters: Vec<TypeId>, returns: TypeId },
    /// Not a type of values: a generic argument that is a number (`true` is 1).
    Constant(Size),
    /// A generic parameter, by index into the generics of whatever has the table.
    Parameter(u32),
    /// `<T as Trait>::Name`: an associated type, by its index among the trait's items.
    #[allow(missing_docs)]
    Projection { of: TypeId, of_trait: TraitId, item: u32 },
    /// A struct with its generic arguments. In a monomorphic program it is a tuple of its fields.
    Struct(StructId, Vec<TypeId>),
    /// An enum without data. In a monomorphic program it is the `i32` of its discriminant.
    Enum(EnumId),
    /// A device function as a type that implements `DeviceFn`. It has no values.
    Item(FunctionId),
}

/// What a view is called in Rust.
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
    /// Written out.
    Known(u32),
    /// A generic constant, by index into [`Function::generics`].
    Generic(u32),
}

/// Statements and the value of the last expression.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// In order.
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
    /// `let pattern = value else { … };`; control does not leave `otherwise`.
    #[allow(missing_docs)]
    LetElse { pattern: Pattern, value: Expr, otherwise: Block, span: Span },
    /// An expression whose value is dropped.
    Expr(Expr),
    /// `const { assert!(condition, …) }`: evaluated for each instance.
    #[allow(missing_docs)]
    Assert { condition: Expr, message: String },
}

/// What a `let`, `for`, `match` or closure binds, and of what values it matches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pattern {
    /// `_`.
    Ignore,
    /// A variable.
    Local(LocalId),
    /// A tuple or array, part by part.
    Parts(Vec<Pattern>),
    /// The value of a literal or associated constant.
    Value(Box<Expr>),
    /// `low..=high`, `low..high`, or without one of the two.
    #[allow(missing_docs)]
    Range { low: Option<Box<Expr>>, high: Option<Box<Expr>>, closed: bool },
    /// `a | b`; none of them binds.
    Any(Vec<Pattern>),
    /// `name @ pattern`
    Named(LocalId, Box<Pattern>),
    /// `Some(pattern)`
    Some(Box<Pattern>),
    /// `None`
    None,
    /// `&pattern`: what the reference names.
    Dereference(Box<Pattern>),
}

/// A case of a `match`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Arm {
    /// Values that it is for.
    pub pattern: Pattern,
    /// A `bool` that must hold, too.
    pub guard: Option<Expr>,
    /// What it gives.
    pub body: Expr,
}

/// A typed expression.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: TypeId,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ExprKind {
    /// Bits of a scalar, zero-extended to 64; the type is the expression's.
    Literal(u64),
    /// A variable.
    Local(LocalId),
    /// The value of a generic constant.
    Generic(u32),
    /// −x or !x.
    Unary(ir::Unary, Box<Expr>),
    /// An arithmetic operator. Shifts take any integer on the right.
    Binary(ir::Binary, Box<Expr>, Box<Expr>),
    /// A comparison of scalars.
    Compare(ir::Comparison, Box<Expr>, Box<Expr>),
    /// `&&`; the right side runs only where the left holds.
    AndAlso(Box<Expr>, Box<Expr>),
    /// `||`; the right side runs only where the left does not hold.
    OrElse(Box<Expr>, Box<Expr>),
    /// `place = value`, or `place op= value`.
    Assign {
        place: Box<Expr>,
        operator: Option<ir::Binary>,
        value: Box<Expr>,
    },
    /// `value as ty`.
    Cast(Box<Expr>),
    /// A function or method of the language.
    Intrinsic {
        intrinsic: Intrinsic,
        arguments: Vec<Expr>,
    },
    /// A device function with an argument for each of its generics: a [`Type::Constant`] or a type.
    Call {
        function: FunctionId,
        generics: Vec<TypeId>,
        arguments: Vec<Expr>,
    },
    /// An associated function or constant of a trait, by its index among the trait's items; which impl's it is the type
    /// `of` decides, once it is known. Not in a monomorphic program.
    CallMethod {
        of: TypeId,
        of_trait: TraitId,
        item: u32,
        generics: Vec<TypeId>,
        arguments: Vec<Expr>,
    },
    /// An associated function of a trait where a closure fits. Not in a monomorphic program.
    MethodValue {
        of: TypeId,
        of_trait: TraitId,
        item: u32,
        generics: Vec<TypeId>,
    },
    /// `F::call(arguments)` of a type parameter that is a device function. Not in a monomorphic program.
    CallItem {
        of: TypeId,
        arguments: Vec<Expr>,
    },
    /// `base[index]`: an element of an array, slice, view or shared array. The index is a `usize`, or a tuple or array of them.
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
    /// `Name { field: value, … }`: fields by index in the order in which they are written, and the struct that has the
    /// others.
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
    /// `ptx!(…)`, with what its operands are whose values come in, in order. Its value is the result, or a tuple of them.
    Inline {
        source: inline::Source,
        arguments: Vec<Expr>,
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
    /// The first arm that matches; where none of them is sure to, the last one is.
    Match {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    /// `|parameters| body`: captures by reference, is inlined where it is called.
    Closure {
        parameters: Vec<Pattern>,
        body: Box<Expr>,
    },
    /// A device function where a closure fits.
    Function {
        function: FunctionId,
        generics: Vec<TypeId>,
    },
    /// A call of a closure, or of what stands for one.
    CallValue {
        callee: Box<Expr>,
        arguments: Vec<Expr>,
    },
    Block(Block),
    /// `'label: { … }`
    Labelled {
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

/// A loop or labelled block of its function, as `break` and `continue` name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LabelId(pub u32);

/// What a `for` runs over: `start..end`, perhaps stepped.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Range {
    /// First index.
    pub start: Expr,
    /// Index that is not reached.
    pub end: Expr,
    /// Of `step_by`.
    pub step: Option<Expr>,
    /// Of `unroll(…)`, `unroll_by::<F>(…)` and `rolled(…)`.
    pub unroll: Unroll,
    /// Of `.rev()`.
    pub order: Order,
    /// Of `.enumerate()`: the variable that gets each index's number.
    pub enumerate: Option<LocalId>,
}

/// What the kernel says about unrolling a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unroll {
    /// Nothing.
    Auto,
    /// `unroll(…)`.
    Full,
    /// `rolled(…)`.
    Never,
    /// `unroll_by::<F>(…)`.
    By(Size),
}

/// In which order a range is run through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// From `start` on.
    Ascending,
    /// `(a..b).rev()`, perhaps stepped: from the end − 1 on down.
    Descending,
    /// `(a..b).step_by(n).rev()`: from the last index of the stepped range on down to `start`.
    Reversed,
}

impl Function {
    /// The type that `id` names.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}
