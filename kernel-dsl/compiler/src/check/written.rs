//! Types as the program writes them.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{self, Builtin, GenericKind, Root};
use crate::language::MAX_SHARED_RANK;
use crate::syntax::{self, SpanPair};

impl FunctionChecker<'_> {
    /// Returns the type that the user wrote.
    pub(super) fn ty(&mut self, ty: &syntax::Type) -> TypeIndex {
        use syntax::TypeKind;
        match &ty.kind {
            TypeKind::Infer => self.table.unknown(),
            TypeKind::Tuple(parts) if parts.is_empty() => self.table.add(Ty::Unit),
            TypeKind::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.ty(p)).collect();
                self.table.add(Ty::Tuple(parts))
            }
            TypeKind::Array(element, size) => {
                let element = self.ty(element);
                let size = self.size(size);
                self.table.add(Ty::Array(element, size))
            }
            TypeKind::Reference { mutable, to } => match &to.kind {
                TypeKind::Slice(element) => match self.element(element) {
                    Some(element) => self.table.add(Ty::Slice { element, mutable: *mutable }),
                    None => self.wrong(),
                },
                _ => {
                    let to = self.ty(to);
                    self.table.add(Ty::Reference { to, mutable: *mutable })
                }
            },
            TypeKind::Slice(_) => {
                self.report(ty.mark, "a slice must be behind a reference: `&[T]` or `&mut [T]`");
                self.wrong()
            }
            TypeKind::Function { parameters, returns, calls } => {
                let parameters = parameters.iter().map(|p| self.ty(p)).collect();
                let returns = match returns {
                    Some(ty) => self.ty(ty),
                    None => self.table.add(Ty::Unit),
                };
                self.table.add(Ty::Function { parameters, returns, calls: *calls })
            }
            TypeKind::Path(path) => self.path_type(path),
        }
    }

    pub(super) fn path_type(&mut self, path: &syntax::Path) -> TypeIndex {
        let last = path.segments.last().expect("a path has a segment");
        let name = last.name.to_string();
        if let (Some(s), Some(_)) = (Scalar::from_name(&name), path.single()) {
            return self.table.scalar(s);
        }
        if let Some(format) = last.float16() {
            return match format {
                Ok(format) => self.table.scalar(Scalar::Custom(format)),
                Err(why) => {
                    self.report(path.mark, why);
                    self.wrong()
                }
            };
        }
        let result = self.environment.result().map(Root::Enum);
        if last.arguments.is_empty() && result.is_some() && self.environment.find(&path.written()) == result {
            self.needs_both_types(path.mark);
            return self.wrong();
        }
        if let Some(named) = self.named_type(path) {
            return named;
        }
        match name.as_str() {
            "Group" => self.group_type(path),
            "Pending" => self.table.add(Ty::Pending),
            "View" | "ViewMut" | "Strided" | "StridedMut" | "Shared" => {
                let Some((element, rank)) = self.element_and_rank(&last.arguments, path.mark, &name) else {
                    return self.wrong();
                };
                let most = if name == "Shared" { MAX_SHARED_RANK } else { 5 };
                if !(1..=most).contains(&rank) {
                    self.report(path.mark, format!("the rank of a `{name}` must be 1 to {most}"));
                    return self.wrong();
                }
                self.table.add(match name.as_str() {
                    "Shared" => Ty::Shared { element, rank },
                    _ => {
                        Ty::View { element, rank, mutable: name.ends_with("Mut"), strided: name.starts_with("Strided") }
                    }
                })
            }
            "Option" => match last.arguments.as_slice() {
                [syntax::TypeOrConst::Type(inner)] => {
                    let inner = self.ty(inner);
                    self.table.add(Ty::Option(inner))
                }
                _ => {
                    self.report(path.mark, "`Option` takes one type: `Option<f32>`");
                    self.wrong()
                }
            },
            _ => {
                self.report(
                    path.mark,
                    format!("the type `{}` is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut`, `Shared`, and structs and enums marked `#[device]`", path.name()),
                );
                self.wrong()
            }
        }
    }

    pub(super) fn element_and_rank(
        &mut self,
        arguments: &[syntax::TypeOrConst],
        mark: SpanPair,
        name: &str,
    ) -> Option<(TypeIndex, u32)> {
        match arguments {
            [syntax::TypeOrConst::Type(element), syntax::TypeOrConst::Number(rank, _)] => {
                let element = if name == "Shared" { self.ty(element) } else { self.element(element)? };
                Some((element, u32::try_from(*rank).unwrap_or(0)))
            }
            _ => {
                self.report(mark, format!("`{name}` takes an element type and a rank: `{name}<f32, 2>`"));
                None
            }
        }
    }

    /// Returns an element type of a buffer.
    pub(super) fn element(&mut self, ty: &syntax::Type) -> Option<TypeIndex> {
        let id = self.ty(ty);
        let message = match self.table.get(id).clone() {
            Ty::Wrong => return None,
            Ty::Scalar(Scalar::Usize) => {
                "a buffer cannot hold `usize`, which has 32 bits on the device and 64 on the host: use `u32` or `u64`"
                    .to_string()
            }
            Ty::Scalar(Scalar::Bool) => {
                "a buffer cannot hold `bool`, because not every byte is a valid `bool`: use `u8`".to_string()
            }
            Ty::Tuple(_) => {
                "a buffer cannot hold a tuple, whose layout is unspecified: use a `#[device] #[repr(C)] struct`"
                    .to_string()
            }
            Ty::Struct(item, _) if !self.environment.struct_of(item).repr_c => {
                format!(
                    "a buffer cannot hold `{}`, whose layout is unspecified: add `#[repr(C)]` to the struct",
                    self.named(id)
                )
            }
            Ty::Enum(..) => {
                format!(
                    "a buffer cannot hold `{}`, because not every number is one of its variants: use `u32`",
                    self.named(id)
                )
            }
            _ if self.is_element(id) => return Some(id),
            Ty::Parameter(_) | Ty::Projection { .. } => {
                format!("a buffer cannot hold `{0}` without a bound: write `{0}: Element`", self.named(id))
            }
            _ => {
                format!("a buffer can hold numbers, arrays of numbers and `repr(C)` structs, not `{}`", self.named(id))
            }
        };
        self.report(ty.mark, message);
        None
    }

    /// Returns whether a buffer can hold values of the type.
    pub(super) fn is_element(&self, id: TypeIndex) -> bool {
        match self.table.get(id) {
            Ty::Scalar(s) => Builtin::Element.holds(*s),
            Ty::Array(element, _) => self.is_element(*element),
            Ty::Struct(item, _) => self.environment.struct_of(*item).repr_c,
            Ty::Parameter(_) | Ty::Projection { .. } => self.implements(id, Builtin::Element),
            Ty::Wrong => true,
            _ => false,
        }
    }

    /// Returns a generic constant of the type `scalar`: a literal or a generic constant.
    pub(super) fn constant(&mut self, argument: &syntax::TypeOrConst, scalar: Scalar) -> TypeIndex {
        if matches!(scalar, Scalar::Usize | Scalar::Bool) {
            return self.size(argument);
        }
        let (n, mark) = match argument {
            syntax::TypeOrConst::Number(n, mark) => (*n, *mark),
            argument => {
                let size = self.size(argument);
                let Ty::Size(hir::Size::Known(n)) = *self.table.get(size) else { return size };
                let mark = match argument {
                    syntax::TypeOrConst::Type(ty) => ty.mark,
                    syntax::TypeOrConst::Number(_, mark) | syntax::TypeOrConst::Bool(_, mark) => *mark,
                };
                (n.into(), mark)
            }
        };
        if !scalar.holds(n) {
            self.report(mark, format!("`{n}` does not fit in `{scalar}`"));
        }
        self.table.add(Ty::Size(hir::Size::Value(n)))
    }

    /// Returns a number in a type: a literal or a generic constant.
    pub(super) fn size(&mut self, argument: &syntax::TypeOrConst) -> TypeIndex {
        let size = match argument {
            syntax::TypeOrConst::Number(n, mark) => match u32::try_from(*n) {
                Ok(n) => hir::Size::Known(n),
                Err(_) => {
                    self.report(*mark, format!("`{n}` does not fit in `usize`, which has 32 bits on the device"));
                    return self.wrong();
                }
            },
            syntax::TypeOrConst::Bool(b, _) => hir::Size::Known(u32::from(*b)),
            syntax::TypeOrConst::Type(syntax::Type { kind: syntax::TypeKind::Infer, .. }) => {
                return self.table.add(Ty::Unknown(UnknownKind::Size));
            }
            syntax::TypeOrConst::Type(ty) => {
                let name = match &ty.kind {
                    syntax::TypeKind::Path(p) => p.single().map(|i| i.to_string()),
                    _ => None,
                };
                let constant = |g: &hir::Generic| matches!(g.kind, GenericKind::Constant(_));
                match self.generics.iter().position(|g| Some(&g.name) == name.as_ref() && constant(g)) {
                    Some(i) => hir::Size::Generic(i as u32),
                    None => match self.constant_size(ty) {
                        Some(n) => hir::Size::Known(n),
                        None => {
                            let message = "expected a size: a number, a generic constant of this function, or a device constant computed from numbers with + − × ÷";
                            self.report(ty.mark, message);
                            return self.wrong();
                        }
                    },
                }
            }
        };
        self.table.add(Ty::Size(size))
    }
}
