//! Types, paths and generic arguments.

use super::{Path, Reader, Segment, Type, TypeKind, TypeOrConst};
use crate::hir::CallTrait;
use syn::spanned::Spanned;

impl Reader {
    pub(super) fn ty(&mut self, ty: &syn::Type) -> Type {
        let mark = self.mark(ty);
        let kind = match ty {
            syn::Type::Infer(_) => TypeKind::Infer,
            syn::Type::Paren(t) => return self.ty(&t.elem),
            syn::Type::Group(t) => return self.ty(&t.elem),
            syn::Type::Path(t) if t.qself.is_none() => match t.path.get_ident().and_then(unsupported) {
                Some(why) => {
                    self.refuse(syn::Error::new_spanned(t, why));
                    TypeKind::Infer
                }
                None => TypeKind::Path(self.path(&t.path)),
            },
            syn::Type::Tuple(t) => TypeKind::Tuple(t.elems.iter().map(|t| self.ty(t)).collect()),
            syn::Type::Array(t) => TypeKind::Array(Box::new(self.ty(&t.elem)), Box::new(self.length(&t.len))),
            syn::Type::Slice(t) => TypeKind::Slice(Box::new(self.ty(&t.elem))),
            syn::Type::Reference(t) => {
                TypeKind::Reference { mutable: t.mutability.is_some(), to: Box::new(self.ty(&t.elem)) }
            }
            syn::Type::ImplTrait(t) => self.function_type(t),
            other => {
                self.refuse(syn::Error::new_spanned(
                    other,
                    "this type is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut` and `Shared`",
                ));
                TypeKind::Infer
            }
        };
        Type { kind, mark }
    }

    /// Reads `impl Fn(A, B) -> R`, optionally `+ Copy`: the type of a closure parameter.
    fn function_type(&mut self, t: &syn::TypeImplTrait) -> TypeKind {
        let mut found = None;
        for bound in &t.bounds {
            let syn::TypeParamBound::Trait(bound) = bound else { continue };
            match bound.path.segments.last().map(|s| (s.ident.to_string(), &s.arguments)) {
                Some((name, syn::PathArguments::Parenthesized(signature))) if found.is_none() => {
                    found = CallTrait::from_name(&name).map(|calls| (signature, calls));
                }
                Some((name, syn::PathArguments::None))
                    if matches!(name.as_str(), "Copy" | "Clone" | "Send" | "Sync") => {}
                _ => found = None,
            }
        }
        let Some((signature, calls)) = found else {
            self.refuse(syn::Error::new_spanned(
                t,
                "`impl Trait` is supported only as the type of a device function's parameter: name the type here",
            ));
            return TypeKind::Infer;
        };
        TypeKind::Function {
            parameters: signature.inputs.iter().map(|t| self.ty(&t.ty)).collect(),
            returns: match &signature.output {
                syn::ReturnType::Default => None,
                syn::ReturnType::Type(_, ty) => Some(Box::new(self.ty(ty))),
            },
            calls,
        }
    }

    pub(super) fn path(&mut self, path: &syn::Path) -> Path {
        let segments = path
            .segments
            .iter()
            .map(|s| Segment {
                name: s.ident.clone(),
                arguments: match &s.arguments {
                    syn::PathArguments::None => Vec::new(),
                    syn::PathArguments::AngleBracketed(a) => self.arguments(a),
                    syn::PathArguments::Parenthesized(p) => {
                        self.refuse(syn::Error::new_spanned(
                            p,
                            "the type of a closure can be only that of a device function's parameter, `f: impl Fn(A) -> R`: a device type and an `impl` cannot hold a closure",
                        ));
                        Vec::new()
                    }
                },
            })
            .collect();
        Path { global: path.leading_colon.is_some(), segments, mark: self.mark(path) }
    }

    pub(super) fn arguments(&mut self, arguments: &syn::AngleBracketedGenericArguments) -> Vec<TypeOrConst> {
        arguments
            .args
            .iter()
            .filter_map(|a| match a {
                syn::GenericArgument::Type(t) => Some(TypeOrConst::Type(self.ty(t))),
                syn::GenericArgument::Const(e) => Some(self.constant_argument(e)),
                syn::GenericArgument::Lifetime(_) => None,
                other => {
                    self.refuse(syn::Error::new(
                        other.span(),
                        "a generic argument must be a type or a constant: a bound with an associated type can be only that of an operator, such as `T: Add<Output = T>`, or of `DeviceFn`",
                    ));
                    None
                }
            })
            .collect()
    }

    /// Reads an array length: a number, or the name of a generic constant.
    pub(super) fn length(&mut self, e: &syn::Expr) -> TypeOrConst {
        let length = self.constant_argument(e);
        if let TypeOrConst::Number(n, mark) = length
            && u32::try_from(n).is_err()
        {
            self.refuse(syn::Error::new_spanned(e, "this size does not fit in 32 bits"));
            return TypeOrConst::Number(1, mark);
        }
        length
    }

    /// Reads a constant argument: a number, `true`, `false`, or the name of a generic constant.
    fn constant_argument(&mut self, e: &syn::Expr) -> TypeOrConst {
        let mark = self.mark(e);
        match e {
            // A literal may include its minus sign.
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) => match n.base10_parse::<i128>() {
                Ok(n) => return TypeOrConst::Number(n, mark),
                Err(_) => self.refuse(syn::Error::new_spanned(n, "a generic argument has at most 127 bits")),
            },
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => {
                if let TypeOrConst::Number(n, _) = self.constant_argument(expr)
                    && let Some(n) = n.checked_neg()
                {
                    return TypeOrConst::Number(n, mark);
                }
                self.refuse(syn::Error::new_spanned(e, "expected a size: a number or the name of a generic constant"));
            }
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(b), .. }) => return TypeOrConst::Bool(b.value, mark),
            syn::Expr::Path(p) if p.qself.is_none() => {
                let path = self.path(&p.path);
                return TypeOrConst::Type(Type { kind: TypeKind::Path(path), mark });
            }
            syn::Expr::Block(b) if b.label.is_none() => {
                if let [syn::Stmt::Expr(inner, None)] = b.block.stmts.as_slice() {
                    return self.constant_argument(inner);
                }
                self.refuse(syn::Error::new_spanned(e, "expected a size: a number or the name of a generic constant"));
            }
            other => self
                .refuse(syn::Error::new_spanned(other, "expected a size: a number or the name of a generic constant")),
        }
        TypeOrConst::Number(1, mark)
    }
}

/// Returns why a type of Rust is not supported, for the types that have a name.
fn unsupported(name: &proc_macro2::Ident) -> Option<&'static str> {
    Some(match name.to_string().as_str() {
        "i128" => {
            "`i128` is not supported in kernels: use `u128`, whose `wrapping_add`, `wrapping_sub` and `wrapping_mul` give the same bits"
        }
        "isize" => "`isize` is not supported in kernels: use `i32`, or `i64` for values of more than 32 bits",
        "char" | "str" | "String" => "text is not supported in kernels: use `u8` for bytes, `u32` for characters",
        _ => return None,
    })
}
