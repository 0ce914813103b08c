//! Rust tokens to the language's own tree.
//!
//! The tree holds what a kernel may say and where its tokens stand, and nothing else: an expression that has no meaning
//! on the device has no node. Reading refuses it with an error at the token that says what to write instead, and goes
//! on, so that all such mistakes come at once. Names are not resolved and nothing has a type; that is [`check`](crate::check)'s work.

pub(crate) mod allow;
mod assign;
mod attribute;
mod builtin;
mod callees;
mod expression;
mod function;
pub(crate) mod inline;
mod item;
mod pattern;
mod place;
mod types;

use crate::ir::Placement;
use crate::oracle::{Allowance, Coverage};
use crate::source::Source;
use crate::{Scalar, Target};
use proc_macro2::{Ident, TokenStream};
use std::fmt;
use std::rc::Rc;
use syn::ItemFn;

pub use attribute::{Argument as InstanceArgument, InstanceOf};
pub use item::{Bound, Enum, Impl, Item, Module, Struct, Trait, TraitItem, is_placement, module};
pub use place::Mark;

/// A kernel: a function and what its attributes say.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function.
    pub function: Function,
    /// Threads of a block, along 1 to 3 axes.
    pub block: Vec<BlockExtent>,
    /// Blocks of the grid: 1 to 3 expressions.
    pub grid: Vec<Expr>,
    /// Conditions of a launch, each with its Rust text.
    pub requires: Vec<(Expr, String)>,
    /// Instances that are compiled at expansion: what stands for the generic parameters, in order. One, empty, if there are
    /// none.
    pub instances: Vec<InstanceOf>,
    /// Blocks that a multiprocessor should hold at once.
    pub min_blocks: Option<Expr>,
    /// Registers a thread at most.
    pub max_registers: Option<Expr>,
    /// Whether a sum or difference with a product written in it is one `mul_add`.
    pub contract: bool,
    /// How near a GPU's results must be, by parameter.
    pub tolerances: Vec<Tolerance>,
    /// How much of its outputs it writes, by parameter.
    pub writes: Vec<(Ident, Coverage)>,
    /// What it is compiled for.
    pub target: Target,
    /// The path of the facade crate: `::kernel_dsl`, or what `crate = …` says.
    pub crate_path: syn::Path,
    /// The launch expressions as written, for the type-checking copy: block, grid, limits, requires.
    pub launch_tokens: LaunchTokens,
}

/// Threads of a block along an axis.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a kernel has three at most")]
pub enum BlockExtent {
    /// An expression.
    Computed(Expr),
    /// `least..=most`, or `(least..=most).step_by(step)`: what the launch says.
    #[allow(missing_docs)]
    Chosen { least: Expr, most: Expr, step: Option<Expr> },
}

impl BlockExtent {
    /// Its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let (first, second, third) = match self {
            BlockExtent::Computed(e) => (e, None, None),
            BlockExtent::Chosen { least, most, step } => (least, Some(most), step.as_ref()),
        };
        std::iter::once(first).chain(second).chain(third)
    }
}

/// `y(relative = 1e-6, absolute = 1e-7)` of the clause `tolerance`; what is not said is 0.
#[derive(Clone, Debug)]
pub struct Tolerance {
    /// The parameter.
    pub name: Ident,
    /// Finite, and 0 or more.
    pub relative: f64,
    /// Finite, and 0 or more.
    pub absolute: f64,
}

/// Launch expressions as the user wrote them.
#[derive(Clone, Debug, Default)]
pub struct LaunchTokens {
    /// Each is a `usize`.
    pub block: Vec<TokenStream>,
    /// Each is a `usize`.
    pub grid: Vec<TokenStream>,
    /// Blocks of a multiprocessor and registers of a thread, each a `usize`.
    pub limits: Vec<TokenStream>,
    /// Each is a `bool`.
    pub requires: Vec<TokenStream>,
}

