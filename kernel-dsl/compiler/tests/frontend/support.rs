//! A miniature crate: kernels and device functions as text, read as the macros read them.
//!
//! Names of device functions are resolved by their last segment, over all texts of a [`Crate`].
//! Items may be in a call of the macro `witnessed!`, which the crate `tests` defines.

#![allow(dead_code)] // Each of those that include this file uses a part of it.

use kernel_dsl_compiler::check::{self, Diagnostic, ItemReference};
use kernel_dsl_compiler::{Errors, hir, syntax};
use proc_macro2::{LineColumn, Span, TokenStream};
use std::fmt::{Display, Write};
use syn::{Item, ItemFn, Meta};

/// xorshift64* (Vigna, 2016).
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n.max(1) as u64) as usize
    }
}

/// A `#[kernel]` or `#[device]` function.
#[derive(Clone)]
pub struct Function {
    /// The argument of `#[kernel(…)]`; `None` for a device function.
    pub attribute: Option<TokenStream>,
    pub item: ItemFn,
}

impl Function {
    pub fn name(&self) -> String {
        self.item.sig.ident.to_string()
    }
}

/// The front end's result for a function.
#[allow(clippy::large_enum_variant, reason = "a test has one at a time")]
pub enum Checked {
    Kernel(hir::Program),
    Device(hir::DeviceLibrary),
}

/// The functions of several files.
#[derive(Default)]
pub struct Crate {
    pub functions: Vec<Function>,
}

impl Crate {
    pub fn parse(text: &str) -> syn::Result<Crate> {
        let mut functions = Vec::new();
        collect(syn::parse_file(text)?.items, &mut functions)?;
        Ok(Crate { functions })
    }

    /// Returns these functions, and those of `other` for calls.
    pub fn with(mut self, other: &Crate) -> Crate {
        self.functions.extend(other.functions.iter().filter(|f| f.attribute.is_none()).cloned());
        self
    }

    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.attribute.is_some())
    }

    /// Runs syntax and check on a function.
    pub fn check(&self, function: &Function) -> Result<Checked, Refusal> {
        self.check_below(function, 0)
    }

    /// Returns the program of a valid kernel.
    pub fn program(&self, kernel: &Function) -> hir::Program {
        match self.check(kernel) {
            Ok(Checked::Kernel(program)) => program,
            Ok(Checked::Device(_)) => panic!("`{}` is a device function", kernel.name()),
            Err(refusal) => panic!("`{}`: {refusal:?}", kernel.name()),
        }
    }

    fn check_below(&self, function: &Function, depth: u32) -> Result<Checked, Refusal> {
        match &function.attribute {
            Some(attribute) => {
                let read = syntax::kernel(attribute.clone(), &function.item)?;
                let callees = self.callees_below(&read.function, depth);
                Ok(Checked::Kernel(check::kernel(&read, &callees)?.hir))
            }
            None => {
                let read = syntax::device(&function.item)?;
                let callees = self.callees_below(&read, depth);
                Ok(Checked::Device(check::device(&read, &callees)?.hir))
            }
        }
    }

    /// Returns what the macros of the valid device functions would provide.
    pub fn callees(&self, function: &syntax::Function) -> Vec<ItemReference> {
        self.callees_below(function, 0)
    }

    fn callees_below(&self, function: &syntax::Function, depth: u32) -> Vec<ItemReference> {
        // A directly or indirectly recursive function ends here: the macros would not resolve.
        if depth > 16 {
            return Vec::new();
        }
        let library = |path: &syn::Path| {
            let name = &path.segments.last()?.ident;
            let function = self.functions.iter().find(|f| f.attribute.is_none() && f.item.sig.ident == *name)?;
            match self.check_below(function, depth + 1) {
                Ok(Checked::Device(library)) => Some(library),
                _ => None,
            }
        };
        let paths = function.callees();
        paths.iter().filter_map(|path| Some(ItemReference { path: written(path), library: library(path)? })).collect()
    }
}

