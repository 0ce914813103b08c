//! The launch contract of a kernel: the expressions that a launch evaluates, the declared
//! instances, tolerances and outputs, and the parameters that a launch can pass.

use super::checker::FunctionChecker;
use super::diagnostic::{Diagnostic, ReportedBy};
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{self, Root};
use crate::oracle::{Coverage, DeclaredOutput};
use crate::syntax::{self, SpanPair};

impl FunctionChecker<'_> {
    /// Checks an expression that a launch evaluates on the host, which must have type `wanted`.
    pub(super) fn launch_expression(&mut self, e: &syntax::Expr, wanted: TypeIndex) -> hir::Expr {
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

    /// Returns the generic arguments of one instance.
    pub(super) fn instance(&mut self, instance: &syntax::InstanceOf) -> hir::DeclaredInstance {
        let constants = instance.arguments.iter().map(|argument| match argument {
            syntax::InstanceArgument::Usize(n) => Some(hir::Constant::Usize(*n)),
            syntax::InstanceArgument::Bool(b) => Some(hir::Constant::Bool(*b)),
            syntax::InstanceArgument::Integer(n) => Some(hir::Constant::Integer(*n)),
            syntax::InstanceArgument::Type { path, .. } => self.constant_type(path),
        });
        let arguments = hir::Instance(constants.collect::<Option<_>>().unwrap_or_default());
        hir::DeclaredInstance { name: instance.name.clone(), arguments }
    }

    /// Returns the type argument that a path names.
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

    /// Reports an error for each parameter of a kernel that a launch cannot pass.
    pub(super) fn parameters_of_kernel(&mut self) {
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

    /// Returns a tolerance for the parameter that it names.
    pub(super) fn tolerance(&mut self, tolerance: &syntax::Tolerance) -> Option<hir::Tolerance> {
        let syntax::Tolerance { name, relative, absolute } = tolerance;
        let parameter = self.written_parameter(name, "a tolerance")?;
        Some(hir::Tolerance { parameter, relative: *relative, absolute: *absolute })
    }

    /// Returns the output that a clause `writes` names.
    pub(super) fn output(&mut self, name: &proc_macro2::Ident, coverage: Coverage) -> Option<DeclaredOutput> {
        Some(DeclaredOutput { index: self.written_parameter(name, "`writes`")?, coverage })
    }
}
