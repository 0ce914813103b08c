//! Clauses of `#[kernel(…)]`: their table, and the parsing of their values.

use super::instance::{InstanceDeclaration, declarations};
use crate::Target;
use crate::oracle::Coverage;
use crate::syntax::Tolerance;
use proc_macro2::Ident;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Token, parenthesized};

/// The attribute's clauses, as parsed.
#[derive(Default)]
pub(super) struct Clauses {
    pub(super) block: Option<syn::Expr>,
    pub(super) grid: Option<syn::Expr>,
    pub(super) instances: Vec<InstanceDeclaration>,
    pub(super) derived: Vec<(Ident, syn::Expr)>,
    pub(super) min_blocks: Option<syn::Expr>,
    pub(super) max_registers: Option<syn::Expr>,
    pub(super) contract: bool,
    pub(super) assertions: bool,
    pub(super) cooperative: bool,
    pub(super) tolerances: Vec<Tolerance>,
    pub(super) writes: Vec<(Ident, Coverage)>,
    pub(super) target: Option<Target>,
    pub(super) crate_path: Option<syn::Path>,
    pub(super) refused: Vec<syn::Error>,
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

impl Clauses {
    /// Parses all clauses.
    pub(super) fn parse(input: ParseStream) -> syn::Result<Clauses> {
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