fn collect(items: Vec<Item>, functions: &mut Vec<Function>) -> syn::Result<()> {
    for item in items {
        match item {
            Item::Fn(mut item) => {
                let is = |name: &str| item.attrs.iter().position(|a| a.path().is_ident(name));
                let (kernel, device) = (is("kernel"), is("device"));
                let Some(at) = kernel.or(device) else { continue };
                let attribute = match item.attrs.remove(at).meta {
                    Meta::List(list) => list.tokens,
                    _ => TokenStream::new(),
                };
                functions.push(Function { attribute: kernel.map(|_| attribute), item });
            }
            Item::Macro(call) if call.mac.path.is_ident("witnessed") => {
                collect(syn::parse2::<syn::File>(call.mac.tokens)?.items, functions)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn written(path: &syn::Path) -> String {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, names.join("::"))
}

/// The messages about a program.
#[derive(Debug)]
pub struct Refusal(pub Vec<Complaint>);

/// A message and its location: lines from 1, columns from 0.
#[derive(Debug)]
pub struct Complaint {
    pub place: Option<(LineColumn, LineColumn)>,
    pub message: String,
}

impl From<syn::Error> for Refusal {
    fn from(error: syn::Error) -> Refusal {
        let said = |e: syn::Error| Complaint::of(e.span(), e.span(), e);
        Refusal(error.into_iter().map(said).collect())
    }
}

impl From<Vec<Diagnostic>> for Refusal {
    fn from(diagnostics: Vec<Diagnostic>) -> Refusal {
        Refusal(diagnostics.into_iter().map(|m| Complaint::of(m.mark.first, m.mark.last, m.message)).collect())
    }
}

impl From<Errors> for Refusal {
    fn from(errors: Errors) -> Refusal {
        let said = errors.0.into_iter().map(|e| {
            let at = |source: u32, line: u16, column: u16| LineColumn {
                line: (source + u32::from(line)) as usize,
                column: usize::from(column).saturating_sub(1),
            };
            let place = e
                .place
                .as_ref()
                .map(|(s, span)| (at(s.line, span.line, span.column), at(s.line, span.end_line, span.end_column)));
            Complaint { place, message: e.text() }
        });
        Refusal(said.collect())
    }
}

impl Complaint {
    fn of(first: Span, last: Span, message: impl Display) -> Complaint {
        Complaint { place: Some((first.start(), last.end())), message: message.to_string() }
    }

    /// Returns the line of `text`, with the tokens underlined, and the message.
    pub fn render(&self, text: &str) -> String {
        let mut out = String::new();
        if let Some((start, end)) = self.place {
            let line = text.lines().nth(start.line.wrapping_sub(1)).unwrap_or("");
            let indent = line.len() - line.trim_start().len();
            let end = if end.line == start.line { end.column } else { line.chars().count() };
            let carets = "^".repeat(end.saturating_sub(start.column).max(1));
            let _ = writeln!(out, "    {}", line.trim_start());
            let _ = writeln!(out, "    {}{carets}", " ".repeat(start.column.saturating_sub(indent)));
        }
        let _ = writeln!(out, "{}", self.message);
        out
    }
}

/// Returns the library's device functions that kernels call.
pub fn library() -> Crate {
    let activation = include_str!("../../../../kernels-rs/src/activation.rs");
    Crate::parse(activation).expect("activation").with(&math())
}

/// Returns the functions of `kernel_dsl::math`, separate from other crates, one of which has a
/// function of the same name.
pub fn math() -> Crate {
    let parse = |text: &str| Crate::parse(text).expect("math");
    MATH.iter().fold(Crate::default(), |all, file| all.with(&parse(file)))
}

/// The files of `kernel_dsl::math` with functions of `f32`.
const MATH: [&str; 10] = [
    include_str!("../../../src/math/error_function.rs"),
    include_str!("../../../src/math/exponential.rs"),
    include_str!("../../../src/math/hyperbolic.rs"),
    include_str!("../../../src/math/inverse_hyperbolic.rs"),
    include_str!("../../../src/math/inverse_trigonometric.rs"),
    include_str!("../../../src/math/logarithm.rs"),
    include_str!("../../../src/math/power.rs"),
    include_str!("../../../src/math/reciprocal.rs"),
    include_str!("../../../src/math/roots.rs"),
    include_str!("../../../src/math/trigonometric.rs"),
];

/// The files of kernels-rs with kernels.
pub const KERNELS: [&str; 4] = [
    include_str!("../../../../kernels-rs/src/elementwise.rs"),
    include_str!("../../../../kernels-rs/src/gemm.rs"),
    include_str!("../../../../kernels-rs/src/permute.rs"),
    include_str!("../../../../kernels-rs/src/rowwise.rs"),
];
