//! `assert!(condition, "message {}", value)`, its variants, `panic!` and `log!`.

use super::place::written;
use super::{Binary, Expr, ExprKind, Reader};
use crate::assertion::{Assertion, MessagePart, escaped, pieces};
use crate::ir::Comparison;
use crate::ir::MAX_LOG_VALUES;
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

/// A macro that asserts or panics: its name, and the form of its arguments.
struct AssertionForm {
    name: &'static str,
    assertion: Assertion,
    test: Test,
}

/// The arguments before the message.
#[derive(Clone, Copy)]
enum Test {
    /// A condition.
    Holds,
    /// Two values.
    Compares(Comparison),
    /// No arguments before the message: the thread fails, with this text before its message.
    Never(&'static str),
}

const FORMS: [AssertionForm; 10] = {
    use Assertion::*;
    use Test::*;
    const fn form(name: &'static str, assertion: Assertion, test: Test) -> AssertionForm {
        AssertionForm { name, assertion, test }
    }
    [
        form("assert", Assert, Holds),
        form("assert_eq", Assert, Compares(Comparison::Eq)),
        form("assert_ne", Assert, Compares(Comparison::Ne)),
        form("debug_assert", DebugAssert, Holds),
        form("debug_assert_eq", DebugAssert, Compares(Comparison::Eq)),
        form("debug_assert_ne", DebugAssert, Compares(Comparison::Ne)),
        form("panic", Panic, Never("")),
        form("unreachable", Panic, Never("entered unreachable code")),
        form("todo", Panic, Never("not yet implemented")),
        form("unimplemented", Panic, Never("not implemented")),
    ]
};

/// Returns whether a macro is an assertion or a panic.
pub(super) fn is_assertion(mac: &syn::Macro) -> bool {
    form(mac).is_some()
}

/// Returns whether a macro is `log!`.
pub(super) fn is_log(mac: &syn::Macro) -> bool {
    mac.path.segments.last().is_some_and(|segment| segment.ident == "log")
}

fn form(mac: &syn::Macro) -> Option<&'static AssertionForm> {
    let name = &mac.path.segments.last()?.ident;
    FORMS.iter().find(|form| name == form.name)
}

/// The arguments as written.
struct AssertionArguments {
    tested: Vec<syn::Expr>,
    text: Option<LitStr>,
    values: Vec<(Option<Ident>, syn::Expr)>,
}

impl AssertionArguments {
    fn parse(input: ParseStream, tested: usize) -> syn::Result<AssertionArguments> {
        let mut arguments = AssertionArguments { tested: Vec::new(), text: None, values: Vec::new() };
        for _ in 0..tested {
            arguments.tested.push(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if input.is_empty() {
            return Ok(arguments);
        }
        let text = input.parse::<LitStr>();
        arguments.text =
            Some(text.map_err(|e| {
                syn::Error::new(e.span(), "the message of a kernel must be a string literal, `\"… {x}\"`")
            })?);
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let named = input.peek(Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==]);
            let name = if named { Some(input.call(Ident::parse_any)?) } else { None };
            if named {
                input.parse::<Token![=]>()?;
            }
            arguments.values.push((name, input.parse()?));
        }
        Ok(arguments)
    }
}

