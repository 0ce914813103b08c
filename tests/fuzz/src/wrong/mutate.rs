//! Mutations of right programs: each makes one mistake, or a change that may be right.

use crate::support::Random;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Item, Lit, Local, Member, Pat, Stmt, Token, Type, parse_quote};

/// A class of mutations. Each is a mistake that rustc's resolver, type checker, borrow checker,
/// privacy check, exhaustiveness check or denied lints may find.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum MutationClass {
    AnnotationAdded,
    AnnotationRemoved,
    ArgumentAdded,
    ArgumentRemoved,
    ArgumentsSwapped,
    ArmRemoved,
    ArmsSwapped,
    BoundRemoved,
    CallTraitChanged,
    ClosureChanged,
    DeriveRemoved,
    ElseRemoved,
    FieldRemoved,
    FieldRenamed,
    FieldRepeated,
    FieldRetyped,
    GenericRemoved,
    GenericsChanged,
    GuardChanged,
    InitializerRemoved,
    ItemRemoved,
    ItemRepeated,
    JumpChanged,
    LiteralChanged,
    LiteralOfOtherType,
    MethodRenamed,
    MutabilityChanged,
    NameChanged,
    OperatorChanged,
    ParameterAdded,
    ParameterRemoved,
    ParameterRetyped,
    PatternChanged,
    PathChanged,
    ReturnTypeChanged,
    SemicolonChanged,
    StatementInserted,
    StatementRemoved,
    StatementRepeated,
    StatementsSwapped,
    StructFieldRemoved,
    StructFieldRepeated,
    VariableInstead,
    VisibilityRemoved,
    Wrapped,
}

/// All classes.
pub const MUTATIONS: &[MutationClass] = {
    use MutationClass::*;
    &[
        AnnotationAdded,
        AnnotationRemoved,
        ArgumentAdded,
        ArgumentRemoved,
        ArgumentsSwapped,
        ArmRemoved,
        ArmsSwapped,
        BoundRemoved,
        CallTraitChanged,
        ClosureChanged,
        DeriveRemoved,
        ElseRemoved,
        FieldRemoved,
        FieldRenamed,
        FieldRepeated,
        FieldRetyped,
        GenericRemoved,
        GenericsChanged,
        GuardChanged,
        InitializerRemoved,
        ItemRemoved,
        ItemRepeated,
        JumpChanged,
        LiteralChanged,
        LiteralOfOtherType,
        MethodRenamed,
        MutabilityChanged,
        NameChanged,
        OperatorChanged,
        ParameterAdded,
        ParameterRemoved,
        ParameterRetyped,
        PatternChanged,
        PathChanged,
        ReturnTypeChanged,
        SemicolonChanged,
        StatementInserted,
        StatementRemoved,
        StatementRepeated,
        StatementsSwapped,
        StructFieldRemoved,
        StructFieldRepeated,
        VariableInstead,
        VisibilityRemoved,
        Wrapped,
    ]
};

/// Returns a copy of `program` with one mutation of the class; `None` if the program has no place
/// for it.
pub fn mutate(program: &syn::File, mutation: MutationClass, random: &mut Random) -> Option<syn::File> {
    let names = ProgramNames::of(program);
    let mut count = program.clone();
    let mut mutator = Mutator { mutation, target: usize::MAX, seen: 0, names: &names, random };
    mutator.visit_file_mut(&mut count);
    let seen = mutator.seen;
    if seen == 0 {
        return None;
    }
    let mut mutant = program.clone();
    let target = random.below(seen);
    Mutator { mutation, target, seen: 0, names: &names, random }.visit_file_mut(&mut mutant);
    Some(mutant)
}

/// The names of a program.
#[derive(Default)]
struct ProgramNames {
    variables: Vec<Ident>,
    fields: Vec<Ident>,
    methods: Vec<Ident>,
    types: Vec<Type>,
    /// The expressions of paths, such as variants and constants.
    paths: Vec<syn::Path>,
    patterns: Vec<Pat>,
    statements: Vec<Stmt>,
    seen: BTreeSet<String>,
}

