//! A function being checked: its variables, scope and inference so far. The files beside this one
//! add methods for each construct of the language.

use super::bound::BoundedType;
use super::diagnostic::{Diagnostic, ReportedBy};
use super::environment::Environment;
use super::types::{Ty, TypeIndex, TypeNames, TypeTable};
use crate::hir::{self, GenericKind, LabelId, LocalId, TraitBound};
use crate::ir;
use crate::syntax::{self, SpanPair};
use proc_macro2::TokenStream;

/// The surroundings of a function: the generic parameters of its impl, and the meaning of `Self`.
#[derive(Clone, Copy, Default)]
pub(super) struct ItemScope<'a> {
    pub generics: &'a [syntax::Generic],
    pub itself: Option<SelfMeaning<'a>>,
}

/// The meaning of `Self`.
#[derive(Clone, Copy)]
pub(super) enum SelfMeaning<'a> {
    /// In a trait: the first type parameter.
    Trait(hir::TraitId),
    /// In an impl: its type.
    Type(&'a syntax::Type),
}

/// A function being checked.
pub(super) struct FunctionChecker<'a> {
    pub function: &'a syntax::Function,
    /// The generic parameters; types in their bounds are indices into `table` until the end.
    pub generics: Vec<hir::Generic>,
    /// The type that `Self` names.
    pub itself: Option<TypeIndex>,
    pub environment: &'a Environment,
    pub table: TypeTable,
    /// The variables, by their numbers.
    pub locals: Vec<LocalVariable>,
    /// Names in scope, innermost last.
    pub scope: Vec<(String, LocalId)>,
    /// The values of constants in scope that are known numbers.
    pub constants: Vec<(LocalId, u32)>,
    /// Associated types that are not resolved yet, each with its type, trait, index and
    /// placeholder.
    pub projections: Vec<(TypeIndex, hir::TraitId, u32, TypeIndex)>,
    /// The loops and labeled blocks around the current expression, innermost last.
    pub loops: Vec<Loop>,
    /// The number of labels so far.
    pub labels: u32,
    /// The number of closures and functions passed as closures so far.
    pub closures: u32,
    /// The type of the result.
    pub returns: TypeIndex,
    /// Whether the next expression is the left operand of `&` with a small number, which selects
    /// bits.
    pub masks: bool,
    /// Where a pattern matches a value through references, so that its names are references:
    /// whether these are mutable.
    pub borrows: Option<bool>,
    /// In the alternatives of a pattern after the first: the names that the first binds.
    pub alternatives: Vec<(String, LocalId)>,
    /// Literals whose bits depend on an inferred type.
    pub literals: Vec<Literal>,
    /// Operators whose operands had no known type when they were checked.
    pub operands: Vec<OperatorOperands>,
    /// Types that must satisfy bounds.
    pub bounded: Vec<BoundedType>,
    /// The types of negated integers, while they are unknown.
    pub negated: Vec<(TypeIndex, SpanPair)>,
    /// The conversions by `from` and `into`, whose types may be unknown.
    pub conversions: Vec<NumberConversion>,
    /// The expression that is being checked.
    pub current: SpanPair,
    /// Shifts by a literal: the shifted type, the amount, and the tokens of the amount.
    pub shifts: Vec<(TypeIndex, u128, SpanPair)>,
    /// Plain `let`s, for rustc to confirm.
    pub bound: Vec<(proc_macro2::Span, LocalId)>,
    /// Calls of the prelude, for rustc to confirm.
    pub called: Vec<Called>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A conversion of a number whose types may be found later.
pub(super) struct NumberConversion {
    pub from: TypeIndex,
    pub to: TypeIndex,
    pub mark: SpanPair,
}

/// The operands of an operator.
pub(super) struct OperatorOperands {
    pub ty: TypeIndex,
    pub of: OperatorClass,
    pub mark: SpanPair,
}

/// The types that an operator of numbers accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticOperands {
    Integers,
    IntegersAndBools,
    IntegersAndFloats,
}

/// An operator, as far as the type of its operands depends on it.
#[derive(Clone, Copy)]
pub(super) enum OperatorClass {
    Arithmetic(ArithmeticOperands),
    Comparison(ir::Comparison),
}