/// A kernel's or device function's signature and body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Ident,
    /// Generic parameters, in order.
    pub generics: Vec<Generic>,
    /// Parameters, in order; a method's first is called `self`.
    pub parameters: Vec<Parameter>,
    /// Whether the first parameter is a receiver.
    pub receiver: bool,
    /// Return type; `None` is `()`.
    pub returns: Option<Type>,
    /// Of a constant, which is a function without parameters: where it is to lie.
    pub constant: Option<Placement>,
    /// What its statements may do though the oracle forbids it.
    pub allowances: Vec<Allowance>,
    /// What it does.
    pub body: Block,
    /// Its text.
    pub source: Source,
    /// A hash over its tokens and its place.
    pub hash: u64,
    /// The Rust that it was read from; of a constant, which is no function in Rust, none.
    pub written: Option<Written<ItemFn>>,
}

/// Syntax of rustc's, kept for what is to be said through it.
#[derive(Clone)]
pub struct Written<T>(pub Rc<T>);

impl<T> fmt::Debug for Written<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A generic parameter.
#[derive(Clone, Debug)]
pub struct Generic {
    /// Its name.
    pub name: Ident,
    /// What it stands for.
    pub kind: GenericKind,
}

/// What a generic parameter stands for.
#[derive(Clone, Debug)]
pub enum GenericKind {
    /// `const NAME: ty`; `usize` or `bool`.
    Constant(Scalar),
    /// `Name: Bound + Bound`, where clauses included.
    Type(Vec<Bound>),
}

/// `mut name: ty`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Ident,
    /// Declared `mut`.
    pub mutable: bool,
    /// Its type.
    pub ty: Type,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// Where it stands.
    pub mark: Mark,
}

/// What a type is.
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
    Array(Box<Type>, Box<Argument>),
    /// `[T]`, behind a reference
    Slice(Box<Type>),
    /// `&T`, `&mut T`
    Reference { mutable: bool, to: Box<Type> },
    /// `impl Fn(A, B) -> R`
    Function { parameters: Vec<Type>, returns: Option<Box<Type>> },
}

/// A path with the generic arguments of its segments.
#[derive(Clone, Debug)]
pub struct Path {
    /// Starts with `::`.
    pub global: bool,
    /// In order; never empty.
    pub segments: Vec<Segment>,
    /// Where it stands.
    pub mark: Mark,
}

/// One name of a path.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The name.
    pub name: Ident,
    /// What stands between `<` and `>`.
    pub arguments: Vec<Argument>,
}

/// A generic argument, or an array's length.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A type, or the name of a generic constant.
    Type(Type),
    /// A number.
    Number(u32, Mark),
    /// `true` or `false`.
    Bool(bool, Mark),
}

/// Statements and the value of the last expression.
#[derive(Clone, Debug)]
pub struct Block {
    /// In order.
    pub statements: Vec<Statement>,
    /// The block's value.
    pub value: Option<Box<Expr>>,
    /// The braces.
    pub mark: Mark,
}

/// A statement.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Statement {
    /// `let pattern: ty = value;`, perhaps with `else { … }`
    Let { pattern: Pattern, ty: Option<Type>, value: Option<Expr>, otherwise: Option<Box<Block>>, mark: Mark },
    /// `value;`, or a block-like expression without a semicolon.
    Expr(Expr),
    /// `const { assert!(condition, "message") }`
    Assert { condition: Expr, message: String },
    /// `const NAME: ty = value;`
    Constant { name: Ident, ty: Type, value: Expr, mark: Mark },
}

/// What a `let`, `for`, `match` or closure binds, and of what values it matches.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Pattern {
    /// `_`
    Ignore,
    /// `mut name`
    Name { name: Ident, mutable: bool },
    /// `(a, b)`
    Tuple(Vec<Pattern>, Mark),
    /// `[a, b]`
    Array(Vec<Pattern>, Mark),
    /// A literal or associated constant.
    Value(Box<Expr>),
    /// `low..=high`, `low..high`, or without one of the two.
    Range { low: Option<Box<Expr>>, high: Option<Box<Expr>>, closed: bool },
    /// `a | b`
    Any(Vec<Pattern>, Mark),
    /// `name @ pattern`
    Named { name: Ident, mutable: bool, pattern: Box<Pattern> },
    /// `Some(pattern)`
    Some(Box<Pattern>, Mark),
    /// `None`
    None(Mark),
    /// `&pattern`
    Reference(Box<Pattern>, Mark),
    /// `..`, in a tuple or array.
    Rest(Mark),
    /// `Name { field: pattern, .. }` or `Name(a, b)`
    Struct { path: Path, fields: Vec<(Member, Pattern)>, rest: bool, mark: Mark },
}

