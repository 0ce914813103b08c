//! Name resolution, type inference and mutability: from the syntax tree to HIR.
//!
//! Types are inferred by unification over one table for each function, as in rustc, so that a
//! kernel means the same in both compilers. rustc checks the same body, and reports a mistake that
//! both find (see [`expand`](crate::expand)). The messages of this module are for code that rustc
//! accepts and the device does not support. Users of the compiler as a library see all of them.
//! [`ownership`](crate::ownership) has the checks that only rustc makes of a kernel in a crate.
//!
//! The resulting HIR has no unknown type, no unresolved name, and no assignment to a variable that
//! is not `mut`.

mod array;
mod bound;
mod call;
mod closure;
mod comparison;
mod convert;
mod destructure;
mod dot;
mod environment;
mod expression;
mod group;
mod item;
mod iterate;
mod nominal;
mod operator;
mod option;
mod pattern;
mod result;
mod shared;
mod statement;
mod types;
mod variant;
mod written;

use crate::Scalar;
use crate::hir::{self, Builtin, FunctionId, GenericKind, LabelId, LocalId, Root, TraitBound, TypeId};
use crate::ir;
use crate::oracle::{Coverage, DeclaredOutput};
use crate::syntax::{self, SpanPair};
use environment::Environment;
use proc_macro2::TokenStream;
use quote::quote;
use types::{Finished, Ty, TypeIndex, TypeNames, TypeTable, UnknownKind};

/// A device item that a function names: its path as written, and its library.
#[derive(Clone, Debug)]
pub struct ItemReference {
    /// The path, as [`syntax::Path::written`] gives it.
    pub path: String,
    /// The item and all items that it refers to.
    pub library: hir::DeviceLibrary,
}

/// An error in names, types or mutability.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The first and last token.
    pub mark: SpanPair,
    /// The message.
    pub message: String,
    /// The reporter of the error if rustc runs.
    pub reported_by: ReportedBy,
}

/// The reporter of an error, so that each error is reported once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedBy {
    /// This compiler, if rustc accepts the function.
    Compiler,
    /// rustc in any case, at a bound of the launch functions.
    LaunchBound,
}

/// A checked item, with the facts that rustc can confirm.
#[derive(Clone, Debug)]
pub struct CheckedItem<T> {
    /// The result.
    pub hir: T,
    /// Each variable bound by a plain `let`: the token of its name, and the inferred type, if Rust
    /// can write it.
    pub locals: Vec<(proc_macro2::Span, TokenStream)>,
    /// Each called function of the prelude: its path as written, and below `kernel_dsl::prelude`,
    /// both with generic arguments.
    pub prelude: Vec<(TokenStream, TokenStream)>,
}