/// A call of a function of the prelude.
pub(super) struct Called {
    /// The path as written, and below `kernel_dsl::prelude`.
    pub written: TokenStream,
    pub canonical: TokenStream,
    /// The generic arguments, types or numbers.
    pub arguments: Vec<TypeIndex>,
    /// Whether the type of a closure that combines two values is another generic argument.
    pub combines: bool,
}

/// The form of a variable's declaration.
#[derive(Clone, Copy, Default)]
pub(super) struct VariableForm {
    pub mutable: bool,
    /// Declared without a value: the first assignment needs no `mut`, and rustc checks that it is
    /// the only one.
    pub unset: bool,
}

/// A variable of the function.
pub(super) struct LocalVariable {
    pub name: String,
    pub ty: TypeIndex,
    pub form: VariableForm,
    /// Assigned as a whole, or borrowed mutably.
    pub assigned: bool,
    /// Declared `const`.
    pub constant: bool,
    pub mark: SpanPair,
}

/// A loop or labeled block, which `break` can leave.
pub(super) struct Loop {
    pub label: Option<String>,
    pub id: LabelId,
    /// For a `loop` or block: the type of its `break` values, once there is one.
    pub result: Option<TypeIndex>,
    pub what: LabeledConstruct,
}

/// A construct that `break` can leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LabeledConstruct {
    Loop,
    /// `while` and `for`, which have no value.
    Counted,
    Block,
}

/// A literal of a number.
#[derive(Clone, Copy)]
pub(super) enum Literal {
    Integer(u128, SpanPair),
    Float(syntax::FloatLiteral),
}

impl<'a> FunctionChecker<'a> {
    /// Creates the checker of a function, with its generic parameters.
    pub(super) fn new(
        function: &'a syntax::Function,
        scope: &ItemScope,
        environment: &'a Environment,
    ) -> FunctionChecker<'a> {
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

    /// Reports an error of this compiler.
    pub(super) fn report(&mut self, mark: SpanPair, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { mark, message: message.into(), reported_by: ReportedBy::Compiler });
    }

    /// Reports an error if `what` is private to a module, and this function is outside.
    pub(super) fn visible(&mut self, private_to: u64, what: impl FnOnce() -> String, mark: SpanPair) {
        if private_to != 0 && private_to != self.environment.module {
            let what = what();
            self.report(mark, format!("{what} is private to its module: declare it `pub`"));
        }
    }

    /// Returns a type that is equal to any other, for use after an error.
    pub(super) fn wrong(&mut self) -> TypeIndex {
        self.table.add(Ty::Wrong)
    }

    /// Returns the name of a type in messages.
    pub(super) fn named(&self, id: TypeIndex) -> String {
        self.table.name(id, TypeNames { generics: &self.generics, items: &self.environment.items })
    }

    /// Declares the parameters, and reads the type of the result.
    pub(super) fn signature(&mut self) {
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

    /// Checks the body.
    pub(super) fn body(&mut self) -> hir::Block {
        let returns = self.returns;
        let (block, ty) = self.block(&self.function.body, Some(returns));
        self.coerce(ty, returns, self.function.body.value.as_ref().map_or(self.function.body.mark, |v| v.mark));
        block
    }

    /// Declares a variable that has a value and is not `mut`.
    pub(super) fn declare(&mut self, name: String, ty: TypeIndex, mark: SpanPair) -> LocalId {
        self.declare_as(VariableForm::default(), name, ty, mark)
    }

    /// Declares a variable.
    pub(super) fn declare_as(&mut self, form: VariableForm, name: String, ty: TypeIndex, mark: SpanPair) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(LocalVariable { name: name.clone(), ty, form, assigned: false, constant: false, mark });
        self.scope.push((name, id));
        id
    }

    /// Returns whether a value of type `actual` is valid where `wanted` is expected; reports an
    /// error if not.
    pub(super) fn coerce(&mut self, actual: TypeIndex, wanted: TypeIndex, mark: SpanPair) -> bool {
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
}
