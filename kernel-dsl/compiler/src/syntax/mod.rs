//! Syntax: from Rust tokens to the syntax tree of the language.
//!
//! The tree contains only what kernels support, with the positions of tokens. Reading rejects any
//! other Rust by an error at its token, which says what to write instead. Reading continues after
//! an error, so that all errors are reported at once. [`check`](crate::check) resolves names and
//! computes the types of expressions.

pub(crate) mod allow;
mod assertion;
mod assign;
mod attribute;
mod builtin;
mod callees;
mod expression;
pub(crate) mod foreign;
mod function;
mod generic;
pub(crate) mod inline;
mod item;
mod pattern;
mod place;
mod types;

use crate::hir::CallTrait;
use crate::ir::Placement;
use crate::oracle::{Allowance, Coverage};
use crate::source::KernelSource;
use crate::{Scalar, Target};
use proc_macro2::{Ident, TokenStream};
use std::fmt;
use std::rc::Rc;
use syn::ItemFn;

pub(crate) use generic::is_anonymous;

pub use attribute::{CLAUSES, Clause, InstanceArgument, InstanceOf};
pub(crate) use item::derives;
pub use item::{Enum, Impl, Item, Module, Struct, Trait, TraitBound, TraitItem, is_placement, module};
pub use place::SpanPair;

/// A kernel: a function and its attributes.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function.
    pub function: Function,
    /// The threads of a block, along 1 to 3 axes.
    pub block: Vec<BlockExtent>,
    /// The blocks of the grid: 1 to 3 expressions.
    pub grid: Vec<Expr>,
    /// The conditions of a launch, each with its Rust text.
    pub requires: Vec<(Expr, String)>,
    /// The instances that are compiled at expansion. A kernel without generic parameters has one
    /// empty instance.
    pub instances: Vec<InstanceOf>,
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
    /// The tolerances of a GPU's results, by parameter.
    pub tolerances: Vec<Tolerance>,
    /// How much of its outputs the kernel writes, by parameter.
    pub writes: Vec<(Ident, Coverage)>,
    /// The target.
    pub target: Target,
    /// The path of the facade crate: `::kernel_dsl`, or the path of the clause `crate`.
    pub crate_path: syn::Path,
    /// The launch expressions as written, for the type-checking copy: block, grid, limits,
    /// requires.
    pub launch_tokens: LaunchTokens,
}

/// The threads of a block along an axis.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a kernel has three at most")]
pub enum BlockExtent {
    /// An expression.
    Computed(Expr),
    /// `least..=most`, or `(least..=most).step_by(step)`: the launch chooses.
    #[allow(missing_docs)]
    Chosen { least: Expr, most: Expr, step: Option<Expr> },
}

impl BlockExtent {
    /// Returns the expressions of the extent.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let (first, second, third) = match self {
            BlockExtent::Computed(e) => (e, None, None),
            BlockExtent::Chosen { least, most, step } => (least, Some(most), step.as_ref()),
        };
        std::iter::once(first).chain(second).chain(third)
    }
}

/// `y(relative = 1e-6, absolute = 1e-7)` of the clause `tolerance`; a missing bound is 0.
#[derive(Clone, Debug)]
pub struct Tolerance {
    /// The parameter.
    pub name: Ident,
    /// The bound relative to the interpreter's value: finite, and at least 0.
    pub relative: f64,
    /// The absolute bound: finite, and at least 0.
    pub absolute: f64,
}

/// Launch expressions as the user wrote them.
#[derive(Clone, Debug, Default)]
pub struct LaunchTokens {
    /// The extents of a block, each a `usize`.
    pub block: Vec<TokenStream>,
    /// The extents of the grid, each a `usize`.
    pub grid: Vec<TokenStream>,
    /// The limits on blocks of a multiprocessor and registers of a thread, each a `usize`.
    pub limits: Vec<TokenStream>,
    /// The conditions, each a `bool`.
    pub requires: Vec<TokenStream>,
}

/// The signature and body of a kernel or device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: Ident,
    /// Generic parameters, in order.
    pub generics: Vec<Generic>,
    /// Parameters, in order; the first parameter of a method is named `self`.
    pub parameters: Vec<Parameter>,
    /// Whether the first parameter is a receiver.
    pub receiver: bool,
    /// Return type; `None` is `()`.
    pub returns: Option<Type>,
    /// For a constant, which is a function without parameters: its placement.
    pub constant: Option<Placement>,
    /// Has no `pub`. A function of a trait is never private.
    pub private: bool,
    /// The allowed violations of the function's statements.
    pub allowances: Vec<Allowance>,
    /// The body.
    pub body: Block,
    /// The source text.
    pub source: KernelSource,
    /// A hash of the tokens and the source position.
    pub hash: u64,
    /// The Rust function; `None` for a constant.
    pub written: Option<RustSyntax<ItemFn>>,
}

