//! The code that a mutation inserts: values, types, names and statements, chosen at random.

use super::Mutator;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Expr, Ident, Type, parse_quote};

/// Values of many types.
const VALUES: [&str; 20] = [
    "1.5f32",
    "1.5",
    "true",
    "7u64",
    "7",
    "-1i32",
    "()",
    "[1u32; 2]",
    "(1u32, 2.0f32)",
    "Some(1u32)",
    "None",
    "0u8",
    "1usize",
    "f64::MAX",
    "u32::MAX",
    "|q: u32| q",
    "[1.0f32, 2.0]",
    "3i64",
    "false",
    "unknown_name",
];

/// Literals at the edges of types.
const EDGES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "300",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "-2147483649",
    "1e39",
    "1e400",
    "18446744073709551615",
    "18446744073709551616",
];

/// Types with suffixes of literals.
const SUFFIXES: [&str; 11] = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "usize"];

impl Mutator<'_> {
    pub(super) fn value(&mut self) -> Expr {
        let text = VALUES[self.random.below(VALUES.len())];
        syn::parse_str(text).expect("an expression")
    }

    pub(super) fn ty(&mut self) -> Type {
        let names = self.names;
        self.one_of(&names.types).cloned().unwrap_or_else(|| parse_quote!(u32))
    }

    pub(super) fn variable(&mut self) -> Ident {
        let names = self.names;
        self.one_of(&names.variables).cloned().unwrap_or_else(|| format_ident!("unknown_name"))
    }

    pub(super) fn edge(&mut self) -> Expr {
        let text = EDGES[self.random.below(EDGES.len())];
        let suffix = match self.random.below(3) {
            0 if !text.contains('e') => SUFFIXES[self.random.below(SUFFIXES.len())],
            _ => "",
        };
        syn::parse_str(&format!("{text}{suffix}")).expect("a literal")
    }

    /// Returns the expression inside another one.
    pub(super) fn wrapped(&mut self, e: &Expr) -> Expr {
        let e: Expr = parse_quote!((#e));
        match self.random.below(20) {
            0 => parse_quote!((!#e)),
            1 => parse_quote!((-#e)),
            2 => parse_quote!((*#e)),
            3 => parse_quote!((&#e)),
            4 => parse_quote!((&mut #e)),
            5 => parse_quote!((#e as bool)),
            6 => parse_quote!((#e as f32)),
            7 => parse_quote!((#e as u32)),
            8 => parse_quote!((#e).0),
            9 => parse_quote!((#e)[0]),
            10 => parse_quote!((#e)()),
            11 => parse_quote!(Some(#e)),
            12 => parse_quote!((#e)?),
            13 => parse_quote!({ #e; }),
            14 => parse_quote!((#e,)),
            15 => parse_quote!({ let w = #e; w }),
            16 => parse_quote!((#e == #e)),
            17 => parse_quote!([#e; 2]),
            18 => parse_quote!({ let w = &#e; *w }),
            _ => parse_quote!(if true { #e }),
        }
    }

    /// Returns statements about the variables of the program.
    pub(super) fn statements(&mut self) -> TokenStream {
        let (v, w, ty) = (self.variable(), self.variable(), self.ty());
        match self.random.below(34) {
            0 => quote!(let first = &mut #v; let second = &mut #v; let _ = (&first, &second);),
            1 => quote!(let kept = &#v; #v = #w; let _ = *kept;),
            2 => quote!(let moved = #v; let again = #v;),
            3 => quote!(#v = #v;),
            4 => quote!(let later: #ty; let _ = later;),
            5 => quote!(let later; if true { later = #v; } let _ = later;),
            6 => quote!(let later; later = #v; later = #w;),
            7 => quote!(let outer; { let inner = #v; outer = &inner; } let _ = *outer;),
            8 => quote!(let closure = || #v; let _ = closure();),
            9 => quote!(let mut counted = 0u32; let mut count = || counted += 1; count(); counted += 1; count();),
            10 => quote!(let shown = &mut #v; let _ = #v; *shown = #w;),
            11 => quote!(let #v: #ty = #w;),
            12 => quote!(#v += #w;),
            13 => quote!(let _ = #v == #w;),
            14 => quote!(break;),
            15 => quote!(continue;),
            16 => quote!(return #v;),
            17 => quote!(let (left, right) = #v;),
            18 => quote!(let Some(inside) = #v;),
            19 => quote!(let [head, ..] = #v;),
            20 => quote!(let [10u32, tail] = [1u32, 2];),
            21 => quote!(let zero = 0u32; let _ = 5u32 / zero;),
            22 => quote!(let few = [1u32, 2]; let _ = few[2];),
            23 => quote!(let _ = 255u8 + 1;),
            24 => quote!(let _ = 1u32 << 32;),
            25 => quote!(let _ = match #v { 0 => 1u32, 1 => 2 };),
            26 => quote!(let _ = match #v { true => 1u32 };),
            27 => quote!(const LIMIT: u8 = 300; let _ = LIMIT;),
            28 => quote!(while true { let later: #ty; later = #v; }),
            29 => quote!(loop { let moved = #v; break; } let _ = #v;),
            30 => quote!(for turn in 0..2u32 { let moved = #v; }),
            31 => quote!(let pair = (#v, #w); let _ = #v;),
            32 => quote!(let _: #ty = #v;),
            _ => quote!(let number = { let hidden = 1u32; hidden }; let _ = hidden;),
        }
    }
}
