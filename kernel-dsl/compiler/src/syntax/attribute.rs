//! The attributes `#[kernel(…)]` and `#[requires(…)]`.

use super::place::written;
use super::{BlockExtent, Function, GenericKind, Kernel, LaunchTokens, Path, Reader, Tolerance};
use crate::oracle::Coverage;
use crate::{Scalar, Target};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{ItemFn, Token, parenthesized};

/// The attribute's clauses, as parsed.
#[derive(Default)]
struct Clauses {
    block: Option<syn::Expr>,
    grid: Option<syn::Expr>,
    instances: Vec<InstanceDeclaration>,
    derived: Vec<(Ident, syn::Expr)>,
    min_blocks: Option<syn::Expr>,
    max_registers: Option<syn::Expr>,
    contract: bool,
    assertions: bool,
    cooperative: bool,
    tolerances: Vec<Tolerance>,
    writes: Vec<(Ident, Coverage)>,
    target: Option<Target>,
    crate_path: Option<syn::Path>,
    refused: Vec<syn::Error>,
}

/// A clause of `#[kernel(…)]`.
pub struct Clause {
    /// The word that begins the clause.
    pub name: &'static str,
    /// The forms of the clause, each with its meaning, in Markdown.
    pub forms: &'static [(&'static str, &'static str)],
    parse: fn(&mut Clauses, &Ident, ParseStream) -> syn::Result<()>,
}

/// The clauses of `#[kernel(…)]`, in the order of the documentation of the macro, which is made
/// from this table.
pub const CLAUSES: &[Clause] = &[
    Clause {
        name: "block",
        forms: &[(
            "block = …",
            "The threads of a block: one expression or a tuple of up to three, over the generic constants. The launch can choose the last extent: `32..=1024` or `(64..=1024).step_by(64)` adds an argument to the launch functions. An expression over the parameters needs an upper bound, `x.cols().clamp(32, 1024)`. A range between multiples of 32 contains only multiples of 32.",
        )],
        parse: |clauses, name, input| clauses.set(name, input, |clauses| &mut clauses.block),
    },
    Clause {
        name: "grid",
        forms: &[(
            "grid = …",
            "The blocks of the grid: expressions over constants and parameters, and `block::threads()`.",
        )],
        parse: |clauses, name, input| clauses.set(name, input, |clauses| &mut clauses.grid),
    },
    Clause {
        name: "instances",
        forms: &[
            (
                "instances(A = 1 | 2, T = f32; …)",
                "The instances to compile now: `|` separates alternatives, `;` separates declarations.",
            ),
            (
                "instances(tile: A = 1 | 2, T = f32; …)",
                "Instances with names for reports and the command line: `matmul@tile_a1`, `matmul@tile_a2`. Each parameter with alternatives adds its value to the name: a number after the parameter's name, a type, or the parameter's name where a `bool` is true.",
            ),
        ],
        parse: |clauses, _, input| {
            let inner;
            parenthesized!(inner in input);
            clauses.instances.extend(declarations(&inner)?);
            Ok(())
        },
    },
    Clause {
        name: "derived",
        forms: &[("derived(N = 16 / size_of::<T>())", "Generic constants that are computed from the others.")],
        parse: |clauses, _, input| {
            let inner;
            parenthesized!(inner in input);
            while !inner.is_empty() {
                clauses.derived.push((inner.parse()?, equals(&inner)?));
                if !inner.is_empty() {
                    inner.parse::<Token![,]>()?;
                }
            }
            Ok(())
        },
    },
    Clause {
        name: "min_blocks",
        forms: &[(
            "min_blocks = …",
            "The number of blocks that a multiprocessor should hold at once: an expression over the generic constants.",
        )],
        parse: |clauses, name, input| clauses.set(name, input, |clauses| &mut clauses.min_blocks),
    },
    Clause {
        name: "max_registers",
        forms: &[(
            "max_registers = …",
            "The largest number of registers of a thread: `128`, or `if WIDE { 168 } else { 128 }`.",
        )],
        parse: |clauses, name, input| clauses.set(name, input, |clauses| &mut clauses.max_registers),
    },
    Clause {
        name: "contract",
        forms: &[(
            "contract",
            "Contracts a sum or difference of floats that contains a product, `a * b + c` or `c -= a * b`, to one `mul_add` with one rounding. Applies to the kernel, and not to the device functions that it calls.",
        )],
        parse: |clauses, _, _| {
            clauses.contract = true;
            Ok(())
        },
    },
    Clause {
        name: "assertions",
        forms: &[(
            "assertions",
            "Keeps `assert!` and `panic!` in the PTX that `launch_unchecked` runs: a thread that fails ends the launch with an error of the driver. Without the clause, an assertion costs nothing there.",
        )],
        parse: |clauses, _, _| {
            clauses.assertions = true;
            Ok(())
        },
    },
    Clause {
        name: "cooperative",
        forms: &[(
            "cooperative",
            "All blocks of a launch are resident at once, so that they can wait for each other: `grid::sync()` needs it. A launch of more blocks than the device holds is an error.",
        )],
        parse: |clauses, _, _| {
            clauses.cooperative = true;
            Ok(())
        },
    },
    Clause {
        name: "tolerance",
        forms: &[(
            "tolerance(y(relative = 1e-6, absolute = 1e-7))",
            "The largest difference between a GPU's results and the interpreter's, for values that `fast::` functions reach.",
        )],
        parse: |clauses, _, input| {
            let inner;
            parenthesized!(inner in input);
            for tolerance in Punctuated::<Tolerance, Token![,]>::parse_terminated(&inner)? {
                if clauses.tolerances.iter().any(|other| other.name == tolerance.name) {
                    clauses.refuse_twice(&tolerance.name);
                }
                clauses.tolerances.push(tolerance);
            }
            Ok(())
        },
    },
    Clause {
        name: "writes",
        forms: &[(
            "writes(y = all, z = once)",
            "Declares that a launch writes each element of `y`, and each element of `z` by one thread. The oracle verifies this.",
        )],
        parse: |clauses, _, input| {
            let inner;
            parenthesized!(inner in input);
            for (name, coverage) in Punctuated::<_, Token![,]>::parse_terminated_with(&inner, coverage)? {
                if clauses.writes.iter().any(|(other, _)| *other == name) {
                    clauses.refuse_twice(&name);
                }
                clauses.writes.push((name, coverage));
            }
            Ok(())
        },
    },
    Clause {
        name: "target",
        forms: &[(
            "target = sm_80",
            "The target: sm_61 (the default), sm_70, sm_75, sm_80, sm_86, sm_89 or sm_90. Older devices cannot run the kernel.",
        )],
        parse: |clauses, name, input| {
            match target(input)? {
                Ok(target) => clauses.keep(name, target, |clauses| &mut clauses.target),
                Err(e) => clauses.refused.push(e),
            }
            Ok(())
        },
    },
    Clause {
        name: "crate",
        forms: &[("crate = path", "The path of kernel-dsl, if not `::kernel_dsl`.")],
        parse: |clauses, _, input| {
            clauses.crate_path = Some(equals(input)?);
            Ok(())
        },
    },
];

