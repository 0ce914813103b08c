//! Assertions and panics of kernels: the macros, and the text of a failure.
//!
//! A thread that fails an assertion or panics ends, and the others continue as after a `return`.
//! The oracle and the checked form report the failure. In the unchecked form an assertion costs
//! nothing, unless the kernel keeps its assertions.

use serde::{Deserialize, Serialize};

/// A macro that ends a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Assertion {
    /// `assert!`, `assert_eq!`, `assert_ne!`.
    Assert,
    /// `debug_assert!` and its variants, which the clause `assertions` does not keep.
    DebugAssert,
    /// `panic!`, `unreachable!`, `todo!`, `unimplemented!`.
    Panic,
}

/// The effect of a failure in the unchecked form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureEffect {
    /// Nothing: the condition is not computed.
    Continue,
    /// The thread ends.
    Exit,
    /// The launch ends with an error of the driver (`trap`).
    Trap,
}

impl Assertion {
    /// Returns the effect of a failure in the unchecked form. `kept` states whether the kernel has
    /// the clause `assertions`.
    pub fn outcome(self, kept: bool) -> FailureEffect {
        match self {
            Assertion::Assert if kept => FailureEffect::Trap,
            Assertion::Assert | Assertion::DebugAssert => FailureEffect::Continue,
            Assertion::Panic if kept => FailureEffect::Trap,
            Assertion::Panic => FailureEffect::Exit,
        }
    }
}

/// A piece of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessagePart<'t> {
    /// Text without placeholders, as the message prints it.
    Text(String),
    /// `{argument:style}`.
    Value {
        /// A name or number; empty for the next argument.
        argument: &'t str,
        /// How the value is written; `None` for a style that kernels do not have.
        style: Option<Style>,
    },
}

/// How a message shows a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `{}` and `{:?}`: as Rust's `{:?}`.
    Decimal,
    /// `{:x}`.
    Hexadecimal,
    /// `{:#x}`.
    PrefixedHexadecimal,
}

impl Style {
    /// Returns the placeholder of a value of this style.
    pub fn placeholder(self) -> &'static str {
        match self {
            Style::Decimal => "{}",
            Style::Hexadecimal => "{:x}",
            Style::PrefixedHexadecimal => "{:#x}",
        }
    }

    const NAMED_STYLES: [(&'static str, Style); 4] =
        [("", Style::Decimal), ("?", Style::Decimal), ("x", Style::Hexadecimal), ("#x", Style::PrefixedHexadecimal)];

    /// Returns the text of a value from its decimal text and its bits.
    pub fn show(self, plain: String, bits: u64) -> String {
        match self {
            Style::Decimal => plain,
            Style::Hexadecimal => format!("{bits:x}"),
            Style::PrefixedHexadecimal => format!("{bits:#x}"),
        }
    }
}

/// Splits a format string into its pieces. Returns `None` if a brace has no partner.
pub fn pieces(text: &str) -> Option<Vec<MessagePart<'_>>> {
    let mut all = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            plain.push_str(brace);
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').filter(|_| brace == "{")?;
        if !plain.is_empty() {
            all.push(MessagePart::Text(std::mem::take(&mut plain)));
        }
        let (argument, style) = inside.split_once(':').unwrap_or((inside, ""));
        let style = Style::NAMED_STYLES.into_iter().find(|(name, _)| *name == style.trim()).map(|(_, style)| style);
        all.push(MessagePart::Value { argument: argument.trim(), style });
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        all.push(MessagePart::Text(plain));
    }
    Some(all)
}

/// Escapes `text` so that [`pieces`] reads it as literal text.
pub fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Returns a message with its values. `value` returns the text of the value at an index; a missing
/// value is shown as `…`.
pub fn message(text: &str, mut value: impl FnMut(usize, Style) -> Option<String>) -> String {
    let mut next = 0;
    let shown = pieces(text).unwrap_or_default().into_iter().map(|piece| match piece {
        MessagePart::Text(text) => text,
        MessagePart::Value { style, .. } => {
            next += 1;
            value(next - 1, style.unwrap_or(Style::Decimal)).unwrap_or_else(|| "…".to_string())
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_shows_its_values() {
        let text = "{{{} of {:#x}}}: {:?}, {}";
        let values = [7u64, 255, 3];
        let shown = message(text, |i, style| values.get(i).map(|v| style.show(v.to_string(), *v)));
        assert_eq!(shown, "{7 of 0xff}: 3, …");
        assert_eq!(message(&escaped("a {b} c"), |_, _| None), "a {b} c");
        assert_eq!(pieces("{"), None);
        assert_eq!(pieces("}"), None);
        assert_eq!(pieces("{:>8}"), Some(vec![MessagePart::Value { argument: "", style: None }]));
    }
}
