//! `ptx!("…", name = in(u32) value, name = out(f32), …)`: inline PTX.
//!
//! The operand types are written, so the text is checked here, where the tokens of its literals are
//! available.

use super::{Expr, ExprKind, Reader};
use crate::Scalar;
use crate::ptx::inline::{self, Direction, InlinePosition, InlineSource};
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{LitStr, Token, parenthesized};

/// A call as written.
pub(crate) struct InlineCall {
    /// The string literals of the text; never empty.
    pub literals: Vec<LitStr>,
    pub operands: Vec<WrittenOperand>,
}

/// An operand as written.
pub(crate) struct WrittenOperand {
    pub name: Ident,
    pub direction: Direction,
    /// A type's name.
    pub ty: Ident,
    /// The value of an input.
    pub value: Option<syn::Expr>,
}

/// Returns whether a macro is `ptx!`, with or without the path of its crate.
pub(crate) fn is_inline(mac: &syn::Macro) -> bool {
    mac.path.segments.last().is_some_and(|s| s.ident == "ptx")
}

impl Parse for InlineCall {
    fn parse(input: ParseStream) -> syn::Result<InlineCall> {
        let mut call = InlineCall { literals: Vec::new(), operands: Vec::new() };
        while input.peek(LitStr) {
            call.literals.push(input.parse()?);
            if input.is_empty() {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        if call.literals.is_empty() {
            return Err(syn::Error::new(
                input.span(),
                "`ptx!` expects the instructions as its first argument: `ptx!(\"add.u32 {d}, {a}, {b};\", a = in(u32) x, b = in(u32) y, d = out(u32))`",
            ));
        }
        while !input.is_empty() {
            call.operands.push(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(call)
    }
}

const EXPECTED_OPERAND: &str =
    "expected an operand: `name = in(u32) value`, `name = out(u32)` or `name = inout(u32) value`";

impl Parse for WrittenOperand {
    fn parse(input: ParseStream) -> syn::Result<WrittenOperand> {
        if !(input.peek(Ident::peek_any) && input.peek2(Token![=])) {
            return Err(syn::Error::new(input.span(), EXPECTED_OPERAND));
        }
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        if !input.peek(Ident::peek_any) {
            return Err(syn::Error::new(input.span(), EXPECTED_OPERAND));
        }
        let word = input.call(Ident::parse_any)?;
        let direction = match word.to_string().as_str() {
            "in" => Direction::In,
            "out" => Direction::Out,
            "inout" => Direction::InOut,
            _ => return Err(syn::Error::new(word.span(), EXPECTED_OPERAND)),
        };
        let inside;
        parenthesized!(inside in input);
        let ty = inside.call(Ident::parse_any)?;
        if !inside.is_empty() {
            return Err(syn::Error::new(inside.span(), EXPECTED_OPERAND_TYPE));
        }
        let ended = input.is_empty() || input.peek(Token![,]);
        let value = match (direction.enters(), ended) {
            (false, true) => None,
            (false, false) => return Err(input.error("an `out` operand takes no value: `ptx!` returns the outputs")),
            (true, true) => {
                let message = format!("the input `{name}` needs a value: `{name} = {}({ty}) value`", direction.name());
                return Err(syn::Error::new(ty.span(), message));
            }
            (true, false) => Some(input.parse()?),
        };
        Ok(WrittenOperand { name, direction, ty, value })
    }
}

const EXPECTED_OPERAND_TYPE: &str = "an operand must be of a number type or `bool`";

impl InlineCall {
    /// Returns the literal that contains line `line` of the text.
    fn span_of(&self, line: u32) -> Span {
        let mut next = 1;
        let found = self.literals.iter().find(|literal| {
            next += literal.value().split('\n').count() as u32;
            line < next
        });
        found.or(self.literals.last()).map_or_else(Span::call_site, LitStr::span)
    }

    fn source(&self) -> syn::Result<InlineSource> {
        let operands = self.operands.iter().map(|o| {
            let ty = Scalar::from_name(&o.ty.to_string())
                .ok_or_else(|| syn::Error::new(o.ty.span(), EXPECTED_OPERAND_TYPE))?;
            Ok(inline::InlineOperand { name: o.name.to_string(), direction: o.direction, ty })
        });
        let operands = operands.collect::<syn::Result<_>>()?;
        let text = self.literals.iter().map(LitStr::value).collect::<Vec<_>>().join("\n");
        Ok(InlineSource { text, operands })
    }
}

impl Reader {
    pub(super) fn inline(&mut self, mac: &syn::Macro) -> ExprKind {
        let read = mac.parse_body::<InlineCall>().and_then(|call| call.source().map(|source| (call, source)));
        let (call, source) = match read {
            Ok(read) => read,
            Err(error) => {
                self.refuse(error);
                return ExprKind::Refused;
            }
        };
        let checked = source.check(None);
        let values: Vec<Expr> =
            call.operands.iter().filter_map(|o| o.value.as_ref()).map(|value| self.expression(value)).collect();
        for error in checked.err().into_iter().flatten() {
            let span = match error.place {
                InlinePosition::Line(line) => call.span_of(line),
                InlinePosition::Operand(i) => call.operands.get(i).map_or_else(Span::call_site, |o| o.name.span()),
            };
            self.refuse(syn::Error::new(span, error.message));
        }
        ExprKind::Inline { source, values }
    }
}