impl ProgramNames {
    fn of(program: &syn::File) -> ProgramNames {
        let mut names = ProgramNames::default();
        names.visit_file(program);
        for text in ["u32", "i32", "f32", "f64", "u8", "u64", "usize", "bool", "[f32; 3]", "(u32, f32)", "Option<u32>"]
        {
            names.types.extend(syn::parse_str::<Type>(text));
        }
        names
    }

    fn is_new(&mut self, kind: &str, tokens: &impl ToTokens) -> bool {
        self.seen.insert(format!("{kind} {}", tokens.to_token_stream()))
    }
}

impl<'a> Visit<'a> for ProgramNames {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        if self.is_new("variable", &pattern.ident) {
            self.variables.push(pattern.ident.clone());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_member(&mut self, member: &'a Member) {
        if let Member::Named(name) = member
            && self.is_new("field", name)
        {
            self.fields.push(name.clone());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if self.is_new("method", &call.method) {
            self.methods.push(call.method.clone());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_type(&mut self, ty: &'a Type) {
        if self.is_new("type", ty) {
            self.types.push(ty.clone());
        }
        visit::visit_type(self, ty);
    }

    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if self.is_new("path", path) {
            self.paths.push(path.path.clone());
        }
    }

    fn visit_pat(&mut self, pattern: &'a Pat) {
        if self.is_new("pattern", pattern) {
            self.patterns.push(pattern.clone());
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.statements.push(statement.clone());
        visit::visit_stmt(self, statement);
    }

    // Attributes contain no code of the program.
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

/// Applies a mutation at the place numbered `target`, and counts the places.
struct Mutator<'a> {
    mutation: MutationClass,
    target: usize,
    seen: usize,
    names: &'a ProgramNames,
    random: &'a mut Random,
}

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
    /// Returns whether this is the place to mutate.
    fn hit(&mut self, mutation: MutationClass) -> bool {
        if mutation != self.mutation {
            return false;
        }
        self.seen += 1;
        self.seen == self.target.wrapping_add(1)
    }

    fn one_of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        match all.len() {
            0 => None,
            n => Some(&all[self.random.below(n)]),
        }
    }

    fn value(&mut self) -> Expr {
        let text = VALUES[self.random.below(VALUES.len())];
        syn::parse_str(text).expect("an expression")
    }

    fn ty(&mut self) -> Type {
        let names = self.names;
        self.one_of(&names.types).cloned().unwrap_or_else(|| parse_quote!(u32))
    }

    fn variable(&mut self) -> Ident {
        let names = self.names;
        self.one_of(&names.variables).cloned().unwrap_or_else(|| format_ident!("unknown_name"))
    }

    fn edge(&mut self) -> Expr {
        let text = EDGES[self.random.below(EDGES.len())];
        let suffix = match self.random.below(3) {
            0 if !text.contains('e') => SUFFIXES[self.random.below(SUFFIXES.len())],
            _ => "",
        };
        syn::parse_str(&format!("{text}{suffix}")).expect("a literal")
    }

    /// Returns the expression inside another one.
    fn wrapped(&mut self, e: &Expr) -> Expr {
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
    fn statements(&mut self) -> TokenStream {
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

    /// Applies mutations of expressions.
    fn expression(&mut self, e: &mut Expr) {
        use MutationClass as M;
        if self.hit(M::LiteralOfOtherType) {
            *e = self.value();
        }
        if self.hit(M::VariableInstead) {
            let name = self.variable();
            *e = parse_quote!(#name);
        }
        if !matches!(e, Expr::Break(_) | Expr::Return(_) | Expr::Continue(_) | Expr::Let(_)) && self.hit(M::Wrapped) {
            *e = self.wrapped(&e.clone());
        }
        if matches!(e, Expr::Lit(_)) && self.hit(M::LiteralChanged) {
            *e = self.edge();
        }
        match e {
            Expr::MethodCall(call) => {
                if self.hit(M::MethodRenamed) {
                    let names = self.names;
                    let other = self.one_of(&names.methods).cloned();
                    call.method = match self.random.below(3) {
                        0 => format_ident!("unknown_method"),
                        _ => other.unwrap_or_else(|| format_ident!("wrapping_add")),
                    };
                }
                self.arguments(&mut call.args);
                if self.hit(M::GenericsChanged) {
                    let ty = self.ty();
                    call.turbofish = match call.turbofish {
                        Some(_) => None,
                        None => Some(parse_quote!(::<#ty>)),
                    };
                }
            }
            Expr::Call(call) => self.arguments(&mut call.args),
            Expr::Field(field) if self.hit(M::FieldRenamed) => {
                let names = self.names;
                let other = self.one_of(&names.fields).cloned();
                field.member = match (self.random.below(4), other) {
                    (0, _) => Member::Named(format_ident!("unknown_field")),
                    (1, _) | (_, None) => Member::Unnamed((self.random.below(3)).into()),
                    (_, Some(other)) => Member::Named(other),
                };
            }
            Expr::Path(path) if self.hit(M::PathChanged) => {
                let names = self.names;
                if let Some(other) = self.one_of(&names.paths) {
                    path.path = other.clone();
                }
            }
            Expr::Binary(binary) if self.hit(M::OperatorChanged) => {
                let all: [syn::BinOp; 12] = [
                    parse_quote!(+),
                    parse_quote!(&&),
                    parse_quote!(<),
                    parse_quote!(==),
                    parse_quote!(<<),
                    parse_quote!(%),
                    parse_quote!(&),
                    parse_quote!(+=),
                    parse_quote!(/),
                    parse_quote!(||),
                    parse_quote!(^),
                    parse_quote!(>>),
                ];
                binary.op = all[self.random.below(all.len())];
            }
            Expr::Struct(literal) => {
                if !literal.fields.is_empty() && self.hit(M::StructFieldRemoved) {
                    let at = self.random.below(literal.fields.len());
                    literal.fields = removed(&literal.fields, at);
                }
                if !literal.fields.is_empty() && self.hit(M::StructFieldRepeated) {
                    let field = literal.fields[self.random.below(literal.fields.len())].clone();
                    literal.fields.push(field);
                }
            }
            Expr::Match(cases) => {
                if self.hit(M::ArmRemoved) {
                    let at = self.random.below(cases.arms.len());
                    if !cases.arms.is_empty() {
                        cases.arms.remove(at);
                    }
                }
                if cases.arms.len() > 1 && self.hit(M::ArmsSwapped) {
                    let at = self.random.below(cases.arms.len() - 1);
                    cases.arms.swap(at, at + 1);
                    cases.arms.iter_mut().for_each(|arm| arm.comma = Some(Default::default()));
                }
                if !cases.arms.is_empty() && self.hit(M::GuardChanged) {
                    let at = self.random.below(cases.arms.len());
                    let arm = &mut cases.arms[at];
                    arm.pat = match arm.pat.clone() {
                        Pat::Guard(guarded) => *guarded.pat,
                        pattern => {
                            let name = self.variable();
                            match syn::parse2::<syn::Arm>(quote!(#pattern if #name > 0 => 0)) {
                                Ok(arm) => arm.pat,
                                Err(_) => pattern,
                            }
                        }
                    };
                }
            }
            Expr::If(branch) if branch.else_branch.is_some() && self.hit(M::ElseRemoved) => branch.else_branch = None,
            Expr::Break(jump) if self.hit(M::JumpChanged) => match self.random.below(3) {
                0 => jump.label = None,
                1 => jump.label = Some(syn::Lifetime::new("'unknown", Span::call_site())),
                _ => {
                    jump.expr = match jump.expr {
                        Some(_) => None,
                        None => Some(Box::new(self.value())),
                    }
                }
            },
            Expr::Continue(jump) if self.hit(M::JumpChanged) => match jump.label {
                Some(_) => jump.label = None,
                None => jump.label = Some(syn::Lifetime::new("'unknown", Span::call_site())),
            },
            Expr::Return(jump) if self.hit(M::JumpChanged) => {
                jump.expr = match jump.expr {
                    Some(_) => None,
                    None => Some(Box::new(self.value())),
                }
            }
            Expr::Closure(closure) if self.hit(M::ClosureChanged) => match self.random.below(4) {
                0 => drop(closure.inputs.pop()),
                1 => closure.inputs.push(parse_quote!(added)),
                2 => {
                    let typed: syn::FnArg = parse_quote!(added: bool);
                    if let syn::FnArg::Typed(typed) = typed {
                        closure.inputs.push(syn::Pat::Type(typed));
                    }
                }
                _ => {
                    let body = &closure.body;
                    *closure.body = parse_quote!({ #body; });
                }
            },
            Expr::Reference(reference) if self.hit(M::MutabilityChanged) => {
                reference.mutability = toggled(reference.mutability);
            }
            _ => {}
        }
    }

    fn arguments(&mut self, all: &mut syn::punctuated::Punctuated<Expr, Token![,]>) {
        if self.hit(MutationClass::ArgumentAdded) {
            let value = self.value();
            all.push(value);
        }
        if !all.is_empty() && self.hit(MutationClass::ArgumentRemoved) {
            *all = removed(all, self.random.below(all.len()));
        }
        if all.len() > 1 && self.hit(MutationClass::ArgumentsSwapped) {
            let mut list: Vec<_> = all.iter().cloned().collect();
            let at = self.random.below(list.len() - 1);
            list.swap(at, at + 1);
            *all = list.into_iter().collect();
        }
    }

    fn local(&mut self, local: &mut Local) {
        if local.init.is_some() && self.hit(MutationClass::InitializerRemoved) {
            local.init = None;
        }
        if let Some(init) = &mut local.init
            && init.diverge.is_some()
            && self.hit(MutationClass::ElseRemoved)
        {
            init.diverge = None;
        }
        match &local.pat {
            Pat::Type(typed) => {
                if self.hit(MutationClass::AnnotationRemoved) {
                    local.pat = (*typed.pat).clone();
                }
            }
            other => {
                if self.hit(MutationClass::AnnotationAdded) {
                    let (other, ty) = (other.clone(), self.ty());
                    local.pat = match syn::parse2::<Stmt>(quote!(let #other: #ty;)) {
                        Ok(Stmt::Local(made)) => made.pat,
                        _ => other,
                    };
                }
            }
        }
    }

    fn pattern(&mut self, pattern: &mut Pat) {
        if !matches!(pattern, Pat::Type(_) | Pat::Guard(_)) && self.hit(MutationClass::PatternChanged) {
            let names = self.names;
            *pattern = match self.random.below(8) {
                0 => parse_quote!(_),
                1 => parse_quote!(0),
                2 => parse_quote!(true),
                3 => parse_quote!(5..=9),
                4 => {
                    let name = self.variable();
                    parse_quote!(#name)
                }
                _ => self.one_of(&names.patterns).cloned().unwrap_or_else(|| parse_quote!(_)),
            };
            if let Pat::Guard(guarded) = pattern {
                *pattern = (*guarded.pat).clone();
            }
            if let Pat::Type(typed) = pattern {
                *pattern = (*typed.pat).clone();
            }
        }
    }

    fn signature(&mut self, signature: &mut syn::Signature) {
        if !signature.inputs.is_empty() && self.hit(MutationClass::ParameterRemoved) {
            signature.inputs = removed(&signature.inputs, self.random.below(signature.inputs.len()));
        }
        if self.hit(MutationClass::ParameterAdded) {
            let (name, ty) = (self.variable(), self.ty());
            signature.inputs.push(parse_quote!(#name: #ty));
        }
        for input in &mut signature.inputs {
            if let syn::FnArg::Typed(input) = input
                && self.hit(MutationClass::ParameterRetyped)
            {
                *input.ty = self.ty();
            }
        }
        if self.hit(MutationClass::ReturnTypeChanged) {
            signature.output = match (&signature.output, self.random.below(2)) {
                (syn::ReturnType::Type(..), 0) => syn::ReturnType::Default,
                _ => {
                    let ty = self.ty();
                    parse_quote!(-> #ty)
                }
            };
        }
    }

    fn items(&mut self, items: &mut Vec<Item>) {
        let own = |item: &Item| !matches!(item, Item::Use(_));
        for at in 0..items.len() {
            if own(&items[at]) && self.hit(MutationClass::ItemRemoved) {
                items.remove(at);
                return;
            }
            if own(&items[at]) && self.hit(MutationClass::ItemRepeated) {
                items.insert(at, items[at].clone());
                return;
            }
        }
    }

    fn attributes(&mut self, attributes: &mut [syn::Attribute]) {
        for attribute in attributes {
            if attribute.path().is_ident("derive") && self.hit(MutationClass::DeriveRemoved) {
                let names =
                    attribute.parse_args_with(syn::punctuated::Punctuated::<syn::Path, Token![,]>::parse_terminated);
                let Ok(names) = names else { return };
                let kept = match names.len() {
                    0 => names,
                    n => removed(&names, self.random.below(n)),
                };
                *attribute = parse_quote!(#[derive(#kept)]);
            }
        }
    }

    fn visibility(&mut self, visibility: &mut syn::Visibility) {
        if matches!(visibility, syn::Visibility::Public(_)) && self.hit(MutationClass::VisibilityRemoved) {
            *visibility = syn::Visibility::Inherited;
        }
    }
}

/// Returns the list without its element `at`.
fn removed<T: Clone, P: Default>(
    all: &syn::punctuated::Punctuated<T, P>,
    at: usize,
) -> syn::punctuated::Punctuated<T, P> {
    all.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, part)| part.clone()).collect()
}

fn toggled(mutability: Option<Token![mut]>) -> Option<Token![mut]> {
    match mutability {
        Some(_) => None,
        None => Some(Default::default()),
    }
}

impl VisitMut for Mutator<'_> {
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}

    fn visit_file_mut(&mut self, file: &mut syn::File) {
        self.items(&mut file.items);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            self.items(items);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        for at in 0..item.items.len() {
            if self.hit(MutationClass::ItemRemoved) {
                item.items.remove(at);
                break;
            }
            if self.hit(MutationClass::ItemRepeated) {
                item.items.push(item.items[at].clone());
            }
        }
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        for at in 0..item.items.len() {
            if self.hit(MutationClass::ItemRemoved) {
                item.items.remove(at);
                break;
            }
        }
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_item_struct_mut(&mut self, item: &mut syn::ItemStruct) {
        self.attributes(&mut item.attrs);
        visit_mut::visit_item_struct_mut(self, item);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        self.attributes(&mut item.attrs);
        if !item.variants.is_empty() && self.hit(MutationClass::FieldRemoved) {
            item.variants = removed(&item.variants, self.random.below(item.variants.len()));
        }
        if !item.variants.is_empty() && self.hit(MutationClass::FieldRepeated) {
            let variant = item.variants[self.random.below(item.variants.len())].clone();
            item.variants.push(variant);
        }
        visit_mut::visit_item_enum_mut(self, item);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        if !fields.named.is_empty() && self.hit(MutationClass::FieldRemoved) {
            fields.named = removed(&fields.named, self.random.below(fields.named.len()));
        }
        if !fields.named.is_empty() && self.hit(MutationClass::FieldRepeated) {
            let field = fields.named[self.random.below(fields.named.len())].clone();
            fields.named.push(field);
        }
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_field_mut(&mut self, field: &mut syn::Field) {
        if self.hit(MutationClass::FieldRetyped) {
            field.ty = self.ty();
        }
        if let Some(name) = &mut field.ident
            && self.hit(MutationClass::FieldRenamed)
        {
            *name = format_ident!("renamed_field");
        }
        visit_mut::visit_field_mut(self, field);
    }

    fn visit_visibility_mut(&mut self, visibility: &mut syn::Visibility) {
        self.visibility(visibility);
    }

    fn visit_generics_mut(&mut self, generics: &mut syn::Generics) {
        if !generics.params.is_empty() && self.hit(MutationClass::GenericRemoved) {
            generics.params = removed(&generics.params, self.random.below(generics.params.len()));
        }
        visit_mut::visit_generics_mut(self, generics);
    }

    fn visit_trait_bound_mut(&mut self, bound: &mut syn::TraitBound) {
        const TRAITS: [&str; 3] = ["Fn", "FnMut", "FnOnce"];
        if let Some(last) = bound.path.segments.last_mut()
            && TRAITS.iter().any(|name| last.ident == *name)
            && self.hit(MutationClass::CallTraitChanged)
        {
            let name = TRAITS[self.random.below(TRAITS.len())];
            last.ident = Ident::new(name, Span::call_site());
            return;
        }
        visit_mut::visit_trait_bound_mut(self, bound);
    }

    fn visit_type_param_mut(&mut self, parameter: &mut syn::TypeParam) {
        if !parameter.bounds.is_empty() && self.hit(MutationClass::BoundRemoved) {
            parameter.bounds = removed(&parameter.bounds, self.random.below(parameter.bounds.len()));
        }
        visit_mut::visit_type_param_mut(self, parameter);
    }

    fn visit_angle_bracketed_generic_arguments_mut(&mut self, arguments: &mut syn::AngleBracketedGenericArguments) {
        if self.hit(MutationClass::GenericsChanged) {
            match self.random.below(4) {
                0 => drop(arguments.args.pop()),
                1 => arguments.args.push(parse_quote!(u32)),
                2 => arguments.args.push(parse_quote!(3)),
                _ => {
                    let ty = self.ty();
                    arguments.args.pop();
                    arguments.args.push(syn::GenericArgument::Type(ty));
                }
            }
        }
        visit_mut::visit_angle_bracketed_generic_arguments_mut(self, arguments);
    }

    fn visit_signature_mut(&mut self, signature: &mut syn::Signature) {
        self.signature(signature);
        visit_mut::visit_signature_mut(self, signature);
    }

    fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
        if self.hit(MutationClass::MutabilityChanged) {
            reference.mutability = toggled(reference.mutability);
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_receiver_mut(&mut self, receiver: &mut syn::Receiver) {
        if self.hit(MutationClass::MutabilityChanged) {
            let text = ["self", "&self", "&mut self", "mut self"][self.random.below(4)];
            *receiver = syn::parse_str(text).expect("a receiver");
        }
    }

    fn visit_pat_ident_mut(&mut self, pattern: &mut syn::PatIdent) {
        if self.hit(MutationClass::MutabilityChanged) {
            pattern.mutability = toggled(pattern.mutability);
        }
        if self.hit(MutationClass::NameChanged) {
            pattern.ident = self.variable();
        }
        visit_mut::visit_pat_ident_mut(self, pattern);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let n = block.stmts.len();
        for at in 0..n {
            if self.hit(MutationClass::StatementRemoved) {
                block.stmts.remove(at);
                break;
            }
            if self.hit(MutationClass::StatementRepeated) {
                let names = self.names;
                let own = block.stmts[at].clone();
                let statement = match self.random.below(2) {
                    0 => Some(&own),
                    _ => self.one_of(&names.statements),
                };
                if let Some(statement) = statement {
                    block.stmts.insert(at, terminated(statement.clone()));
                }
                break;
            }
            if at + 1 < n && self.hit(MutationClass::StatementsSwapped) {
                let later = at + 1 + self.random.below((n - at - 1).min(3));
                block.stmts.swap(at, later);
                let last = block.stmts.len() - 1;
                for statement in &mut block.stmts[..last] {
                    *statement = terminated(statement.clone());
                }
                break;
            }
            if self.hit(MutationClass::StatementInserted) {
                let made: Block = {
                    let tokens = self.statements();
                    syn::parse2(quote!({ #tokens })).unwrap_or_else(|_| parse_quote!({}))
                };
                block.stmts.splice(at..at, made.stmts);
                break;
            }
        }
        if let Some(Stmt::Expr(e, semicolon)) = block.stmts.last_mut()
            && self.hit(MutationClass::SemicolonChanged)
        {
            *semicolon = match semicolon {
                Some(_) => None,
                None => Some(Default::default()),
            };
            let _ = e;
        }
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        self.local(local);
        visit_mut::visit_local_mut(self, local);
    }

    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        self.pattern(pattern);
        visit_mut::visit_pat_mut(self, pattern);
    }

    fn visit_expr_mut(&mut self, e: &mut Expr) {
        visit_mut::visit_expr_mut(self, e);
        self.expression(e);
    }

    fn visit_lit_mut(&mut self, _: &mut Lit) {}
}

/// Returns the statement, with a semicolon if it is an expression.
fn terminated(statement: Stmt) -> Stmt {
    match statement {
        Stmt::Expr(e, None) => Stmt::Expr(e, Some(Default::default())),
        other => other,
    }
}