/// A piece of Rust syntax, kept for generating code from it.
#[derive(Clone)]
pub struct RustSyntax<T>(pub Rc<T>);

impl<T> fmt::Debug for RustSyntax<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A generic parameter.
#[derive(Clone, Debug)]
pub struct Generic {
    /// The name.
    pub name: Ident,
    /// Whether it is a constant or a type.
    pub kind: GenericKind,
}

/// The kind of a generic parameter.
#[derive(Clone, Debug)]
pub enum GenericKind {
    /// `const NAME: ty`, where `ty` is an integer type or `bool`.
    Constant(Scalar),
    /// `Name: TraitBound + TraitBound`, including bounds of the `where` clause.
    Type(Vec<TraitBound>),
}

/// `mut name: ty`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name.
    pub name: Ident,
    /// Declared `mut`.
    pub mutable: bool,
    /// The type.
    pub ty: Type,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// The kind.
    pub kind: TypeKind,
    /// The tokens.
    pub mark: SpanPair,
}

/// The kind of a type.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum TypeKind {
    /// `_`
    Infer,
    /// A name, perhaps with arguments: `f32`, `View<f32, 2>`.
    Path(Path),
    /// `()` and longer
    Tuple(Vec<Type>),
    /// `[T; N]`
    Array(Box<Type>, Box<TypeOrConst>),
    /// `[T]`, behind a reference
    Slice(Box<Type>),
    /// `&T`, `&mut T`
    Reference { mutable: bool, to: Box<Type> },
    /// `impl Fn(A, B) -> R`
    Function { parameters: Vec<Type>, returns: Option<Box<Type>>, calls: CallTrait },
}

/// A path with the generic arguments of its segments.
#[derive(Clone, Debug)]
pub struct Path {
    /// Whether the path starts with `::`.
    pub global: bool,
    /// The names in order; never empty.
    pub segments: Vec<Segment>,
    /// The tokens.
    pub mark: SpanPair,
}

/// One name of a path.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The name.
    pub name: Ident,
    /// The arguments between `<` and `>`.
    pub arguments: Vec<TypeOrConst>,
}

/// A generic argument, or an array's length.
#[derive(Clone, Debug)]
pub enum TypeOrConst {
    /// A type, or the name of a generic constant.
    Type(Type),
    /// A number. A length has at most 32 bits.
    Number(i128, SpanPair),
    /// `true` or `false`.
    Bool(bool, SpanPair),
}

/// Statements and the value of the last expression.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// The block's value.
    pub value: Option<Box<Expr>>,
    /// The braces.
    pub mark: SpanPair,
}

/// A statement.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Statement {
    /// `let pattern: ty = value;`, perhaps with `else { … }`
    Let { pattern: Pattern, ty: Option<Type>, value: Option<Expr>, otherwise: Option<Box<Block>>, mark: SpanPair },
    /// `value;`
    Expr(Expr),
    /// A block-like expression without a semicolon, whose type must be `()`.
    Unit(Expr),
    /// `const { assert!(condition, "message") }`
    Assert { condition: Expr, message: String },
    /// `const NAME: ty = value;`
    Constant { name: Ident, ty: Type, value: Expr, mark: SpanPair },
}

/// The pattern of a `let`, `for`, `match` or closure.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Pattern {
    /// `_`
    Ignore,
    /// `mut name`
    Name { name: Ident, mutable: bool },
    /// `(a, b)`
    Tuple(Vec<Pattern>, SpanPair),
    /// `[a, b]`
    Array(Vec<Pattern>, SpanPair),
    /// A literal or associated constant.
    Value(Box<Expr>),
    /// `low..=high`, `low..high`, or without one of the two.
    Range { low: Option<Box<Expr>>, high: Option<Box<Expr>>, closed: bool },
    /// `a | b`
    Any(Vec<Pattern>, SpanPair),
    /// `name @ pattern`
    Named { name: Ident, mutable: bool, pattern: Box<Pattern> },
    /// `Some(pattern)`
    Some(Box<Pattern>, SpanPair),
    /// `None`
    None(SpanPair),
    /// `&pattern`
    Reference(Box<Pattern>, SpanPair),
    /// `..`, in a tuple or array.
    Rest(SpanPair),
    /// `Name { field: pattern, .. }` or `Name(a, b)`
    Struct { path: Path, fields: Vec<(Member, Pattern)>, rest: bool, mark: SpanPair },
}