impl Reader {
    pub(super) fn assertion(&mut self, mac: &syn::Macro) -> ExprKind {
        let Some(form) = form(mac) else { return ExprKind::Refused };
        let tested = match form.test {
            Test::Holds => 1,
            Test::Compares(_) => 2,
            Test::Never(_) => 0,
        };
        let parser = |input: ParseStream| AssertionArguments::parse(input, tested);
        let arguments = match mac.parse_body_with(parser) {
            Ok(arguments) => arguments,
            Err(error) => {
                self.refuse(error);
                return ExprKind::Refused;
            }
        };
        let mut values = Vec::new();
        let said = arguments.text.as_ref().map(|text| self.message(text, &arguments.values, &mut values));
        let (condition, mut message) = match (form.test, &arguments.tested[..]) {
            (Test::Compares(comparison), [left, right]) => {
                let sign = if comparison == Comparison::Eq { "==" } else { "!=" };
                let failed = escaped(&format!("`{} {sign} {}` does not hold", written(left), written(right)));
                let (mut mark, last) = (self.mark(left), self.mark(right));
                (mark.last, mark.span.end_line, mark.span.end_column) =
                    (last.last, last.span.end_line, last.span.end_column);
                let sides = [left, right].map(|side| Box::new(self.expression(side)));
                let [left, right] = sides;
                let kind = ExprKind::Binary(Binary::Compare(comparison), left, right);
                (Some(Box::new(Expr { kind, mark })), failed)
            }
            (_, [condition]) => {
                let failed = escaped(&format!("`{}` does not hold", written(condition)));
                (Some(Box::new(self.expression(condition))), failed)
            }
            (Test::Never(text), _) => (None, text.to_string()),
            _ => return ExprKind::Refused,
        };
        match said {
            Some(said) if message.is_empty() => message = said,
            Some(said) => message = format!("{message}: {said}"),
            None if message.is_empty() => message = "explicit panic".to_string(),
            None => {}
        }
        ExprKind::Assertion { assertion: form.assertion, condition, message, values }
    }

    /// Reads `log!("x = {x}")`.
    pub(super) fn log(&mut self, mac: &syn::Macro) -> ExprKind {
        let arguments = match mac.parse_body_with(|input: ParseStream| AssertionArguments::parse(input, 0)) {
            Ok(arguments) => arguments,
            Err(error) => {
                self.refuse(error);
                return ExprKind::Refused;
            }
        };
        let (mut values, mut message) = (Vec::new(), String::new());
        if let Some(text) = &arguments.text {
            message = self.message(text, &arguments.values, &mut values);
            let why = if message.contains('\0') {
                "the text of `log!` contains a NUL, which would end it on a GPU: remove `\\0`".to_string()
            } else if values.len() > MAX_LOG_VALUES {
                let given = values.len();
                format!("`log!` prints at most {MAX_LOG_VALUES} values, and this one has {given}: write two `log!`")
            } else {
                return ExprKind::Log { message, values };
            };
            self.refuse(syn::Error::new(text.span(), why));
        }
        ExprKind::Log { message, values }
    }

    /// Reads a format string. Returns the format string with one placeholder per value, and appends
    /// the values to `values`.
    fn message(&mut self, text: &LitStr, given: &[(Option<Ident>, syn::Expr)], values: &mut Vec<Expr>) -> String {
        let string = text.value();
        let Some(pieces) = pieces(&string) else {
            self.refuse(syn::Error::new(text.span(), "a brace of the message has no partner: write `{{` or `}}`"));
            return String::new();
        };
        let mut message = String::new();
        let mut next = 0;
        for piece in pieces {
            let (argument, style) = match piece {
                MessagePart::Text(plain) => {
                    message.push_str(&escaped(&plain));
                    continue;
                }
                MessagePart::Value { argument, style } => (argument, style),
            };
            let index = if argument.is_empty() {
                next += 1;
                Some(next - 1)
            } else {
                argument.parse().ok()
            };
            let named = given.iter().position(|(name, _)| name.as_ref().is_some_and(|name| name == argument));
            let value = match (named.or(index), syn::parse_str::<Ident>(argument)) {
                (Some(at), _) => given.get(at).map(|(_, value)| self.expression(value)),
                (None, Ok(mut name)) => {
                    name.set_span(text.span());
                    Some(self.expression(&syn::parse_quote!(#name)))
                }
                _ => None,
            };
            match (value, style) {
                (Some(value), Some(style)) => {
                    values.push(value);
                    message.push_str(style.placeholder());
                }
                // rustc reports a missing argument.
                (None, _) => {}
                (Some(_), None) => self.refuse(syn::Error::new(
                    text.span(),
                    "a message of a kernel shows values by `{}`, `{:?}`, `{:x}` and `{:#x}`: remove width, precision and other formats",
                )),
            }
        }
        message
    }
}
