//! Instances of a kernel: their declarations, names and generic arguments.

use super::derived::derive;
use crate::Scalar;
use crate::syntax::{Function, Generic, GenericKind, Path, Reader};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::Token;
use syn::parse::ParseStream;

/// One declaration `name: A = 1 | 2, T = f32` of `instances(…; …)`.
#[derive(Default)]
pub(super) struct InstanceDeclaration {
    name: Option<Ident>,
    values: Vec<(Ident, Vec<syn::Type>)>,
}

/// One instance of a declaration.
#[derive(Clone, Debug, Default)]
pub struct InstanceOf {
    /// The name of the instance, without the kernel's.
    pub name: Option<String>,
    /// The generic arguments, in order.
    pub arguments: Vec<InstanceArgument>,
}

/// A generic argument.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum InstanceArgument {
    Usize(u32),
    Bool(bool),
    /// A value of another integer type.
    Integer(i128),
    /// An element type, a struct or enum, or a device function.
    Type {
        path: Path,
        tokens: TokenStream,
    },
}

impl InstanceArgument {
    fn same(&self, other: &InstanceArgument) -> bool {
        match (self, other) {
            (InstanceArgument::Usize(a), InstanceArgument::Usize(b)) => a == b,
            (InstanceArgument::Bool(a), InstanceArgument::Bool(b)) => a == b,
            (InstanceArgument::Integer(a), InstanceArgument::Integer(b)) => a == b,
            (InstanceArgument::Type { path: a, tokens: x }, InstanceArgument::Type { path: b, tokens: y }) => {
                a.written() == b.written() && x.to_string() == y.to_string()
            }
            _ => false,
        }
    }
}

impl ToTokens for InstanceArgument {
    fn to_tokens(&self, out: &mut TokenStream) {
        match self {
            InstanceArgument::Usize(n) => Literal::u32_unsuffixed(*n).to_tokens(out),
            InstanceArgument::Bool(b) => b.to_tokens(out),
            InstanceArgument::Integer(n) => {
                if *n < 0 {
                    out.extend(quote::quote!(-));
                }
                Literal::u128_unsuffixed(n.unsigned_abs()).to_tokens(out);
            }
            InstanceArgument::Type { tokens, .. } => out.extend(tokens.clone()),
        }
    }
}

impl std::fmt::Display for InstanceArgument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InstanceArgument::Usize(n) => write!(f, "{n}"),
            InstanceArgument::Bool(b) => write!(f, "{b}"),
            InstanceArgument::Integer(n) => write!(f, "{n}"),
            InstanceArgument::Type { path, .. } => match path.segments.last() {
                Some(last) => match last.float16() {
                    Some(Ok(format)) => write!(f, "{format}"),
                    _ => write!(f, "{}", last.name),
                },
                None => Ok(()),
            },
        }
    }
}

impl InstanceOf {
    /// Returns the Rust name of the instance of `kernel`: `saxpy`, `matmul::<16>`.
    pub fn rust_name(&self, kernel: &str) -> String {
        let values: Vec<_> = self.arguments.iter().map(InstanceArgument::to_string).collect();
        if values.is_empty() { kernel.to_string() } else { format!("{kernel}::<{}>", values.join(", ")) }
    }