/// What an assignment assigns to.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Assignee {
    /// `_`
    Ignore,
    /// A variable or an element.
    Place(Box<Expr>),
    /// `(a, b)`
    Tuple(Vec<Assignee>, Mark),
    /// `[a, b]`
    Array(Vec<Assignee>, Mark),
    /// `..`
    Rest(Mark),
}

/// A case of a `match`.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Values that it is for.
    pub pattern: Pattern,
    /// `if guard`
    pub guard: Option<Expr>,
    /// What it gives.
    pub body: Expr,
    /// The pattern.
    pub mark: Mark,
}

/// `pattern: ty` of a closure.
#[derive(Clone, Debug)]
pub struct ClosureParameter {
    /// What it binds.
    pub pattern: Pattern,
    /// Its type, if written.
    pub ty: Option<Type>,
    /// Both.
    pub mark: Mark,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub mark: Mark,
}

/// What an expression is.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ExprKind {
    /// An integer with its suffix.
    Integer(u64, Option<Scalar>),
    /// A float with its suffix.
    Float(Float, Option<Scalar>),
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
    /// `(a, b) = value` and its kin.
    Destructure {
        into: Assignee,
        value: Box<Expr>,
    },
    Cast(Box<Expr>, Type),
    /// `path(arguments)`
    Call(Path, Vec<Expr>),
    /// `receiver.name::<generics>(arguments)`
    Method {
        receiver: Box<Expr>,
        name: Ident,
        generics: Vec<Argument>,
        arguments: Vec<Expr>,
    },
    Index(Box<Expr>, Box<Expr>),
    Field(Box<Expr>, Member),
    /// `ptx!(…)`, with the values that come in.
    Inline {
        source: crate::ptx::inline::Source,
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
    Repeat(Box<Expr>, Argument),
    Reference {
        mutable: bool,
        place: Box<Expr>,
    },
    /// `start..end`
    Range(Box<Expr>, Box<Expr>),
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Option<Box<Expr>>,
    },
    /// `match`, and what `if let` and `while let` stand for.
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
    Labelled {
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
    /// Something refused; the error has been noted.
    Refused,
}

/// The value of a float literal in either precision, each rounded once: by way of the other it would be twice.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Float {
    pub single: f32,
    pub double: f64,
}

/// The name of a part: `.0`, `.name`.
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

/// Reads a kernel: the attribute's tokens, and the function with its other attributes (`#[requires(…)]` among them).
pub fn kernel(attribute: TokenStream, item: &ItemFn) -> Result<Kernel, syn::Error> {
    let mut reader = Reader::new(item);
    let function = reader.function(item);
    let kernel = reader.attributes(attribute, item, function);
    reader.finish(kernel)
}

/// Reads a device function.
pub fn device(item: &ItemFn) -> Result<Function, syn::Error> {
    let mut reader = Reader::new(item);
    let function = reader.function(item);
    reader.finish(function)
}

/// Reads with all mistakes collected.
struct Reader {
    /// Line that places count from.
    line: usize,
    refused: Option<syn::Error>,
    /// Allowances of the function whose statements have not been read.
    allowing: Vec<syn::Attribute>,
    /// Those that have been.
    allowances: Vec<Allowance>,
}

impl Reader {
    fn new(item: &ItemFn) -> Reader {
        Reader::from_line(place::first_line(item))
    }

    fn from_line(line: usize) -> Reader {
        Reader { line, refused: None, allowing: Vec::new(), allowances: Vec::new() }
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
    /// The names joined by `::`, without arguments.
    pub fn name(&self) -> String {
        self.segments.iter().map(|s| s.name.to_string()).collect::<Vec<_>>().join("::")
    }

    /// The name of a path of one segment.
    pub fn single(&self) -> Option<&Ident> {
        match self.segments.as_slice() {
            [one] => Some(&one.name),
            _ => None,
        }
    }
}

impl ExprKind {
    /// Whether rustc lets the expression be a statement without a semicolon.
    pub fn is_block_like(&self) -> bool {
        use ExprKind::*;
        matches!(self, If { .. } | Match { .. } | Block(_) | Labelled { .. } | Loop { .. } | While { .. } | For { .. })
    }
}