/// Checks a kernel. `callees` are the device items that the kernel names.
pub fn kernel(
    kernel: &syntax::Kernel,
    callees: &[ItemReference],
) -> Result<CheckedItem<hir::Program>, Vec<Diagnostic>> {
    let blank = item::blank(&kernel.function);
    let mut environment = Environment::new(Some(blank), callees);
    if kernel.names_result() {
        environment.add_result();
    }
    let mut checker = FunctionChecker::new(&kernel.function, &ItemScope::default(), &environment);
    checker.signature();
    let usize = checker.table.scalar(Scalar::Usize);
    let bool = checker.table.scalar(Scalar::Bool);
    let list = |checker: &mut FunctionChecker, all: &[syntax::Expr]| -> Vec<hir::Expr> {
        all.iter().map(|e| checker.launch_expression(e, usize)).collect()
    };
    let block = kernel.block.iter().map(|extent| match extent {
        syntax::BlockExtent::Computed(e) => hir::BlockExtent::Computed(checker.launch_expression(e, usize)),
        syntax::BlockExtent::Chosen { least, most, step } => hir::BlockExtent::Chosen {
            least: checker.launch_expression(least, usize),
            most: checker.launch_expression(most, usize),
            step: step.as_ref().map(|step| checker.launch_expression(step, usize)),
        },
    });
    let mut block: Vec<_> = block.collect();
    let mut grid = list(&mut checker, &kernel.grid);
    let mut min_blocks = kernel.min_blocks.as_ref().map(|e| checker.launch_expression(e, usize));
    let mut max_registers = kernel.max_registers.as_ref().map(|e| checker.launch_expression(e, usize));
    let mut requires: Vec<_> = kernel
        .requires
        .iter()
        .map(|(e, text)| hir::Requirement { condition: checker.launch_expression(e, bool), text: text.clone() })
        .collect();
    if let Some(ty) = &kernel.function.returns {
        checker.report(ty.mark, "a kernel cannot return a value: write the results to buffers");
    }
    checker.parameters_of_kernel();
    let instances = kernel.instances.iter().map(|i| checker.instance(i)).collect();
    let tolerances = kernel.tolerances.iter().filter_map(|t| checker.tolerance(t)).collect();
    let outputs = kernel.writes.iter().filter_map(|(name, coverage)| checker.output(name, *coverage)).collect();
    let mut body = checker.body();
    let mut finish = checker.finish(&mut body);
    let conditions = requires.iter_mut().map(|r| &mut r.condition);
    let extents = block.iter_mut().flat_map(hir::BlockExtent::expressions_mut);
    for e in extents.chain(&mut grid).chain(&mut min_blocks).chain(&mut max_registers).chain(conditions) {
        finish.expr(e);
    }
    let (function, rest) = finish.done(body)?;
    let launch = hir::LaunchContract {
        block,
        grid,
        requires,
        min_blocks,
        max_registers,
        contract: kernel.contract,
        assertions: kernel.assertions,
        cooperative: kernel.cooperative,
        target: kernel.target,
        instances,
        tolerances,
        outputs,
    };
    environment.functions[0] = function;
    Ok(rest.map(|()| hir::Program { launch, functions: environment.functions, items: environment.items }))
}

/// Checks a device function. `callees` are the device items that the function names.
pub fn device(
    function: &syntax::Function,
    callees: &[ItemReference],
) -> Result<CheckedItem<hir::DeviceLibrary>, Vec<Diagnostic>> {
    let mut environment = Environment::new(Some(item::blank(function)), callees);
    if function.names_result() {
        environment.add_result();
    }
    let mut checker = FunctionChecker::new(function, &ItemScope::default(), &environment);
    checker.signature();
    let mut body = checker.body();
    let finish = checker.finish(&mut body);
    let (function, rest) = finish.done(body)?;
    environment.functions[0] = function;
    let root = Some(Root::Function(FunctionId(0)));
    Ok(rest.map(|()| hir::DeviceLibrary { root, functions: environment.functions, items: environment.items }))
}

pub use item::{CheckedModule, ItemDiagnostics, ItemPart, module};

/// The surroundings of a function: the generic parameters of its impl, and the meaning of `Self`.
#[derive(Clone, Copy, Default)]
struct ItemScope<'a> {
    generics: &'a [syntax::Generic],
    itself: Option<SelfMeaning<'a>>,
}

/// The meaning of `Self`.
#[derive(Clone, Copy)]
enum SelfMeaning<'a> {
    /// In a trait: the first type parameter.
    Trait(hir::TraitId),
    /// In an impl: its type.
    Type(&'a syntax::Type),
}

impl<T> CheckedItem<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> CheckedItem<U> {
        CheckedItem { hir: f(self.hir), locals: self.locals, prelude: self.prelude }
    }
}

