//! Names, types and mutability: the language's tree to HIR.
//!
//! Types are inferred by unification over one table a function, as rustc does it, so that a kernel means here what it
//! means there. rustc checks the same body: a mistake that both see is told by rustc alone (see [`expand`](crate::expand)),
//! so the sentences here are for what rustc accepts and the device does not, and for users of the compiler as a library.
//!
//! What leaves this module has no unknown type, no unresolved name, and assigns to nothing that is not `mut`.

mod array;
mod call;
mod closure;
mod destructure;
mod dot;
mod environment;
mod expression;
mod group;
mod item;
mod iterate;
mod nominal;
mod option;
mod pattern;
mod shared;
mod statement;
mod types;
mod written;

use crate::Scalar;
use crate::hir::{self, Bound, Builtin, FunctionId, GenericKind, LabelId, LocalId, Root, TypeId};
use crate::oracle::{Coverage, Output};
use crate::syntax::{self, Mark};
use environment::Environment;
use proc_macro2::TokenStream;
use quote::quote;
use types::{Finished, Id, Kind, Names, Table, Ty};

/// A device item that is named: its path as written, and what was handed over for it.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Tokens of the path, as [`syntax::Path::written`] gives them.
    pub path: String,
    /// The item, closed over what it names.
    pub library: hir::Library,
}

/// A mistake of names, types or mutability.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// First and last token.
    pub mark: Mark,
    /// What is wrong and what to do.
    pub message: String,
    /// Who says it where rustc runs.
    pub teller: Teller,
}

/// Who says a mistake to the user, so that it is said once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Teller {
    /// We do, where rustc has nothing to say of the function.
    Us,
    /// rustc does in any case, at a bound of the functions that launch the kernel.
    Launch,
}

/// What was checked, with what rustc can confirm of it.
#[derive(Clone, Debug)]
pub struct Checked<T> {
    /// The result.
    pub hir: T,
    /// Each variable bound by a plain `let`: its name's token, and the type that was inferred, if Rust can write it.
    pub locals: Vec<(proc_macro2::Span, TokenStream)>,
    /// Each function of the prelude that is called: as written, and below `kernel_dsl::prelude`, both with their type argument.
    pub prelude: Vec<(TokenStream, TokenStream)>,
}

/// Checks a kernel with what was handed over for the device items that it names.
pub fn kernel(kernel: &syntax::Kernel, callees: &[Callee]) -> Result<Checked<hir::Program>, Vec<Mistake>> {
    let blank = item::blank(&kernel.function);
    let mut environment = Environment::new(Some(blank), callees);
    let mut checker = Checker::new(&kernel.function, &Scope::default(), &environment);
    checker.signature();
    let usize = checker.table.scalar(Scalar::Usize);
    let bool = checker.table.scalar(Scalar::Bool);
    let list = |checker: &mut Checker, all: &[syntax::Expr]| -> Vec<hir::Expr> {
        all.iter().map(|e| checker.wanted(e, usize)).collect()
    };
    let block = kernel.block.iter().map(|extent| match extent {
        syntax::BlockExtent::Computed(e) => hir::BlockExtent::Computed(checker.wanted(e, usize)),
        syntax::BlockExtent::Chosen { least, most, step } => hir::BlockExtent::Chosen {
            least: checker.wanted(least, usize),
            most: checker.wanted(most, usize),
            step: step.as_ref().map(|step| checker.wanted(step, usize)),
        },
    });
    let mut block: Vec<_> = block.collect();
    let mut grid = list(&mut checker, &kernel.grid);
    let mut min_blocks = kernel.min_blocks.as_ref().map(|e| checker.wanted(e, usize));
    let mut max_registers = kernel.max_registers.as_ref().map(|e| checker.wanted(e, usize));
    let mut requires: Vec<_> = kernel
        .requires
        .iter()
        .map(|(e, text)| hir::Requirement { condition: checker.wanted(e, bool), text: text.clone() })
        .collect();
    if let Some(ty) = &kernel.function.returns {
        checker.mistake(ty.mark, "a kernel cannot return a value: write the results to buffers");
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
    let launch = hir::Launch {
        block,
        grid,
        requires,
        min_blocks,
        max_registers,
        contract: kernel.contract,
        target: kernel.target,
        instances,
        tolerances,
        outputs,
    };
    environment.functions[0] = function;
    Ok(rest.map(|()| hir::Program { launch, functions: environment.functions, items: environment.items }))
}

/// Checks a device function with what was handed over for the items that it names.
pub fn device(function: &syntax::Function, callees: &[Callee]) -> Result<Checked<hir::Library>, Vec<Mistake>> {
    let mut environment = Environment::new(Some(item::blank(function)), callees);
    let mut checker = Checker::new(function, &Scope::default(), &environment);
    checker.signature();
    let mut body = checker.body();
    let finish = checker.finish(&mut body);
    let (function, rest) = finish.done(body)?;
    environment.functions[0] = function;
    let root = Some(Root::Function(FunctionId(0)));
    Ok(rest.map(|()| hir::Library { root, functions: environment.functions, items: environment.items }))
}

pub use item::{CheckedModule, Within, Wrong, module};

/// What is around a function: the generic parameters of its impl, and what `Self` is.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    generics: &'a [syntax::Generic],
    itself: Option<Itself<'a>>,
}

