//! Derived constants: their values from the arguments of an instance.

use super::instance::InstanceArgument;
use crate::Scalar;
use crate::syntax::{Generic, GenericKind};
use proc_macro2::Ident;

/// Returns the value of a derived constant, given the arguments of the parameters before it.
pub(super) fn derive(
    value: &syn::Expr,
    kind: &GenericKind,
    generics: &[Generic],
    given: &[InstanceArgument],
) -> Option<InstanceArgument> {
    let named = |name: &Ident| generics.iter().position(|g| g.name == *name).and_then(|i| given.get(i));
    Some(match (evaluate(value, &named)?, kind) {
        (AttributeNumber::Bool(b), _) => InstanceArgument::Bool(b),
        (AttributeNumber::Integer(n), GenericKind::Constant(scalar)) if *scalar != Scalar::Usize => {
            InstanceArgument::Integer(Some(n.into()).filter(|n| scalar.holds(*n))?)
        }
        (AttributeNumber::Integer(n), _) => InstanceArgument::Usize(u32::try_from(n).ok()?),
    })
}

#[derive(Clone, Copy)]
enum AttributeNumber {
    Integer(u64),
    Bool(bool),
}

fn evaluate<'a>(e: &syn::Expr, named: &dyn Fn(&Ident) -> Option<&'a InstanceArgument>) -> Option<AttributeNumber> {
    let integer = |e: &syn::Expr| match evaluate(e, named)? {
        AttributeNumber::Integer(n) => Some(n),
        AttributeNumber::Bool(_) => None,
    };
    Some(match e {
        syn::Expr::Lit(l) => match &l.lit {
            syn::Lit::Int(n) => AttributeNumber::Integer(n.base10_parse().ok()?),
            syn::Lit::Bool(b) => AttributeNumber::Bool(b.value),
            _ => return None,
        },
        syn::Expr::Paren(p) => evaluate(&p.expr, named)?,
        syn::Expr::Group(g) => evaluate(&g.expr, named)?,
        syn::Expr::Path(p) => match named(p.path.get_ident()?)? {
            InstanceArgument::Usize(n) => AttributeNumber::Integer(u64::from(*n)),
            InstanceArgument::Bool(b) => AttributeNumber::Bool(*b),
            InstanceArgument::Integer(n) => AttributeNumber::Integer(u64::try_from(*n).ok()?),
            InstanceArgument::Type { .. } => return None,
        },
        syn::Expr::Binary(b) => {
            use syn::BinOp::*;
            let (x, y) = (integer(&b.left)?, integer(&b.right)?);
            match b.op {
                Add(_) => AttributeNumber::Integer(x.checked_add(y)?),
                Sub(_) => AttributeNumber::Integer(x.checked_sub(y)?),
                Mul(_) => AttributeNumber::Integer(x.checked_mul(y)?),
                Div(_) => AttributeNumber::Integer(x.checked_div(y)?),
                Rem(_) => AttributeNumber::Integer(x.checked_rem(y)?),
                Eq(_) => AttributeNumber::Bool(x == y),
                Ne(_) => AttributeNumber::Bool(x != y),
                Lt(_) => AttributeNumber::Bool(x < y),
                Le(_) => AttributeNumber::Bool(x <= y),
                Gt(_) => AttributeNumber::Bool(x > y),
                Ge(_) => AttributeNumber::Bool(x >= y),
                _ => return None,
            }
        }
        syn::Expr::MethodCall(m) if m.args.len() == 1 => {
            let (x, y) = (integer(&m.receiver)?, integer(&m.args[0])?);
            AttributeNumber::Integer(match m.method.to_string().as_str() {
                "div_ceil" if y != 0 => x.div_ceil(y),
                "min" => x.min(y),
                "max" => x.max(y),
                _ => return None,
            })
        }
        syn::Expr::Call(c) if c.args.is_empty() => {
            let syn::Expr::Path(p) = &*c.func else { return None };
            let last = p.path.segments.last().filter(|s| s.ident == "size_of")?;
            let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            let Some(syn::GenericArgument::Type(syn::Type::Path(of))) = arguments.args.first() else { return None };
            let name = of.path.get_ident()?;
            let scalar = match named(name) {
                Some(InstanceArgument::Type { path, .. }) => match path.segments.last()?.float16() {
                    Some(format) => Some(Scalar::Custom(format.ok()?)),
                    None => Scalar::from_name(&path.single()?.to_string()),
                },
                _ => Scalar::from_name(&name.to_string()),
            };
            AttributeNumber::Integer(u64::from(scalar?.bytes()))
        }
        _ => return None,
    })
}