/// A function being checked.
struct FunctionChecker<'a> {
    function: &'a syntax::Function,
    /// The generic parameters; types in their bounds are indices into `table` until the end.
    generics: Vec<hir::Generic>,
    itself: Option<TypeIndex>,
    environment: &'a Environment,
    table: TypeTable,
    locals: Vec<LocalVariable>,
    /// Names in scope, innermost last.
    scope: Vec<(String, LocalId)>,
    /// The values of constants in scope that are known numbers.
    constants: Vec<(LocalId, u32)>,
    /// Associated types that are not resolved yet, each with its type, trait, index and
    /// placeholder.
    projections: Vec<(TypeIndex, hir::TraitId, u32, TypeIndex)>,
    loops: Vec<Loop>,
    labels: u32,
    /// The number of closures and functions passed as closures so far.
    closures: u32,
    returns: TypeIndex,
    /// Whether the next expression is the left operand of `&` with a small number, which selects
    /// bits.
    masks: bool,
    /// Where a pattern matches a value through references, so that its names are references:
    /// whether these are mutable.
    borrows: Option<bool>,
    /// In the alternatives of a pattern after the first: the names that the first binds.
    alternatives: Vec<(String, LocalId)>,
    /// Literals whose bits depend on an inferred type.
    literals: Vec<Literal>,
    /// Operators whose operands had no known type when they were checked.
    operands: Vec<OperatorOperands>,
    /// Types that must satisfy bounds.
    bounded: Vec<bound::BoundedType>,
    /// The types of negated integers, while they are unknown.
    negated: Vec<(TypeIndex, SpanPair)>,
    /// The conversions by `from` and `into`, whose types may be unknown.
    conversions: Vec<NumberConversion>,
    /// The expression that is being checked.
    current: SpanPair,
    /// Shifts by a literal: the shifted type, the amount, and the tokens of the amount.
    shifts: Vec<(TypeIndex, u128, SpanPair)>,
    /// Plain `let`s, for rustc to confirm.
    bound: Vec<(proc_macro2::Span, LocalId)>,
    /// Calls of the prelude, for rustc to confirm.
    called: Vec<Called>,
    diagnostics: Vec<Diagnostic>,
}

/// A conversion of a number whose types may be found later.
struct NumberConversion {
    from: TypeIndex,
    to: TypeIndex,
    mark: SpanPair,
}

/// The operands of an operator.
struct OperatorOperands {
    ty: TypeIndex,
    of: OperatorClass,
    mark: SpanPair,
}

/// The types that an operator of numbers accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArithmeticOperands {
    Integers,
    IntegersAndBools,
    IntegersAndFloats,
}

/// An operator, as far as the type of its operands depends on it.
#[derive(Clone, Copy)]
enum OperatorClass {
    Arithmetic(ArithmeticOperands),
    Comparison(ir::Comparison),
}

/// A call of a function of the prelude.
struct Called {
    /// The path as written, and below `kernel_dsl::prelude`.
    written: TokenStream,
    canonical: TokenStream,
    /// The generic arguments, types or numbers.
    arguments: Vec<TypeIndex>,
    /// Whether the type of a closure that combines two values is another generic argument.
    combines: bool,
}

/// The form of a variable's declaration.
#[derive(Clone, Copy, Default)]
struct VariableForm {
    mutable: bool,
    /// Declared without a value: the first assignment needs no `mut`, and rustc checks that it is
    /// the only one.
    unset: bool,
}

struct LocalVariable {
    name: String,
    ty: TypeIndex,
    form: VariableForm,
    /// Assigned as a whole, or borrowed mutably.
    assigned: bool,
    /// Declared `const`.
    constant: bool,
    mark: SpanPair,
}

struct Loop {
    label: Option<String>,
    id: LabelId,
    /// For a `loop` or block: the type of its `break` values, once there is one.
    result: Option<TypeIndex>,
    what: LabeledConstruct,
}

/// A construct that `break` can leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LabeledConstruct {
    Loop,
    /// `while` and `for`, which have no value.
    Counted,
    Block,
}

#[derive(Clone, Copy)]
enum Literal {
    Integer(u128, SpanPair),
    Float(syntax::FloatLiteral),
}