    /// Returns the generic arguments in angle brackets; nothing if there are none.
    pub fn arguments(&self) -> TokenStream {
        let all = &self.arguments;
        if all.is_empty() { quote!() } else { quote!(<#(#all),*>) }
    }
}

/// Parses the declarations of `instances(…; …)`.
pub(super) fn declarations(input: ParseStream) -> syn::Result<Vec<InstanceDeclaration>> {
    let mut all = vec![InstanceDeclaration::default()];
    while !input.is_empty() {
        let declaration = all.last_mut().expect("never empty");
        if declaration.values.is_empty() && input.peek(syn::Ident) && input.peek2(Token![:]) {
            declaration.name = Some(input.parse()?);
            input.parse::<Token![:]>()?;
        }
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let mut values = vec![value(input)?];
        while input.peek(Token![|]) {
            input.parse::<Token![|]>()?;
            values.push(value(input)?);
        }
        declaration.values.push((name, values));
        if input.peek(Token![;]) {
            input.parse::<Token![;]>()?;
            if !input.is_empty() {
                all.push(InstanceDeclaration::default());
            }
        } else if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(all)
}

/// Parses a number, `bool` or type. A literal becomes a verbatim type, so that one type of the
/// syntax tree holds all three.
fn value(input: ParseStream) -> syn::Result<syn::Type> {
    if input.peek(syn::Lit) {
        Ok(syn::Type::Verbatim(input.parse::<syn::Lit>()?.to_token_stream()))
    } else {
        input.parse()
    }
}

impl Reader {
    /// Returns the instances that the declarations make.
    pub(super) fn instances(
        &mut self,
        function: &Function,
        declared: &[InstanceDeclaration],
        derived: &[(Ident, syn::Expr)],
    ) -> Vec<InstanceOf> {
        let generics = &function.generics;
        for (name, _) in derived {
            let constant = generics.iter().any(|g| g.name == *name && matches!(g.kind, GenericKind::Constant(_)));
            if !constant {
                self.refuse(syn::Error::new(name.span(), format!("the kernel has no generic constant `{name}`")));
            }
        }
        if generics.is_empty() {
            for name in declared.iter().flat_map(|d| d.name.iter()) {
                let message = "the kernel has no generic parameters: its only instance has the kernel's name";
                self.refuse(syn::Error::new(name.span(), message));
            }
            for (name, _) in declared.iter().flat_map(|d| &d.values) {
                self.refuse(syn::Error::new(name.span(), format!("the kernel has no generic parameter `{name}`")));
            }
            return vec![InstanceOf::default()];
        }
        let mut all: Vec<InstanceOf> = Vec::new();
        for InstanceDeclaration { name: label, values: declaration } in declared {
            // The product over the parameters in order; the last varies fastest.
            let mut product: Vec<Vec<InstanceArgument>> = vec![Vec::new()];
            for generic in generics {
                if let Some((name, value)) = derived.iter().find(|(name, _)| *name == generic.name) {
                    for given in &mut product {
                        match derive(value, &generic.kind, generics, given) {
                            Some(n) => given.push(n),
                            None => {
                                self.refuse(syn::Error::new_spanned(
                                    value,
                                    format!("`{name}` must be computed from earlier generic parameters; allowed are numbers, parameter names, + − × ÷ %, `div_ceil`, `min`, `max`, comparisons and `size_of::<T>()`"),
                                ));
                                return Vec::new();
                            }
                        }
                    }
                    continue;
                }
                let Some((_, values)) = declaration.iter().find(|(name, _)| *name == generic.name) else {
                    let at = declaration.first().map_or(generic.name.span(), |(name, _)| name.span());
                    self.refuse(syn::Error::new(at, format!("this instance has no value for `{}`", generic.name)));
                    continue;
                };
                let values: Vec<_> = values.iter().filter_map(|v| self.argument(v, &generic.kind)).collect();
                product = product
                    .iter()
                    .flat_map(|p| values.iter().map(move |c| p.iter().chain([c]).cloned().collect()))
                    .collect();
            }
            for (name, _) in declaration {
                if generics.iter().all(|g| g.name != *name) {
                    self.refuse(syn::Error::new(name.span(), format!("the kernel has no generic parameter `{name}`")));
                } else if derived.iter().any(|(n, _)| n == name) {
                    self.refuse(syn::Error::new(
                        name.span(),
                        format!("`{name}` is derived, so an instance cannot set it"),
                    ));
                }
            }
            for arguments in product {
                let name = label.as_ref().map(|label| instance_name(label, declaration, generics, &arguments));
                let same = |i: &InstanceOf| {
                    i.arguments.len() == arguments.len() && i.arguments.iter().zip(&arguments).all(|(a, b)| a.same(b))
                };
                match (&name, label) {
                    (Some(name), Some(label)) if all.iter().any(|i| same(i) || i.name.as_ref() == Some(name)) => {
                        let message = format!(
                            "the instance `{name}` is declared twice: each instance has one declaration and its own name"
                        );
                        self.refuse(syn::Error::new(label.span(), message));
                    }
                    _ if all.iter().any(same) => {}
                    _ => all.push(InstanceOf { name, arguments }),
                }
            }
        }
        all
    }

    fn argument(&mut self, value: &syn::Type, kind: &GenericKind) -> Option<InstanceArgument> {
        // A type that a macro inserted for `$t:ty`.
        if let syn::Type::Group(group) = value {
            return self.argument(&group.elem, kind);
        }
        let literal = syn::parse2::<syn::Lit>(value.to_token_stream()).ok();
        let argument = match (literal, kind) {
            (Some(syn::Lit::Int(n)), GenericKind::Constant(Scalar::Usize)) => {
                n.base10_parse().ok().map(InstanceArgument::Usize)
            }
            (Some(syn::Lit::Int(n)), GenericKind::Constant(scalar)) => {
                n.base10_parse().ok().filter(|n| scalar.holds(*n)).map(InstanceArgument::Integer)
            }
            (Some(syn::Lit::Bool(b)), GenericKind::Constant(Scalar::Bool)) => Some(InstanceArgument::Bool(b.value)),
            (None, GenericKind::Type(_)) => match value {
                syn::Type::Path(p) if p.qself.is_none() => {
                    Some(InstanceArgument::Type { path: self.path(&p.path), tokens: value.to_token_stream() })
                }
                _ => None,
            },
            _ => None,
        };
        if argument.is_none() {
            let wanted = match kind {
                GenericKind::Constant(Scalar::Bool) => "`true` or `false`".to_string(),
                GenericKind::Constant(Scalar::Usize) => "a number of at most 32 bits".to_string(),
                GenericKind::Constant(Scalar::U128) => "a number of at most 127 bits".to_string(),
                GenericKind::Constant(scalar) => format!("a number of the type `{scalar}`"),
                GenericKind::Type(_) => "a type by its name: `f32`, a device struct, or a device function".to_string(),
            };
            self.refuse(syn::Error::new_spanned(value, format!("expected {wanted}")));
        }
        argument
    }
}

/// Returns the name of an instance that `label: …` declares: the label, and for each parameter with
/// alternatives its value. `tile: V = 4 | 1, TA = false | true, E = Relu | Silu` declares, among
/// others, `tile_v4_relu` and `tile_v1_ta_silu`.
fn instance_name(
    label: &Ident,
    declaration: &[(Ident, Vec<syn::Type>)],
    generics: &[Generic],
    arguments: &[InstanceArgument],
) -> String {
    let mut name = label.to_string();
    for (generic, argument) in generics.iter().zip(arguments) {
        if !declaration.iter().any(|(parameter, values)| generic.name == *parameter && values.len() > 1) {
            continue;
        }
        let part = match argument {
            InstanceArgument::Usize(n) => format!("_{}{n}", generic.name),
            InstanceArgument::Integer(n) => format!("_{}{n}", generic.name).replace('-', "minus"),
            InstanceArgument::Bool(true) => format!("_{}", generic.name),
            InstanceArgument::Bool(false) => String::new(),
            InstanceArgument::Type { .. } => format!("_{argument}"),
        };
        name += &part.to_lowercase();
    }
    name
}