/// What `Self` is.
#[derive(Clone, Copy)]
enum Itself<'a> {
    /// A type parameter, the first, in a trait.
    Trait(hir::TraitId),
    /// The type of an impl.
    Type(&'a syntax::Type),
}

impl<T> Checked<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Checked<U> {
        Checked { hir: f(self.hir), locals: self.locals, prelude: self.prelude }
    }
}

/// A function being checked.
struct Checker<'a> {
    function: &'a syntax::Function,
    /// Generic parameters; types in their bounds are those of `table` until the end.
    generics: Vec<hir::Generic>,
    itself: Option<Id>,
    environment: &'a Environment,
    table: Table,
    locals: Vec<Variable>,
    /// Names in scope, innermost last.
    scope: Vec<(String, LocalId)>,
    /// Values of constants in scope that are numbers known here.
    constants: Vec<(LocalId, u32)>,
    /// Associated types of types that were not known yet, and what stands for them.
    projections: Vec<(Id, hir::TraitId, u32, Id)>,
    loops: Vec<Loop>,
    labels: u32,
    /// Closures and functions that stand for them, so far.
    closures: u32,
    returns: Id,
    /// The expression that comes is the left operand of `&` with a small number.
    masks: bool,
    /// Literals whose bits depend on a type to be inferred.
    literals: Vec<Literal>,
    /// Operators whose operands had no known type where they stood.
    operands: Vec<Operands>,
    /// Shifts by a literal: the type that is shifted, by how much, and where it is written.
    shifts: Vec<(Id, u64, Mark)>,
    /// Plain `let`s, for rustc to confirm.
    bound: Vec<(proc_macro2::Span, LocalId)>,
    /// Calls of the prelude, for rustc to confirm.
    called: Vec<Called>,
    mistakes: Vec<Mistake>,
}

/// Operands of an operator, and whether it works on truth values and floats.
struct Operands {
    ty: Id,
    bools: bool,
    floats: bool,
    mark: Mark,
}

/// A call of a function of the prelude.
struct Called {
    /// The path as written, and below `kernel_dsl::prelude`.
    written: TokenStream,
    canonical: TokenStream,
    /// Its generic arguments, types or numbers.
    arguments: Vec<Id>,
    /// Whether a closure of two values of the first, which gives a third, is one more.
    combines: bool,
}

struct Variable {
    name: String,
    ty: Id,
    mutable: bool,
    /// Declared without a value: the first assignment needs no `mut`, and rustc sees to it that it is the only one.
    unset: bool,
    /// Assigned as a whole somewhere, or lent to be.
    assigned: bool,
    /// Declared `const`.
    constant: bool,
    mark: Mark,
}