/// The left side of an assignment.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Assignee {
    /// `_`
    Ignore,
    /// A variable or an element.
    Place(Box<Expr>),
    /// `(a, b)`
    Tuple(Vec<Assignee>, SpanPair),
    /// `[a, b]`
    Array(Vec<Assignee>, SpanPair),
    /// `..`
    Rest(SpanPair),
}

/// A case of a `match`.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The values that the arm matches.
    pub pattern: Pattern,
    /// `if guard`
    pub guard: Option<Expr>,
    /// The value of the arm.
    pub body: Expr,
    /// The pattern.
    pub mark: SpanPair,
}

/// `pattern: ty` of a closure.
#[derive(Clone, Debug)]
pub struct ClosureParameter {
    /// The pattern.
    pub pattern: Pattern,
    /// The type, if written.
    pub ty: Option<Type>,
    /// The span of pattern and type.
    pub mark: SpanPair,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// The tokens.
    pub mark: SpanPair,
}

/// The kind of an expression.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ExprKind {
    /// An integer with its suffix.
    Integer(u128, Option<Scalar>),
    /// A float with its suffix.
    Float(FloatLiteral, Option<Scalar>),
    Bool(bool),
    /// A variable, generic constant or associated constant.
    Path(Path),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Assign {
        place: Box<Expr>,
        operator: Option<Binary>,
        value: Box<Expr>,
    },
    /// `(a, b) = value` and other destructuring assignments.
    Destructure {
        into: Assignee,
        value: Box<Expr>,
    },
    Cast(Box<Expr>, Type),
    /// `path(arguments)`
    Call(Path, Vec<Expr>),
    /// `value?`
    Try(Box<Expr>),
    /// `receiver.name::<generics>(arguments)`
    Method {
        receiver: Box<Expr>,
        name: Ident,
        generics: Vec<TypeOrConst>,
        arguments: Vec<Expr>,
    },
    Index(Box<Expr>, Box<Expr>),
    Field(Box<Expr>, Member),
    /// `ptx!(…)`, with the input values.
    Inline {
        source: crate::ptx::inline::InlineSource,
        values: Vec<Expr>,
    },
    /// `assert!(condition, …)`, or `panic!(…)` without a condition. The message has a `{}` for each
    /// value, followed by one for each side of a comparison.
    Assertion {
        assertion: crate::assertion::Assertion,
        condition: Option<Box<Expr>>,
        message: String,
        values: Vec<Expr>,
    },
    /// `log!(…)`. The message has a `{}` for each value.
    Log {
        message: String,
        values: Vec<Expr>,
    },
    /// `Name { field: value, ..rest }`
    Struct {
        path: Path,
        fields: Vec<(Member, Expr)>,
        rest: Option<Box<Expr>>,
    },
    Tuple(Vec<Expr>),
    Array(Vec<Expr>),
    Repeat(Box<Expr>, TypeOrConst),
    Reference {
        mutable: bool,
        place: Box<Expr>,
    },
    /// `start..end`, or `start..=end` if it is closed.
    Range {
        start: Box<Expr>,
        end: Box<Expr>,
        closed: bool,
    },
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Option<Box<Expr>>,
    },
    /// `match`, and the translation of `if let` and `while let`.
    Match {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    Closure {
        parameters: Vec<ClosureParameter>,
        returns: Option<Type>,
        body: Box<Expr>,
    },
    Block(Block),
    /// `'label: { … }`
    Labeled {
        label: Ident,
        body: Block,
    },
    Loop {
        label: Option<Ident>,
        body: Block,
    },
    While {
        label: Option<Ident>,
        condition: Box<Expr>,
        body: Block,
    },
    For {
        label: Option<Ident>,
        pattern: Pattern,
        iterator: Box<Expr>,
        body: Block,
    },
    Break {
        label: Option<Ident>,
        value: Option<Box<Expr>>,
    },
    Continue {
        label: Option<Ident>,
    },
    Return(Option<Box<Expr>>),
    /// A rejected expression, whose error has been recorded.
    Refused,
}

/// The value of a float literal in both precisions, each rounded once from the text.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct FloatLiteral {
    pub single: f32,
    pub double: f64,
}

