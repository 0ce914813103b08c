//! Calls of functions of the prelude, methods and device functions.

use super::checker::{Called, FunctionChecker, Literal};
use super::convert::byte_order;
use super::nominal::ids;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{self, CallTrait, Expr, ExprKind, Intrinsic, Root, TypeId};
use crate::ir;
use crate::language::{self, Integers, Receiver, SignatureType};
use crate::syntax::{self, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;
use quote::quote;

impl FunctionChecker<'_> {
    pub(super) fn call(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        expected: Option<TypeIndex>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        if let Some(variable) = path.single().and_then(|name| self.variable(name)) {
            return self.value_call(variable, path, arguments, mark);
        }
        if path.segments.last().is_some_and(|s| s.name == "Some") && path.is_builtin() {
            return self.some(arguments, expected, mark);
        }
        if let Some(path) = self.of_number(path) {
            return self.call(&path, arguments, expected, mark);
        }
        let name = path.name();
        if language::is_size_of(&path.name()) {
            return self.size_of(path, mark);
        }
        if !path.is_builtin() {
            if let Some(called) = self.item_call(path, arguments, mark) {
                return called;
            }
            if let Some(found) = self.associated(path) {
                return self.associated_call(found, path, arguments, mark);
            }
            if let Some(made) = self.tuple_struct(path, arguments, mark) {
                return made;
            }
            return self.device_call(path, arguments, mark);
        }
        if let Some(function) = language::FUNCTIONS.iter().find(|f| f.path == name) {
            return self.prelude_call(function, path, arguments, mark);
        }
        if let Some(what) = language::dot_product(&name) {
            return self.dot(what, path, arguments, expected, mark);
        }
        if name == "int::word" {
            return self.word(path, arguments, mark);
        }
        if name == "warp::group" {
            return self.group(path, arguments, mark);
        }
        if name == "pipeline::wait" {
            return self.pipeline_wait(path, arguments, mark);
        }
        if language::is_from_fn(&path.name()) {
            return self.array_from(path, arguments, expected, mark);
        }
        let first = &path.segments[0];
        let last = &path.segments[path.segments.len() - 1];
        if first.name == "Shared" {
            return self.shared(path, arguments, expected, mark);
        }
        if let Some(format) = first.float16() {
            return match format {
                Ok(format) => self.scalar_call(Scalar::Custom(format), &last.name, arguments, mark),
                Err(why) => {
                    self.report(path.mark, why);
                    (ExprKind::Tuple(Vec::new()), self.wrong())
                }
            };
        }
        if let Some(scalar) = Scalar::from_name(&first.name.to_string()) {
            if let Some(found) = self.of_device_trait(path) {
                return self.associated_call(found, path, arguments, mark);
            }
            return self.scalar_call(scalar, &last.name, arguments, mark);
        }
        let message = match name.as_str() {
            "unroll" | "rolled" => format!("`{name}` can only wrap the range of a `for`: `for i in {name}(0..n)`"),
            "block::share" | "grid::stride" | "block::stride" => {
                format!("`{name}` can only be the iterator of a `for`: `for i in {name}(…)`")
            }
            "unroll_by" => {
                "`unroll_by` can only wrap the range of a `for`: `for i in unroll_by::<4>(0..n)`".to_string()
            }
            _ => format!("there is no function `{name}` in kernels"),
        };
        self.report(path.mark, message);
        (ExprKind::Tuple(Vec::new()), self.wrong())
    }

    fn prelude_call(
        &mut self,
        function: &language::PreludeFunction,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let same = self.table.unknown();
        let stated = function.returns == SignatureType::StatedArray;
        let uses_same = stated || function.parameters.contains(&SignatureType::This);
        let combines = function.parameters.contains(&SignatureType::CombineFn);
        match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [] if !stated => {}
            [TypeOrConst::Type(ty), closure @ ..] if uses_same && closure.len() == usize::from(combines) => {
                let ty = self.ty(ty);
                self.table.unify(same, ty);
                if stated && !matches!(self.table.get(ty), Ty::Array(..) | Ty::Wrong) {
                    self.states_array(function.path, path.mark);
                }
            }
            _ if stated => {
                self.states_array(function.path, path.mark);
                return (ExprKind::Tuple(Vec::new()), self.wrong());
            }
            _ => self.report(path.mark, format!("`{}` does not take these generic arguments", function.path)),
        }
        self.confirm(path, function.path, uses_same.then_some(same).as_slice(), combines);
        if !self.count(function.path, function.parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let arguments: Vec<_> = function
            .parameters
            .iter()
            .zip(arguments)
            .map(|(part, e)| {
                let ty = self.part(*part, same, same);
                self.expr_of_type(e, ty)
            })
            .collect();
        if uses_same {
            self.check_exchangeable(function.intrinsic, same, mark);
        }
        if let Some(integers) = function.integers {
            self.of_integers(function.path, integers, same, mark);
        }
        let returns = self.part(function.returns, same, same);
        (ExprKind::Intrinsic { intrinsic: function.intrinsic, arguments }, returns)
    }

    /// Reports a type that is not one of the integers that a function supports.
    fn of_integers(&mut self, name: &str, integers: Integers, ty: TypeIndex, mark: SpanPair) {
        let fits = match self.table.get(ty) {
            Ty::Scalar(scalar) => integers.contains(*scalar),
            Ty::Unknown(UnknownKind::Integer) | Ty::Wrong => true,
            _ => false,
        };
        if !fits {
            let given = self.named(ty);
            self.report(mark, format!("`{name}` supports {integers}, not `{given}`"));
        }
    }

    /// Reports a call that does not state the type of its array.
    fn states_array(&mut self, name: &str, mark: SpanPair) {
        self.report(mark, format!("`{name}` needs the type of its array: `{name}::<[u32; 32]>()`"));
    }

    /// Requests that rustc confirms that a path names the function `canonical` of the prelude. The
    /// generic arguments are `arguments` and, if the function `combines` values, the type of a
    /// closure.
    pub(super) fn confirm(&mut self, path: &Path, canonical: &str, arguments: &[TypeIndex], combines: bool) {
        let written = path.segments.iter().map(|s| s.name.clone());
        let canonical = canonical.split("::").map(|s| Ident::new(s, proc_macro2::Span::call_site()));
        let (written, canonical) = (quote!(#(#written)::*), quote!(#(#canonical)::*));
        self.called.push(Called { written, canonical, arguments: arguments.to_vec(), combines });
    }

    pub(super) fn count(&mut self, name: &str, wanted: usize, given: usize, mark: SpanPair) -> bool {
        if wanted != given {
            self.report(
                mark,
                format!("`{name}` takes {wanted} argument{}, {given} given", if wanted == 1 { "" } else { "s" }),
            );
        }
        wanted == given
    }

    /// Returns the type of a part of a signature. `same` is the receiver's type, `element` the type
    /// of its elements, or `same` if it has none.
    pub(super) fn part(&mut self, part: SignatureType, same: TypeIndex, element: TypeIndex) -> TypeIndex {
        let scalar = self.table.as_scalar(element);
        match part {
            SignatureType::Unit => self.table.add(Ty::Unit),
            SignatureType::Bool => self.table.scalar(Scalar::Bool),
            SignatureType::U32 => self.table.scalar(Scalar::U32),
            SignatureType::Usize => self.table.scalar(Scalar::Usize),
            SignatureType::F32 => self.table.scalar(Scalar::F32),
            SignatureType::This | SignatureType::StatedArray => same,
            SignatureType::UnsignedBits => self.table.scalar(match scalar.map(Scalar::bits) {
                Some(64) => Scalar::U64,
                Some(16) => Scalar::U16,
                _ => Scalar::U32,
            }),
            SignatureType::Element => element,
            SignatureType::CombineFn => {
                let parameters = vec![same; 2];
                self.table.add(Ty::Function { parameters, returns: same, calls: CallTrait::Fn })
            }
            SignatureType::OptionThis => self.table.add(Ty::Option(same)),
            SignatureType::ThisAndOverflow => {
                let over = self.table.scalar(Scalar::Bool);
                self.table.add(Ty::Tuple(vec![same, over]))
            }
            SignatureType::PairOfThis => self.table.add(Ty::Tuple(vec![same; 2])),
            SignatureType::Pending => self.table.add(Ty::Pending),
            SignatureType::Indices | SignatureType::ElementArray => {
                unreachable!("the method check handles these parts, where rank and length are known")
            }
            SignatureType::Unsigned => match scalar {
                Some(Scalar::I8) => self.table.scalar(Scalar::U8),
                Some(Scalar::I16) => self.table.scalar(Scalar::U16),
                Some(Scalar::I32) => self.table.scalar(Scalar::U32),
                Some(Scalar::I64) => self.table.scalar(Scalar::U64),
                _ => same,
            },
            SignatureType::InnerView => match self.table.get(same).clone() {
                Ty::View { element, rank, mutable, strided } => {
                    self.table.add(Ty::View { element, rank: rank - 1, mutable, strided })
                }
                Ty::Shared { element, rank } => self.table.add(Ty::Shared { element, rank: rank - 1 }),
                _ => self.wrong(),
            },
            SignatureType::OptionElement => {
                let found = match *self.table.get(same) {
                    Ty::Slice { element, .. } => self.table.add(Ty::Reference { to: element, mutable: false }),
                    Ty::View { element, .. } | Ty::Shared { element, .. } => element,
                    _ => self.wrong(),
                };
                self.table.add(Ty::Option(found))
            }
            SignatureType::Strided => match self.table.get(same).clone() {
                Ty::View { element, rank, mutable, .. } => {
                    self.table.add(Ty::View { element, rank, mutable, strided: true })
                }
                _ => self.wrong(),
            },
            SignatureType::View => match self.table.get(same).clone() {
                Ty::Shared { element, rank } => {
                    self.table.add(Ty::View { element, rank, mutable: false, strided: false })
                }
                _ => self.wrong(),
            },
        }
    }

    pub(super) fn method(
        &mut self,
        receiver: &syntax::Expr,
        name: &Ident,
        generics: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let receiver = self.expr(receiver, None);
        self.method_of(receiver, name, generics, arguments, mark)
    }

    /// Reports generic arguments of a method that takes none in kernels.
    pub(super) fn refuse_generics(&mut self, name: &Ident, generics: &[TypeOrConst], mark: SpanPair) {
        if !generics.is_empty() {
            self.report(mark, format!("`{name}` takes no generic arguments in kernels: remove `::<…>`"));
        }
    }

    /// Checks a call of a method of a value.
    pub(super) fn method_of(
        &mut self,
        receiver: Expr,
        name: &Ident,
        generics: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let receiver = self.dereferenced(receiver);
        let ty = TypeIndex(receiver.ty.0);
        let known = self.table.get(ty).clone();
        if matches!(known, Ty::Option(_)) || self.result_parts(ty).is_some() {
            self.refuse_generics(name, generics, mark);
        }
        if let Ty::Option(inner) = known {
            return self.option_method(receiver, inner, name, arguments, mark);
        }
        if let Some(parts) = self.result_parts(ty) {
            return self.result_method(receiver, parts, name, arguments, mark);
        }
        // If the type has no method of this name, a trait may have one.
        if matches!(known, Ty::Array(..))
            && !["len", "map", "swap"].iter().any(|own| name == own)
            && let Some(called) = self.nominal_method(&receiver, name, generics, arguments, mark)
        {
            return called;
        }
        if let Ty::Array(element, size) = known {
            return self.array_method(receiver, [element, size], name, generics, arguments, mark);
        }
        if matches!(known, Ty::Shared { .. }) && (name == "cast" || name == "copy_async_map") {
            return self.shared_method(receiver, name, generics, arguments, mark);
        }
        if matches!(known, Ty::Group(_)) {
            return self.group_method(receiver, name, generics, arguments, mark);
        }
        if matches!(known, Ty::Struct(..) | Ty::Enum(..) | Ty::Parameter(_) | Ty::Projection { .. })
            && let Some(called) = self.nominal_method(&receiver, name, generics, arguments, mark)
        {
            return called;
        }
        let fits = |on: Receiver| match &known {
            Ty::Scalar(s) => on.scalar(*s),
            Ty::Pending => on == Receiver::Pending,
            Ty::Slice { mutable, .. } => on.slice(*mutable),
            Ty::View { rank, mutable, strided, .. } => on.view(*rank, *mutable, *strided),
            Ty::Shared { rank, .. } => on.shared(*rank),
            _ => false,
        };
        if let Ty::Scalar(scalar) = known
            && arguments.is_empty()
            && let Some(converted) = self.converting_method(&receiver, scalar, name, generics, mark)
        {
            return converted;
        }
        let Some(method) = language::METHODS.iter().find(|m| name == m.name && fits(m.on)) else {
            if !matches!(known, Ty::Unknown(_) | Ty::Wrong)
                && let Some(called) = self.nominal_method(&receiver, name, generics, arguments, mark)
            {
                return called;
            }
            arguments.iter().for_each(|e| {
                self.expr(e, None);
            });
            if !matches!(known, Ty::Wrong) {
                let message = match known {
                    Ty::Unknown(UnknownKind::Integer | UnknownKind::Float) => {
                        format!(
                            "the type of this number is not known yet: add a suffix, as in `1.0f32`, to call `{name}` on it"
                        )
                    }
                    _ => {
                        let inexact = match known {
                            Ty::Scalar(s) => language::inexact(s, &name.to_string()),
                            _ => None,
                        };
                        inexact.unwrap_or_else(|| {
                            let instead = instead_of(&known, &name.to_string());
                            format!("`{}` has no method `{name}` in a kernel{instead}", self.named(ty))
                        })
                    }
                };
                self.report(SpanPair { first: name.span(), last: name.span(), ..mark }, message);
            }
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let elements = match generics {
            [] => self.table.add(Ty::Unknown(UnknownKind::Size)),
            [n] if method.returns == SignatureType::ElementArray
                || method.parameters.contains(&SignatureType::ElementArray) =>
            {
                self.size(n)
            }
            _ => {
                self.report(mark, format!("`{name}` takes no generic arguments"));
                self.wrong()
            }
        };
        if !self.count(method.name, method.parameters.len(), arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let element = match known {
            Ty::Slice { element, .. } | Ty::View { element, .. } | Ty::Shared { element, .. } => element,
            _ => ty,
        };
        let atomic = match method.intrinsic {
            Intrinsic::Atomic(operation, _) => Some(operation),
            Intrinsic::AtomicSubtract => Some(ir::AtomicOperator::Add),
            _ => None,
        };
        if let Some(operation) = atomic
            && !matches!(self.table.get(element), Ty::Wrong)
            && !self.table.as_scalar(element).is_some_and(|scalar| operation.takes(scalar))
        {
            let long = self.table.as_scalar(element) == Some(Scalar::U128);
            let element = self.named(element);
            let types = match operation {
                _ if long => "numbers of at most 64 bits",
                ir::AtomicOperator::Load | ir::AtomicOperator::Store => "numbers except `usize`",
                ir::AtomicOperator::Add
                | ir::AtomicOperator::Exchange
                | ir::AtomicOperator::Min
                | ir::AtomicOperator::Max => "integers except `usize`, `f32` and `f64`",
                _ => "integers except `usize`",
            };
            self.report(mark, format!("`{name}` supports {types}, not `{element}`"));
        }
        let array = |checker: &mut Self| checker.table.add(Ty::Array(element, elements));
        let rank = match known {
            Ty::View { rank, .. } | Ty::Shared { rank, .. } => rank,
            _ => 1,
        };
        let mut all = vec![receiver];
        for (part, e) in method.parameters.iter().zip(arguments) {
            let argument = match part {
                SignatureType::Indices => self.indices(e, rank),
                SignatureType::ElementArray => {
                    let wanted = array(self);
                    self.expr_of_type(e, wanted)
                }
                SignatureType::View => {
                    let view = self.part(SignatureType::View, ty, element);
                    let given = self.expr(e, None);
                    // A mutable or strided view may be passed where a `View` is read.
                    let readable = match self.table.get(TypeIndex(given.ty.0)).clone() {
                        Ty::View { element, rank, .. } => {
                            self.table.add(Ty::View { element, rank, mutable: false, strided: false })
                        }
                        _ => TypeIndex(given.ty.0),
                    };
                    self.coerce(readable, view, e.mark);
                    given
                }
                _ => {
                    let wanted = self.part(*part, ty, element);
                    self.expr_of_type(e, wanted)
                }
            };
            all.push(argument);
        }
        let returns = match method.returns {
            SignatureType::ElementArray => array(self),
            part => self.part(part, ty, element),
        };
        (ExprKind::Intrinsic { intrinsic: method.intrinsic, arguments: all }, returns)
    }

    /// Checks `into`, `to_le_bytes` and the like; `None` for other methods.
    fn converting_method(
        &mut self,
        receiver: &Expr,
        scalar: Scalar,
        name: &Ident,
        generics: &[TypeOrConst],
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let text = name.to_string();
        let converted = match byte_order(&text, "to_", "_bytes") {
            Some(order) => self.bytes_of_number(receiver.clone(), scalar, order, mark)?,
            None if text == "into" && !scalar.is_half() => self.number_into(receiver.clone(), mark),
            None => return None,
        };
        self.refuse_generics(name, generics, mark);
        Some(converted)
    }

    /// Checks `f32::from_bits(b)`, or a method called by its path, `f32::max(a, b)`.
    fn scalar_call(
        &mut self,
        scalar: Scalar,
        name: &Ident,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let ty = self.table.scalar(scalar);
        if let [argument] = arguments {
            if name == "from" {
                return self.number_from(scalar, argument, mark);
            }
            if let Some(order) = byte_order(&name.to_string(), "from_", "_bytes")
                && let Some(joined) = self.number_of_bytes(scalar, argument, order, mark)
            {
                return joined;
            }
        }
        let made = match name.to_string().as_str() {
            "from_bits" if scalar.is_float() || scalar.is_half() => {
                Some((Intrinsic::Bitcast, SignatureType::UnsignedBits))
            }
            "from_f32" if scalar.is_half() || scalar.is_float() => Some((Intrinsic::Convert, SignatureType::F32)),
            "truncate" if matches!(scalar, Scalar::Custom(_)) => Some((Intrinsic::Truncate, SignatureType::F32)),
            "default" => {
                self.count("default", 0, arguments.len(), mark);
                return (self.literal(Literal::Integer(0, mark)), ty);
            }
            _ => None,
        };
        if let Some((intrinsic, from)) = made {
            if !self.count(&name.to_string(), 1, arguments.len(), mark) {
                return (ExprKind::Tuple(Vec::new()), self.wrong());
            }
            let from = self.part(from, ty, ty);
            let arguments = vec![self.expr_of_type(&arguments[0], from)];
            return (ExprKind::Intrinsic { intrinsic, arguments }, ty);
        }
        let Some(method) = language::METHODS.iter().find(|m| name == m.name && m.on.scalar(scalar)) else {
            let inexact = language::inexact(scalar, &name.to_string());
            self.report(
                SpanPair { first: name.span(), last: name.span(), ..mark },
                inexact.unwrap_or_else(|| {
                    let ours = language::foreign_number_method(&name.to_string());
                    let instead = ours.map_or_else(String::new, |ours| format!(": write {ours}"));
                    format!("`{scalar}` has no function `{name}` in a kernel{instead}")
                }),
            );
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        if !self.count(method.name, method.parameters.len() + 1, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let parts = std::iter::once(&SignatureType::This).chain(method.parameters);
        let arguments = parts
            .zip(arguments)
            .map(|(part, e)| {
                let wanted = self.part(*part, ty, ty);
                self.expr_of_type(e, wanted)
            })
            .collect();
        let returns = self.part(method.returns, ty, ty);
        (ExprKind::Intrinsic { intrinsic: method.intrinsic, arguments }, returns)
    }

    /// Checks a call of a device function.
    fn device_call(&mut self, path: &Path, arguments: &[syntax::Expr], mark: SpanPair) -> (ExprKind, TypeIndex) {
        let Some(Root::Function(id)) = self.environment.find(&path.written()) else {
            arguments.iter().for_each(|e| {
                self.expr(e, None);
            });
            self.report(path.mark, format!("`{}` is not a device function: mark it `#[device]`", path.name()));
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        let environment = self.environment;
        let callee = environment.function(id);
        self.visible(callee.private_to, || format!("`{}`", callee.name), path.mark);
        let generics = self.generic_arguments(path, callee);
        if !self.count(&callee.name, callee.parameters as usize, arguments.len(), mark) {
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        let arguments: Vec<Expr> = callee.locals[..callee.parameters as usize]
            .iter()
            .zip(arguments)
            .map(|(parameter, e)| {
                let ty = self.instantiate(&callee.types, parameter.ty, &generics);
                self.expr_of_type(e, ty)
            })
            .collect();
        let returns = self.instantiate(&callee.types, callee.returns, &generics);
        let generics = ids(&generics);
        (ExprKind::Call { function: id, generics, arguments }, returns)
    }

    /// Returns the generic arguments of a call of `callee`, as written or to be inferred.
    pub(super) fn generic_arguments(&mut self, path: &Path, callee: &hir::Function) -> Vec<TypeIndex> {
        let given = path.segments.last().map(|s| s.arguments.clone()).unwrap_or_default();
        self.item_arguments(&callee.name, &callee.generics, &given, path.mark)
    }

    /// Returns the type `ty` of a table with `generics` as generic arguments.
    pub(super) fn instantiate(&mut self, types: &[hir::Type], ty: TypeId, generics: &[TypeIndex]) -> TypeIndex {
        let size = |checker: &mut Self, size: hir::Size| match size {
            hir::Size::Known(_) | hir::Size::Value(_) => checker.table.add(Ty::Size(size)),
            hir::Size::Generic(i) => generics[i as usize],
        };
        let ty = match types[ty.0 as usize].clone() {
            hir::Type::Unit => Ty::Unit,
            hir::Type::Never => Ty::Never,
            hir::Type::Scalar(s) => Ty::Scalar(s),
            hir::Type::Tuple(parts) => {
                Ty::Tuple(parts.into_iter().map(|p| self.instantiate(types, p, generics)).collect())
            }
            hir::Type::Array(element, n) => {
                let element = self.instantiate(types, element, generics);
                Ty::Array(element, size(self, n))
            }
            hir::Type::Slice { element, mutable } => {
                Ty::Slice { element: self.instantiate(types, element, generics), mutable }
            }
            hir::Type::View { element, rank, mutable, strided } => {
                Ty::View { element: self.instantiate(types, element, generics), rank, mutable, strided }
            }
            hir::Type::Shared { element, rank } => {
                Ty::Shared { element: self.instantiate(types, element, generics), rank }
            }
            hir::Type::Pending => Ty::Pending,
            hir::Type::Group(n) => Ty::Group(size(self, n)),
            hir::Type::Reference { to, mutable } => {
                Ty::Reference { to: self.instantiate(types, to, generics), mutable }
            }
            hir::Type::Option(inner) => Ty::Option(self.instantiate(types, inner, generics)),
            hir::Type::Function { parameters, returns, calls } => Ty::Function {
                parameters: parameters.into_iter().map(|p| self.instantiate(types, p, generics)).collect(),
                returns: self.instantiate(types, returns, generics),
                calls,
            },
            hir::Type::Constant(n) => return size(self, n),
            hir::Type::Parameter(i) => return generics[i as usize],
            hir::Type::Projection { of, of_trait, item } => {
                let of = self.instantiate(types, of, generics);
                return self.projection(of, of_trait, item);
            }
            hir::Type::Struct(id, arguments) => {
                Ty::Struct(id, arguments.into_iter().map(|a| self.instantiate(types, a, generics)).collect())
            }
            hir::Type::Enum(id, arguments) => {
                Ty::Enum(id, arguments.into_iter().map(|a| self.instantiate(types, a, generics)).collect())
            }
            hir::Type::Item(id) => Ty::Item(id),
        };
        self.table.add(ty)
    }
}

/// Returns the advice for a method that Rust has and kernels do not.
fn instead_of(receiver: &Ty, method: &str) -> String {
    let (ours, needs) = match receiver {
        Ty::Scalar(_) => (language::foreign_number_method(method), ""),
        Ty::Slice { mutable: false, .. } => (language::foreign_access(method), " of a parameter `&mut […]`"),
        Ty::View { mutable: false, .. } => (language::foreign_access(method), " of a `ViewMut`"),
        Ty::Slice { .. } | Ty::View { .. } | Ty::Shared { .. } => (language::foreign_access(method), ""),
        _ => (None, ""),
    };
    if let Some(ours) = ours {
        return format!(": write {ours}{needs}");
    }
    let advice = match (receiver, method) {
        (Ty::Scalar(_), _) if method.starts_with("checked_") || method.starts_with("overflowing_") => {
            ": check the operands first, or use the method named `wrapping_…`"
        }
        (Ty::Scalar(_), _) => ": see `kernel_dsl::methods` for the supported methods",
        (Ty::Slice { .. }, "iter" | "iter_mut" | "into_iter" | "chunks" | "windows") => {
            ": write `for i in 0..x.len()` and index the slice"
        }
        (Ty::Slice { .. }, _) => ": read and write its elements by index",
        _ => "",
    };
    advice.to_string()
}