struct Loop {
    label: Option<String>,
    id: LabelId,
    /// Of a `loop` or block: the type of its `break`s, once there is one.
    result: Option<Id>,
    what: Labelled,
}

/// What `break` can leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labelled {
    Loop,
    /// `while` and `for`, which have no value.
    Counted,
    Block,
}

#[derive(Clone, Copy)]
enum Literal {
    Integer(u64, Mark),
    Float(syntax::Float),
}

impl<'a> Checker<'a> {
    fn new(function: &'a syntax::Function, scope: &Scope, environment: &'a Environment) -> Checker<'a> {
        let mut table = Table::default();
        let returns = table.add(Ty::Unit);
        let mut checker = Checker {
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
            literals: Vec::new(),
            operands: Vec::new(),
            shifts: Vec::new(),
            bound: Vec::new(),
            called: Vec::new(),
            mistakes: Vec::new(),
        };
        if let Some(Itself::Trait(id)) = scope.itself {
            let kind = GenericKind::Type(vec![Bound::Trait(id)]);
            checker.generics.push(hir::Generic { name: "Self".into(), kind });
            checker.itself = Some(checker.table.add(Ty::Parameter(0)));
        }
        // A bound may name any of the parameters.
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
        if let Some(Itself::Type(ty)) = scope.itself {
            checker.itself = Some(checker.ty(ty));
        }
        checker
    }

    fn bounds(&mut self, bounds: &[syntax::Bound]) -> Vec<Bound> {
        let mut all = Vec::with_capacity(bounds.len());
        for bound in bounds {
            if let Some((parameters, returns)) = &bound.signature {
                let parameters = parameters.iter().map(|t| TypeId(self.ty(t).0)).collect();
                all.push(Bound::Function { parameters, returns: TypeId(self.ty(returns).0) });
                continue;
            }
            let last = bound.path.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
            match self.environment.find(&bound.path.written()) {
                Some(Root::Trait(id)) => all.push(Bound::Trait(id)),
                _ if bound.path.is_builtin_bound() => {
                    all.push(Bound::Builtin(Builtin::from_name(&last).unwrap_or(Builtin::Value)));
                }
                _ => self.mistake(
                    bound.path.mark,
                    format!("`{}` is not a device trait: put the trait into a `#[device] mod`", bound.path.name()),
                ),
            }
        }
        all
    }

    /// What stands for the kernel's parameters in one instance.
    fn instance(&mut self, instance: &syntax::InstanceOf) -> hir::Instance {
        let constants = instance.0.iter().map(|argument| match argument {
            syntax::InstanceArgument::Usize(n) => Some(hir::Constant::Usize(*n)),
            syntax::InstanceArgument::Bool(b) => Some(hir::Constant::Bool(*b)),
            syntax::InstanceArgument::Type { path, .. } => self.constant_type(path),
        });
        hir::Instance(constants.collect::<Option<_>>().unwrap_or_default())
    }

    fn constant_type(&mut self, path: &syntax::Path) -> Option<hir::Constant> {
        let single = path.single().map(|name| name.to_string());
        if let Some(scalar) = single.and_then(|name| Scalar::from_name(&name)) {
            return Some(hir::Constant::Scalar(scalar));
        }
        match path.segments.last().and_then(syntax::Segment::float16) {
            Some(Ok(format)) => return Some(hir::Constant::Scalar(Scalar::Custom(format))),
            Some(Err(why)) => {
                self.mistake(path.mark, why);
                return None;
            }
            None => {}
        }
        let environment = self.environment;
        let (name, hash) = match environment.find(&path.written()) {
            Some(Root::Struct(id)) => (&environment.a_struct(id).name, environment.a_struct(id).hash),
            Some(Root::Enum(id)) => {
                let item = &environment.items.enums[id.0 as usize];
                (&item.name, item.hash)
            }
            Some(Root::Function(id)) => (&environment.function(id).name, environment.function(id).hash),
            _ => {
                let message = "a type argument must be an element type, a device struct or enum, or a `#[device(value)]` function";
                self.mistake(path.mark, message);
                return None;
            }
        };
        Some(hir::Constant::Item(hir::Item { name: name.clone().into(), hash, library: Vec::new().into() }))
    }

    fn mistake(&mut self, mark: Mark, message: impl Into<String>) {
        self.mistakes.push(Mistake { mark, message: message.into(), teller: Teller::Us });
    }

    fn wrong(&mut self) -> Id {
        self.table.add(Ty::Wrong)
    }

    fn named(&self, id: Id) -> String {
        self.table.name(id, Names { generics: &self.generics, items: &self.environment.items })
    }

    fn signature(&mut self) {
        for p in &self.function.parameters {
            let ty = self.ty(&p.ty);
            let mark = p.ty.mark;
            self.declare(p.name.to_string(), ty, p.mutable, false, mark);
        }
        if let Some(ty) = &self.function.returns {
            self.returns = self.ty(ty);
            if self.is_closure(self.returns) {
                self.mistake(ty.mark, "a device function cannot return a closure: create the closure where it is called, and pass the values it captures");
            }
        }
    }

    /// A kernel's parameters are what a launch can pass.
    fn parameters_of_kernel(&mut self) {
        for (i, p) in self.function.parameters.iter().enumerate() {
            let ty = self.locals[i].ty;
            let tuple = matches!(self.table.get(ty), Ty::Tuple(_));
            let passable = self.can_be_passed(ty);
            if tuple || !passable {
                let message = format!(
                    "a kernel cannot take a parameter of type `{}`; supported are numbers, `bool`, `&[T]`, `&mut [T]`, views, and device structs of these",
                    self.named(ty)
                );
                // A launch could pass the parts of a tuple, as it does those of a tuple in a struct.
                let teller = if passable { Teller::Us } else { Teller::Launch };
                self.mistakes.push(Mistake { mark: p.ty.mark, message, teller });
            }
        }
    }

    /// Whether `ValueArgument` or its kin of buffers is implemented for the type.
    fn can_be_passed(&mut self, id: Id) -> bool {
        match self.table.get(id).clone() {
            Ty::Tuple(parts) => parts.into_iter().all(|part| self.can_be_passed(part)),
            Ty::Array(element, _) => self.can_be_passed(element),
            Ty::Struct(item, arguments) => {
                let fields = self.field_types(item, &arguments);
                fields.into_iter().all(|(_, field)| self.can_be_passed(field))
            }
            Ty::Scalar(_) | Ty::Slice { .. } | Ty::View { .. } | Ty::Enum(_) | Ty::Wrong => true,
            Ty::Parameter(_) | Ty::Projection { .. } => true,
            _ => false,
        }
    }

    /// A tolerance is for what the kernel writes.
    /// The parameter `name`, which a clause about `what` the kernel writes speaks of.
    fn written_parameter(&mut self, name: &proc_macro2::Ident, what: &str) -> Option<u32> {
        let mark = Mark { first: name.span(), last: name.span(), span: crate::source::Span::default() };
        let found = self.function.parameters.iter().position(|p| p.name == *name);
        let Some(parameter) = found else {
            self.mistake(mark, format!("the kernel has no parameter `{name}`"));
            return None;
        };
        let written = match self.table.get(self.locals[parameter].ty) {
            Ty::Slice { mutable, .. } | Ty::View { mutable, .. } => *mutable,
            Ty::Struct(..) | Ty::Parameter(_) | Ty::Wrong => true,
            _ => false,
        };
        if !written {
            self.mistake(mark, format!("{what} needs a parameter that the kernel writes; `{name}` is read-only"));
            return None;
        }
        Some(parameter as u32)
    }

    fn tolerance(&mut self, tolerance: &syntax::Tolerance) -> Option<hir::Tolerance> {
        let syntax::Tolerance { name, relative, absolute } = tolerance;
        let parameter = self.written_parameter(name, "a tolerance")?;
        Some(hir::Tolerance { parameter, relative: *relative, absolute: *absolute })
    }

    fn output(&mut self, name: &proc_macro2::Ident, coverage: Coverage) -> Option<Output> {
        Some(Output { index: self.written_parameter(name, "`writes`")?, coverage })
    }

    fn body(&mut self) -> hir::Block {
        let returns = self.returns;
        let (block, ty) = self.block(&self.function.body, Some(returns));
        self.coerce(ty, returns, self.function.body.value.as_ref().map_or(self.function.body.mark, |v| v.mark));
        block
    }

    fn declare(&mut self, name: String, ty: Id, mutable: bool, unset: bool, mark: Mark) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Variable { name: name.clone(), ty, mutable, unset, assigned: false, constant: false, mark });
        self.scope.push((name, id));
        id
    }

    /// Whether a value of type `actual` can stand where `wanted` is expected; says so if not.
    fn coerce(&mut self, actual: Id, wanted: Id, mark: Mark) -> bool {
        let fits = match (self.table.get(actual).clone(), self.table.get(wanted).clone()) {
            (Ty::Never, _) => true,
            (Ty::Slice { element: a, mutable: true }, Ty::Slice { element: b, mutable: false }) => {
                self.table.unify(a, b)
            }
            (Ty::Reference { to: a, mutable: true }, Ty::Reference { to: b, mutable: false }) => self.table.unify(a, b),
            _ => self.table.unify(actual, wanted),
        };
        if !fits && self.callable_alike(actual, wanted) {
            self.mistake(
                mark,
                "closures are resolved at compile time; this one would be chosen at run time. Call it in each branch",
            );
        } else if !fits {
            let (actual, wanted) = (self.named(actual), self.named(wanted));
            self.mistake(mark, format!("expected `{wanted}`, found `{actual}`"));
        }
        fits
    }

    /// Ends inference and fixes what depended on it.
    fn finish(mut self, body: &mut hir::Block) -> Finish<'a> {
        self.project();
        for Operands { ty, bools, floats, mark } in std::mem::take(&mut self.operands) {
            self.operands(ty, bools, floats, mark);
        }
        let types = Finished::new(&self.table);
        let mut finish = Finish { checker: self, types };
        hir::visit::block(body, &mut |e| finish.one(e));
        finish
    }
}