impl<'a> FunctionChecker<'a> {
    fn new(function: &'a syntax::Function, scope: &ItemScope, environment: &'a Environment) -> FunctionChecker<'a> {
        let mut table = TypeTable::default();
        let returns = table.add(Ty::Unit);
        let mut checker = FunctionChecker {
            function,
            generics: Vec::new(),
            itself: None,
            environment,
            table,
            locals: Vec::new(),
            scope: Vec::new(),
            constants: Vec::new(),
            projections: Vec::new(),
            loops: Vec::new(),
            labels: 0,
            closures: 0,
            returns,
            masks: false,
            borrows: None,
            alternatives: Vec::new(),
            literals: Vec::new(),
            operands: Vec::new(),
            bounded: Vec::new(),
            negated: Vec::new(),
            conversions: Vec::new(),
            current: function.body.mark,
            shifts: Vec::new(),
            bound: Vec::new(),
            called: Vec::new(),
            diagnostics: Vec::new(),
        };
        if let Some(SelfMeaning::Trait(id)) = scope.itself {
            let kind = GenericKind::Type(vec![TraitBound::Trait(id)]);
            checker.generics.push(hir::Generic { name: "Self".into(), kind });
            checker.itself = Some(checker.table.add(Ty::Parameter(0)));
        }
        // A bound may name any of the generic parameters.
        let declared: Vec<_> = scope.generics.iter().chain(&function.generics).collect();
        for generic in &declared {
            let kind = match generic.kind {
                syntax::GenericKind::Constant(scalar) => GenericKind::Constant(scalar),
                syntax::GenericKind::Type(_) => GenericKind::Type(Vec::new()),
            };
            checker.generics.push(hir::Generic { name: generic.name.to_string(), kind });
        }
        let first = checker.generics.len() - declared.len();
        for (i, generic) in declared.into_iter().enumerate() {
            if let syntax::GenericKind::Type(bounds) = &generic.kind {
                let bounds = checker.bounds(bounds);
                checker.generics[first + i].kind = GenericKind::Type(bounds);
            }
        }
        if let Some(SelfMeaning::Type(ty)) = scope.itself {
            checker.itself = Some(checker.ty(ty));
        }
        checker
    }

    /// Checks an expression that a launch evaluates on the host, which must have type `wanted`.
    fn launch_expression(&mut self, e: &syntax::Expr, wanted: TypeIndex) -> hir::Expr {
        let mut expr = self.expr_of_type(e, wanted);
        let mut long = false;
        hir::visit::expr(&mut expr, &mut |e| long |= self.table.as_scalar(TypeIndex(e.ty.0)) == Some(Scalar::U128));
        if long {
            self.report(
                e.mark,
                "a launch computes with at most 64 bits: pass a `u64`, or check the `u128` in the body",
            );
        }
        expr
    }

    fn bounds(&mut self, bounds: &[syntax::TraitBound]) -> Vec<TraitBound> {
        let mut all = Vec::with_capacity(bounds.len());
        for bound in bounds {
            if let Some((parameters, returns)) = &bound.signature {
                let parameters = parameters.iter().map(|t| TypeId(self.ty(t).0)).collect();
                all.push(TraitBound::Function { parameters, returns: TypeId(self.ty(returns).0) });
                continue;
            }
            let last = bound.path.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
            match self.environment.find(&bound.path.written()) {
                Some(Root::Trait(id)) => all.push(TraitBound::Trait(id)),
                _ if bound.path.is_builtin_bound() => {
                    all.push(TraitBound::Builtin(Builtin::from_name(&last).unwrap_or(Builtin::Value)));
                }
                _ => self.report(
                    bound.path.mark,
                    format!("`{}` is not a device trait: put the trait into a `#[device] mod`", bound.path.name()),
                ),
            }
        }
        all
    }

    /// Returns the generic arguments of one instance.
    fn instance(&mut self, instance: &syntax::InstanceOf) -> hir::DeclaredInstance {
        let constants = instance.arguments.iter().map(|argument| match argument {
            syntax::InstanceArgument::Usize(n) => Some(hir::Constant::Usize(*n)),
            syntax::InstanceArgument::Bool(b) => Some(hir::Constant::Bool(*b)),
            syntax::InstanceArgument::Integer(n) => Some(hir::Constant::Integer(*n)),
            syntax::InstanceArgument::Type { path, .. } => self.constant_type(path),
        });
        let arguments = hir::Instance(constants.collect::<Option<_>>().unwrap_or_default());
        hir::DeclaredInstance { name: instance.name.clone(), arguments }
    }

    fn constant_type(&mut self, path: &syntax::Path) -> Option<hir::Constant> {
        let single = path.single().map(|name| name.to_string());
        if let Some(scalar) = single.and_then(|name| Scalar::from_name(&name)) {
            return Some(hir::Constant::Scalar(scalar));
        }
        match path.segments.last().and_then(syntax::Segment::float16) {
            Some(Ok(format)) => return Some(hir::Constant::Scalar(Scalar::Custom(format))),
            Some(Err(why)) => {
                self.report(path.mark, why);
                return None;
            }
            None => {}
        }
        let environment = self.environment;
        let (name, hash) = match environment.find(&path.written()) {
            Some(Root::Struct(id)) => (&environment.struct_of(id).name, environment.struct_of(id).hash),
            Some(Root::Enum(id)) => {
                let item = &environment.items.enums[id.0 as usize];
                (&item.name, item.hash)
            }
            Some(Root::Function(id)) => (&environment.function(id).name, environment.function(id).hash),
            _ => {
                let message = "a type argument must be an element type, a device struct or enum, or a `#[device(value)]` function";
                self.report(path.mark, message);
                return None;
            }
        };
        Some(hir::Constant::Item(hir::ItemArgument { name: name.clone().into(), hash, library: Vec::new().into() }))
    }

    fn report(&mut self, mark: SpanPair, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { mark, message: message.into(), reported_by: ReportedBy::Compiler });
    }

    /// Reports an error if `what` is private to a module, and this function is outside.
    fn visible(&mut self, private_to: u64, what: impl FnOnce() -> String, mark: SpanPair) {
        if private_to != 0 && private_to != self.environment.module {
            let what = what();
            self.report(mark, format!("{what} is private to its module: declare it `pub`"));
        }
    }

    fn wrong(&mut self) -> TypeIndex {
        self.table.add(Ty::Wrong)
    }

    fn named(&self, id: TypeIndex) -> String {
        self.table.name(id, TypeNames { generics: &self.generics, items: &self.environment.items })
    }

    fn signature(&mut self) {
        for p in &self.function.parameters {
            let ty = self.ty(&p.ty);
            let mark = p.ty.mark;
            let form = VariableForm { mutable: p.mutable, unset: false };
            self.declare_as(form, p.name.to_string(), ty, mark);
        }
        if let Some(ty) = &self.function.returns {
            self.returns = self.ty(ty);
            if self.is_closure(self.returns) {
                self.report(ty.mark, "a device function cannot return a closure: create the closure where it is called, and pass the values it captures");
            }
        }
    }

    /// Reports an error for each parameter of a kernel that a launch cannot pass.
    fn parameters_of_kernel(&mut self) {
        for (i, p) in self.function.parameters.iter().enumerate() {
            let ty = self.locals[i].ty;
            let tuple = matches!(self.table.get(ty), Ty::Tuple(_));
            let passable = self.can_be_passed(ty);
            if tuple || !passable {
                let message = format!(
                    "a kernel cannot take a parameter of type `{}`; supported are numbers, `bool`, `&[T]`, `&mut [T]`, views, and arrays and device structs of these",
                    self.named(ty)
                );
                // A launch could pass the parts of a tuple, as it does for a tuple in a struct.
                let reported_by = if passable { ReportedBy::Compiler } else { ReportedBy::LaunchBound };
                self.diagnostics.push(Diagnostic { mark: p.ty.mark, message, reported_by });
            }
        }
    }

    /// Returns whether a launch can pass a value of the type.
    fn can_be_passed(&mut self, id: TypeIndex) -> bool {
        match self.table.get(id).clone() {
            Ty::Tuple(parts) => parts.into_iter().all(|part| self.can_be_passed(part)),
            Ty::Array(element, _) => self.can_be_passed(element),
            Ty::Struct(item, arguments) => {
                let fields = self.field_types(item, &arguments);
                fields.into_iter().all(|(_, field)| self.can_be_passed(field))
            }
            Ty::Scalar(_) | Ty::Slice { .. } | Ty::View { .. } | Ty::Wrong => true,
            Ty::Enum(..) => self.is_discriminant(id),
            Ty::Parameter(_) | Ty::Projection { .. } => true,
            _ => false,
        }
    }

    /// Returns the index of the parameter `name` that the clause `what` names. Reports an error if
    /// there is no such parameter, or if the kernel cannot write to it.
    fn written_parameter(&mut self, name: &proc_macro2::Ident, what: &str) -> Option<u32> {
        let mark = SpanPair { first: name.span(), last: name.span(), span: crate::source::Span::default() };
        let found = self.function.parameters.iter().position(|p| p.name == *name);
        let Some(parameter) = found else {
            self.report(mark, format!("the kernel has no parameter `{name}`"));
            return None;
        };
        let written = match self.table.get(self.locals[parameter].ty) {
            Ty::Slice { mutable, .. } | Ty::View { mutable, .. } => *mutable,
            Ty::Struct(..) | Ty::Parameter(_) | Ty::Wrong => true,
            _ => false,
        };
        if !written {
            self.report(mark, format!("{what} needs a parameter that the kernel writes; `{name}` is read-only"));
            return None;
        }
        Some(parameter as u32)
    }

    fn tolerance(&mut self, tolerance: &syntax::Tolerance) -> Option<hir::Tolerance> {
        let syntax::Tolerance { name, relative, absolute } = tolerance;
        let parameter = self.written_parameter(name, "a tolerance")?;
        Some(hir::Tolerance { parameter, relative: *relative, absolute: *absolute })
    }

    fn output(&mut self, name: &proc_macro2::Ident, coverage: Coverage) -> Option<DeclaredOutput> {
        Some(DeclaredOutput { index: self.written_parameter(name, "`writes`")?, coverage })
    }

    fn body(&mut self) -> hir::Block {
        let returns = self.returns;
        let (block, ty) = self.block(&self.function.body, Some(returns));
        self.coerce(ty, returns, self.function.body.value.as_ref().map_or(self.function.body.mark, |v| v.mark));
        block
    }

    /// Declares a variable that has a value and is not `mut`.
    fn declare(&mut self, name: String, ty: TypeIndex, mark: SpanPair) -> LocalId {
        self.declare_as(VariableForm::default(), name, ty, mark)
    }

    fn declare_as(&mut self, form: VariableForm, name: String, ty: TypeIndex, mark: SpanPair) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(LocalVariable { name: name.clone(), ty, form, assigned: false, constant: false, mark });
        self.scope.push((name, id));
        id
    }

    /// Returns whether a value of type `actual` is valid where `wanted` is expected; reports an
    /// error if not.
    fn coerce(&mut self, actual: TypeIndex, wanted: TypeIndex, mark: SpanPair) -> bool {
        let fits = match (self.table.get(actual).clone(), self.table.get(wanted).clone()) {
            (Ty::Never, _) => true,
            (Ty::Slice { element: a, mutable: true }, Ty::Slice { element: b, mutable: false }) => {
                self.table.unify(a, b)
            }
            (Ty::Reference { to: a, mutable: true }, Ty::Reference { to: b, mutable: false }) => self.table.unify(a, b),
            _ => self.table.unify(actual, wanted),
        };
        if !fits && self.callable_alike(actual, wanted) {
            self.report(
                mark,
                "closures are resolved at compile time; this one would be chosen at run time. Call it in each branch",
            );
        } else if !fits {
            let (actual, wanted) = (self.named(actual), self.named(wanted));
            self.report(mark, format!("expected `{wanted}`, found `{actual}`"));
        }
        fits
    }

    /// Ends inference, and resolves the types, literals and operators that depend on it.
    fn finish(mut self, body: &mut hir::Block) -> Finish<'a> {
        self.project();
        for OperatorOperands { ty, of, mark } in std::mem::take(&mut self.operands) {
            match of {
                OperatorClass::Arithmetic(allowed) => self.operands(ty, allowed, mark),
                OperatorClass::Comparison(comparison) => self.comparable(ty, comparison, mark),
            }
        }
        self.bounded();
        self.negations();
        self.check_conversions();
        let types = Finished::new(&self.table);
        let mut finish = Finish { checker: self, types };
        hir::visit::block(body, &mut |e| finish.one(e));
        finish
    }
}