/// The name of a field: `.0`, `.name`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Member {
    Index(u32),
    Name(Ident),
}

impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Member::Index(i) => write!(f, "{i}"),
            Member::Name(name) => write!(f, "{name}"),
        }
    }
}

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Not,
    Dereference,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    /// `+ − * / % & | ^ << >>`
    Arithmetic(crate::ir::Binary),
    /// `== != < <= > >=`
    Compare(crate::ir::Comparison),
    AndAlso,
    OrElse,
}

/// Reads a kernel: the attribute's tokens, and the function with its other attributes
/// (`#[requires(…)]` among them).
pub fn kernel(attribute: TokenStream, item: &ItemFn) -> Result<Kernel, syn::Error> {
    let mut reader = Reader::new(item);
    if let Some(word) = &item.sig.constness {
        let message = "a kernel cannot be `const`: remove it; a kernel runs on a device only";
        reader.refuse(syn::Error::new_spanned(word, message));
    }
    for input in &item.sig.inputs {
        if let syn::FnArg::Typed(input) = input
            && let syn::Type::ImplTrait(closure) = &*input.ty
            && closure.bounds.iter().any(generic::is_function)
        {
            let message = "a kernel cannot take a closure: take its captured numbers, and call a `#[device]` function";
            reader.refuse(syn::Error::new_spanned(closure, message));
        }
    }
    for lifetime in item.sig.generics.lifetimes() {
        let message = "a kernel takes no lifetime parameters: remove them, and write `&[T]` and `&mut [T]`";
        reader.refuse(syn::Error::new_spanned(lifetime, message));
    }
    for (parameter, _) in generic::closures(&item.sig.generics) {
        let message = format!(
            "a kernel cannot take a closure: bound the parameter by `{parameter}: DeviceFn<(f32,), Output = f32>`, and pass the name of a `#[device]` function, `kernel::<name>`"
        );
        reader.refuse(syn::Error::new(parameter.span(), message));
    }
    reader.in_kernel = true;
    let function = reader.function(item);
    for input in &item.sig.inputs {
        if let syn::FnArg::Typed(input) = input
            && !matches!(&*input.pat, syn::Pat::Wild(_))
            && !matches!(&*input.pat, syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none())
        {
            let message = "a parameter of a kernel must be a plain name: destructure it with `let` in the body";
            reader.refuse(syn::Error::new_spanned(&input.pat, message));
        }
    }
    let kernel = reader.attributes(attribute, item, function);
    reader.finish(kernel)
}

/// Reads a device function.
pub fn device(item: &ItemFn) -> Result<Function, syn::Error> {
    let mut reader = Reader::new(item);
    let function = reader.function(item);
    reader.finish(function)
}

/// A reader that collects all errors.
struct Reader {
    /// The first line of the item; source lines count from this line.
    line: usize,
    /// The names of the module's own traits and of its imports, and whether Rust's library declares
    /// each.
    names: Vec<(String, bool)>,
    refused: Option<syn::Error>,
    /// The number of expressions that contain the current one.
    depth: u32,
    /// Whether an expression was refused for its depth.
    is_too_deep: bool,
    /// Whether `?` would leave a kernel.
    in_kernel: bool,
    /// The allowances of statements that have not been read yet.
    allowing: Vec<syn::Attribute>,
    /// The allowances that have been read.
    allowances: Vec<Allowance>,
}

impl Reader {
    fn new(item: &ItemFn) -> Reader {
        Reader::from_line(place::first_line(item))
    }

    fn from_line(line: usize) -> Reader {
        Reader {
            line,
            names: Vec::new(),
            refused: None,
            depth: 0,
            is_too_deep: false,
            in_kernel: false,
            allowing: Vec::new(),
            allowances: Vec::new(),
        }
    }

    fn refuse(&mut self, error: syn::Error) {
        match &mut self.refused {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    fn finish<T>(self, read: T) -> Result<T, syn::Error> {
        self.refused.map_or(Ok(read), Err)
    }
}

impl Path {
    /// Returns the names joined by `::`, without arguments.
    pub fn name(&self) -> String {
        self.segments.iter().map(|s| s.name.to_string()).collect::<Vec<_>>().join("::")
    }

    /// Returns the name of a path of one segment.
    pub fn single(&self) -> Option<&Ident> {
        match self.segments.as_slice() {
            [one] => Some(&one.name),
            _ => None,
        }
    }
}