/// A function whose inference has ended, with its expressions being fixed.
struct Finish<'a> {
    checker: Checker<'a>,
    types: Finished,
}

impl Finish<'_> {
    fn expr(&mut self, e: &mut hir::Expr) {
        hir::visit::expr(e, &mut |e| self.one(e));
    }

    fn one(&mut self, e: &mut hir::Expr) {
        e.ty = self.types.get(&self.checker.table, Id(e.ty.0));
        match &mut e.kind {
            hir::ExprKind::Literal(index) => {
                let hir::Type::Scalar(ty) = self.types.types[e.ty.0 as usize] else {
                    // A variant's number, or the zero of a type parameter.
                    *index = match self.checker.literals[*index as usize] {
                        Literal::Integer(n, _) => n,
                        Literal::Float(x) => x.double.to_bits(),
                    };
                    return;
                };
                *index = match self.checker.literals[*index as usize] {
                    Literal::Float(x) if ty == Scalar::F32 => u64::from(x.single.to_bits()),
                    Literal::Float(x) => x.double.to_bits(),
                    Literal::Integer(n, mark) => {
                        if n & !ty.mask() != 0 {
                            self.checker.mistake(
                                mark,
                                format!("`{n}` does not fit in `{ty}`, which has {} bits on the device", ty.bits()),
                            );
                        }
                        n
                    }
                };
            }
            hir::ExprKind::Call { generics, .. } | hir::ExprKind::Function { generics, .. } => {
                for g in generics {
                    *g = self.types.get(&self.checker.table, Id(g.0));
                }
            }
            hir::ExprKind::CallMethod { of, generics, .. } | hir::ExprKind::MethodValue { of, generics, .. } => {
                for g in generics.iter_mut().chain([of]) {
                    *g = self.types.get(&self.checker.table, Id(g.0));
                }
            }
            hir::ExprKind::CallItem { of, .. } | hir::ExprKind::SizeOf(of) => {
                *of = self.types.get(&self.checker.table, Id(of.0));
            }
            _ => {}
        }
    }

    /// A shift by a literal is less than the bits there are.
    fn shifts(&mut self) {
        for (of, by, mark) in std::mem::take(&mut self.checker.shifts) {
            let ty = self.types.get(&self.checker.table, of);
            if let hir::Type::Scalar(ty) = self.types.types[ty.0 as usize]
                && by >= u64::from(ty.bits())
            {
                self.checker.mistake(
                    mark,
                    format!("a shift by {by} is out of range for `{ty}`, which has {} bits: shift a wider type, or use `wrapping_shl` or `wrapping_shr`, which shift modulo {}", ty.bits(), ty.bits()),
                );
            }
        }
    }

    fn done(mut self, body: hir::Block) -> Result<(hir::Function, Checked<()>), Vec<Mistake>> {
        let locals: Vec<_> = self
            .checker
            .locals
            .iter()
            .map(|v| hir::Local {
                name: v.name.clone(),
                ty: self.types.get(&self.checker.table, v.ty),
                // A view is declared `mut` to write its elements; where it stays the same it is a name.
                mutable: match self.checker.table.get(v.ty) {
                    Ty::View { .. } | Ty::Slice { .. } => v.assigned || v.unset,
                    _ => v.mutable || v.unset,
                },
                constant: v.constant,
                span: v.mark.span,
            })
            .collect();
        let returns = self.types.get(&self.checker.table, self.checker.returns);
        self.shifts();
        // What stayed unknown is told where a variable has it; rustc tells the rest. Other mistakes may be why it did.
        let unknown = std::mem::take(&mut self.types.unknown);
        for id in unknown.into_iter().filter(|_| self.checker.mistakes.is_empty()).collect::<Vec<_>>() {
            let root = self.checker.table.root(id);
            if let Some(v) = self.checker.locals.iter().find(|v| self.checker.table.root(v.ty) == root) {
                let (mark, message) =
                    (v.mark, format!("cannot infer the type of `{}`: annotate it, `{}: …`", v.name, v.name));
                self.checker.mistake(mark, message);
            }
        }
        let mut checker = self.checker;
        if !checker.mistakes.is_empty() {
            return Err(checker.mistakes);
        }
        finish_bounds(&mut checker.generics, &mut self.types, &checker.table);
        let checked = Checked {
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
            body,
        };
        Ok((function, checked))
    }
}

/// Fixes the types in bounds.
fn finish_bounds(generics: &mut [hir::Generic], types: &mut Finished, table: &Table) {
    for generic in generics {
        let GenericKind::Type(bounds) = &mut generic.kind else { continue };
        for bound in bounds {
            if let Bound::Function { parameters, returns } = bound {
                for ty in parameters.iter_mut().chain([returns]) {
                    *ty = types.get(table, Id(ty.0));
                }
            }
        }
    }
}

/// A type as Rust tokens that need no import; `None` for the types of the prelude.
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
                hir::Size::Generic(i) => {
                    let name = ident(&generics[*i as usize].name);
                    quote!(#name)
                }
            };
            quote!([#element; #size])
        }
        hir::Type::Parameter(i) if generics[*i as usize].name != "Self" => {
            let name = ident(&generics[*i as usize].name);
            quote!(#name)
        }
        hir::Type::Constant(size) => match size {
            hir::Size::Known(n) => {
                let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                quote!(#n)
            }
            hir::Size::Generic(i) => {
                let name = ident(&generics[*i as usize].name);
                quote!(#name)
            }
        },
        _ => return None,
    })
}