/// A function after inference, while its expressions are being resolved.
struct Finish<'a> {
    checker: FunctionChecker<'a>,
    types: Finished,
}

impl Finish<'_> {
    fn expr(&mut self, e: &mut hir::Expr) {
        hir::visit::expr(e, &mut |e| self.one(e));
    }

    fn one(&mut self, e: &mut hir::Expr) {
        e.ty = self.types.get(&self.checker.table, TypeIndex(e.ty.0));
        match &mut e.kind {
            hir::ExprKind::Literal(index) => {
                let hir::Type::Scalar(ty) = self.types.types[e.ty.0 as usize] else {
                    // A literal without a scalar type is the discriminant of a variant, or the zero
                    // of a type parameter.
                    *index = match self.checker.literals[*index as usize] {
                        Literal::Integer(n, _) => n as u64,
                        Literal::Float(x) => x.double.to_bits(),
                    };
                    return;
                };
                *index = match self.checker.literals[*index as usize] {
                    Literal::Float(x) if ty == Scalar::F32 => u64::from(x.single.to_bits()),
                    Literal::Float(x) => x.double.to_bits(),
                    Literal::Integer(n, _) if ty == Scalar::U128 && n > u64::MAX.into() => {
                        e.kind = hir::ExprKind::LongLiteral(n);
                        return;
                    }
                    Literal::Integer(n, mark) => {
                        if n > ty.mask().into() {
                            self.checker.report(
                                mark,
                                format!("`{n}` does not fit in `{ty}`, which has {} bits on the device", ty.bits()),
                            );
                        }
                        n as u64
                    }
                };
            }
            hir::ExprKind::Call { generics, .. } | hir::ExprKind::Function { generics, .. } => {
                for g in generics {
                    *g = self.types.get(&self.checker.table, TypeIndex(g.0));
                }
            }
            hir::ExprKind::CallMethod { of, generics, .. } | hir::ExprKind::MethodValue { of, generics, .. } => {
                for g in generics.iter_mut().chain([of]) {
                    *g = self.types.get(&self.checker.table, TypeIndex(g.0));
                }
            }
            hir::ExprKind::CallItem { of, .. } | hir::ExprKind::SizeOf(of) => {
                *of = self.types.get(&self.checker.table, TypeIndex(of.0));
            }
            hir::ExprKind::Assertion { condition: Some(condition), message, .. } => {
                if let hir::ExprKind::Compare(_, side, _) = &condition.kind
                    && self.is_shown(side.ty)
                {
                    message.push_str(" (left: {}, right: {})");
                }
            }
            _ => {}
        }
    }

    /// Returns whether a message can show values of the type: whether lowering makes it a scalar.
    fn is_shown(&self, ty: hir::TypeId) -> bool {
        match self.types.types[ty.0 as usize] {
            hir::Type::Scalar(_) | hir::Type::Parameter(_) | hir::Type::Projection { .. } => true,
            hir::Type::Enum(id, _) => self.checker.environment.items.enums[id.0 as usize].data.is_none(),
            _ => false,
        }
    }

    /// Reports an error for each shift by a literal that is at least the width.
    fn shifts(&mut self) {
        for (of, by, mark) in std::mem::take(&mut self.checker.shifts) {
            let ty = self.types.get(&self.checker.table, of);
            if let hir::Type::Scalar(ty) = self.types.types[ty.0 as usize]
                && by >= u128::from(ty.bits())
            {
                self.checker.report(
                    mark,
                    format!("a shift by {by} is out of range for `{ty}`, which has {} bits: shift a wider type, or use `wrapping_shl` or `wrapping_shr`, which shift modulo {}", ty.bits(), ty.bits()),
                );
            }
        }
    }

    fn done(mut self, body: hir::Block) -> Result<(hir::Function, CheckedItem<()>), Vec<Diagnostic>> {
        let locals: Vec<_> = self
            .checker
            .locals
            .iter()
            .map(|v| hir::Local {
                name: v.name.clone(),
                ty: self.types.get(&self.checker.table, v.ty),
                // A view is declared `mut` to write its elements, so its variable counts as mutable
                // only if it is assigned.
                mutable: match self.checker.table.get(v.ty) {
                    Ty::View { .. } | Ty::Slice { .. } | Ty::Shared { .. } => v.assigned || v.form.unset,
                    _ => v.form.mutable || v.form.unset,
                },
                constant: v.constant,
                late: v.form.unset && !v.form.mutable,
                span: v.mark.span,
            })
            .collect();
        let returns = self.types.get(&self.checker.table, self.checker.returns);
        self.shifts();
        // An unknown type is an error only if a variable has this type; rustc reports the rest.
        // After other errors nothing is reported, because they may have caused the unknown type.
        let unknown = std::mem::take(&mut self.types.unknown);
        for id in unknown.into_iter().filter(|_| self.checker.diagnostics.is_empty()).collect::<Vec<_>>() {
            let root = self.checker.table.root(id);
            if let Some(v) = self.checker.locals.iter().find(|v| self.checker.table.root(v.ty) == root) {
                let (mark, message) =
                    (v.mark, format!("cannot infer the type of `{}`: annotate it, `{}: …`", v.name, v.name));
                self.checker.report(mark, message);
            }
        }
        let mut checker = self.checker;
        if !checker.diagnostics.is_empty() {
            return Err(checker.diagnostics);
        }
        finish_bounds(&mut checker.generics, &mut self.types, &checker.table);
        let checked = CheckedItem {
            locals: checker
                .bound
                .iter()
                .filter_map(|(span, local)| {
                    Some((*span, rust_type(&self.types.types, &checker.generics, locals[local.0 as usize].ty)?))
                })
                .collect(),
            prelude: checker
                .called
                .iter()
                .filter_map(|Called { written, canonical, arguments, combines }| {
                    let types = arguments.iter().map(|id| {
                        let id = self.types.get(&checker.table, *id);
                        rust_type(&self.types.types, &checker.generics, id)
                    });
                    let mut types: Vec<TokenStream> = types.collect::<Option<_>>()?;
                    if let (true, Some(ty)) = (combines, types.first()) {
                        types.push(quote!(fn(#ty, #ty) -> #ty));
                    }
                    let arguments = if types.is_empty() { quote!() } else { quote!(::<#(#types),*>) };
                    Some((quote!(#written #arguments), quote!(#canonical #arguments)))
                })
                .collect(),
            hir: (),
        };
        let function = hir::Function {
            name: checker.function.name.to_string(),
            hash: checker.function.hash,
            source: checker.function.source.clone(),
            generics: checker.generics,
            types: self.types.types,
            parameters: checker.function.parameters.len() as u32,
            locals,
            returns,
            constant: checker.function.constant,
            allowances: checker.function.allowances.clone(),
            private_to: 0,
            body,
        };
        Ok((function, checked))
    }
}

/// Resolves the types in bounds.
fn finish_bounds(generics: &mut [hir::Generic], types: &mut Finished, table: &TypeTable) {
    for generic in generics {
        let GenericKind::Type(bounds) = &mut generic.kind else { continue };
        for bound in bounds {
            if let TraitBound::Function { parameters, returns } = bound {
                for ty in parameters.iter_mut().chain([returns]) {
                    *ty = types.get(table, TypeIndex(ty.0));
                }
            }
        }
    }
}

/// Returns whether Rust can name a type parameter.
fn is_named(parameter: &str) -> bool {
    parameter != "Self" && !syntax::is_anonymous(parameter)
}

/// Returns a type as Rust tokens that need no import; `None` for types of the prelude.
fn rust_type(types: &[hir::Type], generics: &[hir::Generic], id: hir::TypeId) -> Option<TokenStream> {
    let ident = |name: &str| proc_macro2::Ident::new(name, proc_macro2::Span::call_site());
    Some(match &types[id.0 as usize] {
        hir::Type::Scalar(s) if s.is_half() => return None,
        hir::Type::Scalar(s) => {
            let name = ident(s.name());
            quote!(::core::primitive::#name)
        }
        hir::Type::Tuple(parts) => {
            let parts = parts.iter().map(|p| rust_type(types, generics, *p)).collect::<Option<Vec<_>>>()?;
            quote!((#(#parts),*))
        }
        hir::Type::Option(inner) => {
            let inner = rust_type(types, generics, *inner)?;
            quote!(::core::option::Option<#inner>)
        }
        hir::Type::Array(element, size) => {
            let element = rust_type(types, generics, *element)?;
            let size = match size {
                hir::Size::Known(n) => {
                    let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                    quote!(#n)
                }
                hir::Size::Value(_) => return None,
                hir::Size::Generic(i) => {
                    let name = ident(&generics[*i as usize].name);
                    quote!(#name)
                }
            };
            quote!([#element; #size])
        }
        hir::Type::Parameter(i) if is_named(&generics[*i as usize].name) => {
            let name = ident(&generics[*i as usize].name);
            quote!(#name)
        }
        hir::Type::Constant(size) => match size {
            hir::Size::Known(n) => {
                let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                quote!(#n)
            }
            hir::Size::Value(_) => return None,
            hir::Size::Generic(i) => {
                let name = ident(&generics[*i as usize].name);
                quote!(#name)
            }
        },
        _ => return None,
    })
}