/// One declaration `name: A = 1 | 2, T = f32` of `instances(…; …)`.
#[derive(Default)]
struct InstanceDeclaration {
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

impl Clauses {
    fn parse(input: ParseStream) -> syn::Result<Clauses> {
        let mut clauses = Clauses::default();
        while !input.is_empty() {
            let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
            let Some(clause) = CLAUSES.iter().find(|clause| name == clause.name) else {
                let names: Vec<_> = CLAUSES.iter().map(|clause| clause.name).collect();
                let (last, others) = names.split_last().expect("there are clauses");
                let others = others.join(", ");
                let message = match name == "requires" {
                    true => {
                        "`requires` is a separate attribute: write `#[requires(…)]` below `#[kernel(…)]`".to_owned()
                    }
                    false => format!("unknown clause `{name}` in `#[kernel]`; the clauses are {others} and {last}"),
                };
                return Err(syn::Error::new(name.span(), message));
            };
            let form = clause.forms.first().map_or(clause.name, |(form, _)| form);
            let in_parentheses = form[clause.name.len()..].starts_with('(');
            if in_parentheses && !input.peek(syn::token::Paren) {
                return Err(input.error(format!("`{name}` is followed by parentheses: write `{form}`")));
            }
            (clause.parse)(&mut clauses, &name, input).map_err(|error| match error.to_string().as_str() {
                "expected identifier" => syn::Error::new(error.span(), format!("expected a name: write `{form}`")),
                _ => error,
            })?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(clauses)
    }

    /// Parses the value of a clause that has one.
    fn set<T: syn::parse::Parse>(
        &mut self,
        name: &Ident,
        input: ParseStream,
        slot: fn(&mut Clauses) -> &mut Option<T>,
    ) -> syn::Result<()> {
        let value = equals(input)?;
        self.keep(name, value, slot);
        Ok(())
    }

    /// Keeps the value of a clause, which may appear once.
    fn keep<T>(&mut self, name: &Ident, value: T, slot: fn(&mut Clauses) -> &mut Option<T>) {
        if slot(self).replace(value).is_some() {
            self.refused.push(syn::Error::new(name.span(), format!("duplicate clause `{name}`")));
        }
    }

    fn refuse_twice(&mut self, name: &Ident) {
        self.refused.push(syn::Error::new(name.span(), format!("`{name}` is listed twice")));
    }
}

impl syn::parse::Parse for Tolerance {
    fn parse(input: ParseStream) -> syn::Result<Tolerance> {
        let name: Ident = input.parse()?;
        let inner;
        parenthesized!(inner in input);
        let mut given: [Option<f64>; 2] = [None, None];
        while !inner.is_empty() {
            let word: Ident = inner.parse()?;
            let which = match word.to_string().as_str() {
                "relative" => 0,
                "absolute" => 1,
                _ => {
                    return Err(syn::Error::new(word.span(), "expected `relative = …`, `absolute = …`, or both"));
                }
            };
            let number: syn::Lit = equals(&inner)?;
            let value = match &number {
                syn::Lit::Float(n) => n.base10_parse::<f64>()?,
                syn::Lit::Int(n) => n.base10_parse::<f64>()?,
                _ => f64::NAN,
            };
            if !value.is_finite() || given[which].replace(value).is_some() {
                return Err(syn::Error::new_spanned(
                    &number,
                    format!("`{word}` takes one finite number, such as 1e-6"),
                ));
            }
            if !inner.is_empty() {
                inner.parse::<Token![,]>()?;
            }
        }
        if given == [None, None] {
            return Err(syn::Error::new(
                name.span(),
                format!("the tolerance of `{name}` has no bound: write `{name}(relative = 1e-6)`"),
            ));
        }
        Ok(Tolerance { name, relative: given[0].unwrap_or(0.0), absolute: given[1].unwrap_or(0.0) })
    }
}

/// Parses `y = once` of the clause `writes`.
fn coverage(input: ParseStream) -> syn::Result<(Ident, Coverage)> {
    let (name, word): (Ident, Ident) = (input.parse()?, equals(input)?);
    let found = [Coverage::All, Coverage::Once].into_iter().find(|c| word == c.name());
    let message = format!(
        "expected `all` or `once`: `{name} = all` if the kernel writes every element, `{name} = once` if no two threads write the same element"
    );
    found.map(|coverage| (name, coverage)).ok_or_else(|| syn::Error::new(word.span(), message))
}

fn equals<T: syn::parse::Parse>(input: ParseStream) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses the name of a target. An unknown name does not stop the parsing of clauses.
fn target(input: ParseStream) -> syn::Result<Result<Target, syn::Error>> {
    input.parse::<Token![=]>()?;
    if !input.peek(syn::Ident) {
        return Err(input.error("expected a target, such as sm_80"));
    }
    let name: Ident = input.parse()?;
    Ok(name.to_string().parse().map_err(|e| syn::Error::new(name.span(), e)))
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

fn declarations(input: ParseStream) -> syn::Result<Vec<InstanceDeclaration>> {
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

impl Reader {
    pub(super) fn attributes(&mut self, attribute: TokenStream, item: &ItemFn, function: Function) -> Kernel {
        let clauses = Clauses::parse.parse2(attribute).unwrap_or_else(|e| {
            self.refuse(e);
            Clauses { block: syn::parse_str("1").ok(), grid: syn::parse_str("1").ok(), ..Clauses::default() }
        });
        clauses.refused.into_iter().for_each(|e| self.refuse(e));

        let mut tokens = LaunchTokens::default();
        let block = self.axes(clauses.block.as_ref(), &function, "block");
        let block = block.into_iter().map(|e| self.block_extent(e, &mut tokens.block)).collect();
        let grid = self.axes(clauses.grid.as_ref(), &function, "grid");
        tokens.grid.extend(grid.iter().map(|e| e.to_token_stream()));
        let grid = grid.into_iter().map(|e| self.expression(e)).collect();
        let mut limit = |e: Option<&syn::Expr>| {
            tokens.limits.extend(e.map(ToTokens::to_token_stream));
            e.map(|e| self.expression(e))
        };
        let min_blocks = limit(clauses.min_blocks.as_ref());
        let max_registers = limit(clauses.max_registers.as_ref());
        let mut requires = Vec::new();
        for attribute in item.attrs.iter().filter(|a| a.path().is_ident("requires")) {
            match attribute.parse_args_with(Punctuated::<syn::Expr, Token![,]>::parse_terminated) {
                Ok(conditions) => {
                    for condition in conditions {
                        requires.push((self.expression(&condition), written(&condition)));
                        tokens.requires.push(condition.to_token_stream());
                    }
                }
                Err(e) => self.refuse(e),
            }
        }
        for (name, value) in &clauses.derived {
            // Not parsed as one expression: the value may be a comparison itself, which Rust does
            // not chain.
            let condition = syn::Expr::Binary(syn::ExprBinary {
                attrs: Vec::new(),
                left: Box::new(syn::parse_quote!(#name)),
                op: syn::BinOp::Eq(Default::default()),
                right: Box::new(value.clone()),
            });
            requires.push((self.expression(&condition), written(&condition)));
            tokens.requires.push(condition.to_token_stream());
        }
        let instances = self.instances(&function, &clauses.instances, &clauses.derived);
        Kernel {
            block,
            grid,
            requires,
            instances,
            min_blocks,
            max_registers,
            contract: clauses.contract,
            assertions: clauses.assertions,
            cooperative: clauses.cooperative,
            tolerances: clauses.tolerances,
            writes: clauses.writes,
            target: clauses.target.unwrap_or(Target::SM_61),
            crate_path: clauses.crate_path.unwrap_or_else(|| syn::parse_quote!(::kernel_dsl)),
            launch_tokens: tokens,
            function,
        }
    }

    /// Reads one to three expressions: `256`, or `(x, y)`.
    fn axes<'e>(&mut self, e: Option<&'e syn::Expr>, function: &Function, clause: &str) -> Vec<&'e syn::Expr> {
        let axes: Vec<&syn::Expr> = match e.map(ungrouped) {
            None => {
                self.refuse(syn::Error::new(
                    function.name.span(),
                    format!("missing clause `{clause}`: write `#[kernel(block = …, grid = …)]`"),
                ));
                return Vec::new();
            }
            Some(syn::Expr::Tuple(t)) => t.elems.iter().collect(),
            Some(one) => vec![one],
        };
        if !(1..=3).contains(&axes.len()) {
            self.refuse(syn::Error::new_spanned(e, format!("expected 1 to 3 axes in `{clause}`")));
        }
        axes
    }

    /// Reads the number of threads along an axis: an expression, or a range that the launch chooses
    /// from, `a..=b` or `(a..=b).step_by(n)`.
    fn block_extent(&mut self, e: &syn::Expr, tokens: &mut Vec<TokenStream>) -> BlockExtent {
        let e = ungrouped(e);
        let (range, step) = match e {
            syn::Expr::MethodCall(m) if m.method == "step_by" && m.args.len() == 1 => (&*m.receiver, m.args.first()),
            e => (e, None),
        };
        let range = match ungrouped(range) {
            syn::Expr::Paren(inner) => ungrouped(&inner.expr),
            other => other,
        };
        let syn::Expr::Range(range) = range else {
            tokens.push(e.to_token_stream());
            return BlockExtent::Computed(self.expression(e));
        };
        match (&range.start, &range.end, &range.limits) {
            (Some(least), Some(most), syn::RangeLimits::Closed(_)) => {
                tokens
                    .extend([Some(&**least), Some(&**most), step].into_iter().flatten().map(ToTokens::to_token_stream));
                let step = step.map(|step| self.expression(step));
                BlockExtent::Chosen { least: self.expression(least), most: self.expression(most), step }
            }
            _ => {
                let message = "expected an inclusive range, such as `32..=1024`";
                self.refuse(syn::Error::new_spanned(range, message));
                BlockExtent::Computed(self.expression(&syn::parse_quote!(1)))
            }
        }
    }

    fn instances(
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
    generics: &[super::Generic],
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

/// Returns the expression inside the invisible group that a macro made.
fn ungrouped(mut e: &syn::Expr) -> &syn::Expr {
    while let syn::Expr::Group(group) = e {
        e = &group.expr;
    }
    e
}

/// Returns the value of a derived constant, given the arguments of the parameters before it.
fn derive(
    value: &syn::Expr,
    kind: &GenericKind,
    generics: &[super::Generic],
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
