//! Device constants, structs, enums and modules.
//!
//! These items stay unchanged. Beside each is the macro of its name that passes its HIR, with the
//! whole module. Types also get impls for the host: as generic arguments, elements of buffers, and
//! arguments of kernels. In a module these items are at the end, where the names that the module
//! uses are in scope.

use super::chain::{CalleeState, ChainEnd, ChainResult, ChainStart, ExpansionPart};
use super::export::Exported;
use super::{
    DeviceItemKind, beside, callees, conditions, copy, derives, device_attribute, export, facade, method, report,
    witness,
};
use crate::check::{self, ItemDiagnostics, ItemPart};
use crate::hir::{Root, serial};
use crate::syntax;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{Data, DeriveInput, Fields, FnArg, Generics, Item, ItemFn, Path, ReturnType};

/// Expands `#[device(attribute)] item`.
pub(super) fn device(attribute: TokenStream, mut item: Item) -> TokenStream {
    let facade = facade(attribute.clone());
    let written = item.clone();
    derives::add_derives_above(&mut item);
    let on = if matches!(item, Item::Const(_)) { DeviceItemKind::Constant } else { DeviceItemKind::Other };
    let read = device_attribute(attribute, on).and_then(|clauses| {
        // The item keeps its placement after the chain.
        if let (Item::Const(c), Some(placement)) = (&mut item, clauses.placement) {
            c.attrs.push(syn::parse_quote!(#[device(#placement)]));
        }
        syntax::module(&item)
    });
    let rest = match read {
        Ok(module) => {
            let callees = module.callees();
            match callees.is_empty() {
                true => finish(&facade, &item, module, &[], &ChainResult::NONE),
                false => {
                    let payload = quote!((crate = #facade) #item);
                    let link = ChainStart { end: ChainEnd::Module, facade: &facade, payload };
                    let exported: Vec<_> = items(&item).into_iter().filter_map(Exported::item).collect();
                    let name = name(&item).unwrap_or_else(|| Ident::new("module", Span::call_site()));
                    beside::start(&link, &name, &exported, &callees, None)
                }
            }
        }
        Err(refused) => {
            let errors = report::refused(refused);
            let exports = failed(&item, ExpansionPart::Whole);
            quote!(#errors #exports)
        }
    };
    let mut item = written;
    Unplaced.visit_item_mut(&mut item);
    super::inline::item_for_rustc(&mut item);
    match item {
        Item::Mod(mut module) => {
            let Some((_, items)) = module.content.take() else { return quote!(#module #rest) };
            let (attributes, visibility, name) = (&module.attrs, &module.vis, &module.ident);
            quote!(#(#attributes)* #visibility mod #name { #(#items)* #rest })
        }
        item => quote!(#item #rest),
    }
}

/// Removes placement attributes, which rustc would expand as macros.
struct Unplaced;

impl VisitMut for Unplaced {
    fn visit_item_const_mut(&mut self, c: &mut syn::ItemConst) {
        c.attrs.retain(|a| !syntax::is_placement(a));
    }

    fn visit_impl_item_const_mut(&mut self, c: &mut syn::ImplItemConst) {
        c.attrs.retain(|a| !syntax::is_placement(a));
    }

    fn visit_trait_item_const_mut(&mut self, c: &mut syn::TraitItemConst) {
        c.attrs.retain(|a| !syntax::is_placement(a));
    }
}

/// Returns the items beside a module at the end of its chain.
pub(super) fn linked(facade: &Path, item: &Item, chain: &ChainResult) -> syn::Result<TokenStream> {
    let module = syntax::module(item)?;
    let name = name(item).unwrap_or_else(|| Ident::new("module", Span::call_site()));
    Ok(match callees(ChainEnd::Module, &name, &module.callees(), chain.libraries) {
        Ok(callees) => finish(facade, item, module, &callees, chain),
        Err(state) => {
            let errors = match state {
                CalleeState::Missing(missing) => missing_diagnostics(&missing),
                state => state.errors(),
            };
            with_errors(facade, item, module.hash, errors, chain)
        }
    })
}

fn finish(
    facade: &Path,
    item: &Item,
    mut module: syntax::Module,
    callees: &[check::ItemReference],
    chain: &ChainResult,
) -> TokenStream {
    module.hash = chain.identity(module.hash);
    let checked = match check::module(&module, callees) {
        Ok(checked) => checked,
        Err(wrong) => {
            let errors = wrong.iter().map(|wrong| report_diagnostics(facade, wrong)).collect();
            return with_errors(facade, item, module.hash, errors, chain);
        }
    };
    if chain.part == ExpansionPart::Exports {
        let exports: TokenStream = items(item)
            .into_iter()
            .map(|item| {
                let library = checked.libraries.iter().find(|(name, _)| self::name(item).as_ref() == Some(name));
                let bytes = library.map(|(_, library)| serial::encode_library(library));
                export::named(item, &bytes.unwrap_or_default(), chain.part)
            })
            .collect();
        let rest = beside::rest_macro(facade, chain.libraries, module.hash);
        return quote!(#exports #rest);
    }
    let agreed = checked.functions.iter().map(|(f, c)| witness::agreement(f, facade, &c.locals, &c.prelude));
    let mut all: TokenStream = agreed.collect();
    for (name, library) in &checked.libraries {
        let Some(named) = items(item).into_iter().find(|i| self::name(i).as_ref() == Some(name)) else { continue };
        let bytes = serial::encode_library(library);
        all.extend(export::named(named, &bytes, chain.part));
        let (hash, generics, attributes) = match (named, library.root) {
            (Item::Struct(s), Some(Root::Struct(id))) => (library.items.struct_of(id).hash, &s.generics, &s.attrs),
            (Item::Enum(e), Some(Root::Enum(id))) => (library.items.enums[id.0 as usize].hash, &e.generics, &e.attrs),
            _ => continue,
        };
        let conditions = conditions(attributes);
        let argument = generics.params.is_empty().then(|| generic_argument(facade, name, hash, &bytes));
        let value = match named {
            Item::Struct(s) => struct_argument_impls(facade, s),
            Item::Enum(e) if e.variants.iter().all(|v| matches!(v.fields, Fields::Unit)) => {
                enum_argument_impl(facade, name)
            }
            // A launch cannot pass an enum with data.
            _ => TokenStream::new(),
        };
        all.extend(quote!(#conditions const _: () = { #argument #value };));
    }
    all
}

/// Reports diagnostics of an item, unless rustc reports an error.
fn report_diagnostics(facade: &Path, wrong: &ItemDiagnostics) -> TokenStream {
    let diagnostics = &wrong.diagnostics;
    match &wrong.within {
        Some(ItemPart::Function(f)) => {
            copy::copy_without_lints(f, &witness::diagnostics(f, facade, &f.block, &[], diagnostics))
        }
        Some(ItemPart::Method { function, of }) => match method::diagnostics(of, function, facade, diagnostics) {
            Some(copy) => copy::copy_without_lints(function, &copy),
            None => report::render_unconditionally(diagnostics),
        },
        Some(ItemPart::Constant { name, of }) => {
            method::diagnostics_of_constant(of.as_deref(), name, facade, diagnostics)
                .unwrap_or_else(|| report::render_unconditionally(diagnostics))
        }
        None => report::render_unconditionally(diagnostics),
    }
}

/// Returns the items beside an item with errors.
fn with_errors(facade: &Path, item: &Item, hash: u64, errors: TokenStream, chain: &ChainResult) -> TokenStream {
    let exports = failed(item, chain.part);
    match chain.part {
        ExpansionPart::Exports => {
            let rest = beside::rest_macro(facade, chain.libraries, hash);
            quote!(#exports #rest)
        }
        ExpansionPart::Whole | ExpansionPart::Rest { .. } => quote!(#errors #exports),
    }
}

/// Reports callees that are no device items.
fn missing_diagnostics(missing: &[check::Diagnostic]) -> TokenStream {
    let each = missing.iter().map(|diagnostic| {
        let message = &diagnostic.message;
        let panic = quote_spanned!(diagnostic.mark.first=> ::core::panic!);
        let argument = quote_spanned!(diagnostic.mark.last=> ("{}", #message));
        quote!(const _: () = #panic #argument;)
    });
    each.collect()
}

/// Returns the macros of items with diagnostics.
fn failed(item: &Item, part: ExpansionPart) -> TokenStream {
    items(item).into_iter().map(|item| export::named(item, &[], part)).collect()
}

/// Returns the items of a module, or the item itself if it is not a module.
fn items(item: &Item) -> Vec<&Item> {
    match item {
        Item::Mod(m) => m.content.iter().flat_map(|(_, items)| items).collect(),
        other => vec![other],
    }
}

fn name(item: &Item) -> Option<Ident> {
    Some(match item {
        Item::Fn(i) => i.sig.ident.clone(),
        Item::Const(i) => i.ident.clone(),
        Item::Struct(i) => i.ident.clone(),
        Item::Enum(i) => i.ident.clone(),
        Item::Type(i) => i.ident.clone(),
        Item::Trait(i) => i.ident.clone(),
        Item::Mod(i) => i.ident.clone(),
        _ => return None,
    })
}

fn generic_argument(facade: &Path, name: &Ident, hash: u64, library: &[u8]) -> TokenStream {
    let (text, library) = (name.to_string(), Literal::byte_string(library));
    quote! {
        impl #facade::GenericArgument for #name {
            const CONSTANT: #facade::compiler::hir::Constant =
                #facade::compiler::hir::Constant::Item(#facade::compiler::hir::ItemArgument {
                    name: #facade::__private::Cow::Borrowed(#text),
                    hash: #hash,
                    library: #facade::__private::Cow::Borrowed(#library),
                });
        }
    }
}

/// Returns the impls of a struct as an argument of kernels and, if it is `repr(C)`, as an element
/// of buffers.
fn struct_argument_impls(facade: &Path, s: &syn::ItemStruct) -> TokenStream {
    let name = &s.ident;
    let members: Vec<_> = s.fields.members().collect();
    let types: Vec<_> = s.fields.iter().map(|f| &f.ty).collect();
    let value = {
        let generics = where_fields(s, s.generics.clone(), &quote!(#facade::launcher::ValueArgument));
        let (of_impl, of_type, bounds) = generics.split_for_impl();
        quote! {
            impl #of_impl #facade::launcher::ValueArgument for #name #of_type #bounds {
                fn arguments(self, list: &mut #facade::__private::Vec<#facade::Argument<'_>>) {
                    let _ = &list;
                    #(#facade::launcher::ValueArgument::arguments(self.#members, list);)*
                }
            }
        }
    };
    let repr_c = s.attrs.iter().any(|a| a.path().is_ident("repr"));
    let element = (repr_c && !s.fields.is_empty()).then(|| {
        // Each type parameter gets the same bound, as in derived impls.
        let element = quote!(#facade::Element);
        let generics = where_fields(s, with_bound(&s.generics, &element), &element);
        let (of_impl, of_type, bounds) = generics.split_for_impl();
        let text = name.to_string();
        quote! {
            // SAFETY: a `repr(C)` struct of elements, in which the checker found no padding.
            unsafe impl #of_impl #facade::Element for #name #of_type #bounds {
                const TYPE: #facade::compiler::ElementType = {
                    ::core::assert!(
                        ::core::mem::size_of::<Self>() == 0 #(+ ::core::mem::size_of::<#types>())*,
                        "a struct in a buffer cannot have padding: order the fields by size, or add fields for those bytes"
                    );
                    #facade::compiler::ElementType::Struct {
                        name: #text,
                        fields: &[#(<#types as #facade::Element>::TYPE),*],
                    }
                };
            }
        }
    });
    quote!(#value #element)
}

/// Returns the generics of the struct with a bound for the type of each field. rustc rejects an
/// unsatisfied bound without parameters; with a lifetime in front it accepts the bound as one that
/// may hold.
fn where_fields(s: &syn::ItemStruct, mut generics: Generics, bound: &TokenStream) -> Generics {
    let conditions = s.fields.iter().map(|field| -> syn::WherePredicate {
        let ty = &field.ty;
        syn::parse_quote!(for<'field> #ty: #bound)
    });
    generics.make_where_clause().predicates.extend(conditions);
    generics
}

/// Returns the impl of an enum as an argument of kernels: its discriminant.
fn enum_argument_impl(facade: &Path, name: &Ident) -> TokenStream {
    quote! {
        impl #facade::launcher::ValueArgument for #name {
            fn arguments(self, list: &mut #facade::__private::Vec<#facade::Argument<'_>>) {
                #facade::launcher::ValueArgument::arguments(self as i32, list);
            }
        }
    }
}

fn with_bound(generics: &Generics, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(#bound));
    }
    generics
}

/// Returns the type of a `#[device(value)]` function.
pub(super) fn function_struct(item: &ItemFn) -> TokenStream {
    let (name, visibility, conditions) = (&item.sig.ident, &item.vis, conditions(&item.attrs));
    if !item.sig.generics.params.is_empty() {
        let message = "a generic function cannot be a `value`: remove `value`, or use fixed types";
        return report::refused(syn::Error::new_spanned(&item.sig.generics, message));
    }
    let docs = format!("The device function `{name}` as a type, for a parameter `F: DeviceFn<…>`.");
    quote! {
        #conditions
        #[doc = #docs]
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name {}
    }
}

/// Returns the type of a `#[device(value)]` function, unless the chain has declared it, and the
/// impl of `DeviceFn`.
pub(super) fn function_type(
    item: &ItemFn,
    facade: &Path,
    hash: u64,
    library: &[u8],
    part: ExpansionPart,
) -> TokenStream {
    let declared = (part == ExpansionPart::Whole).then(|| function_struct(item));
    if !item.sig.generics.params.is_empty() {
        return declared.unwrap_or_default();
    }
    let (name, conditions) = (&item.sig.ident, conditions(&item.attrs));
    let types: Vec<_> = item
        .sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(t) => Some(&t.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let names: Vec<_> = (0..types.len()).map(|i| quote::format_ident!("argument{i}")).collect();
    let output = match &item.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let argument = generic_argument(facade, name, hash, library);
    quote! {
        #declared
        #conditions
        const _: () = {
            #argument
            impl #facade::DeviceFn<(#(#types,)*)> for #name {
                type Output = #output;
                fn call((#(#names,)*): (#(#types,)*)) -> #output {
                    #name(#(#names),*)
                }
            }
        };
    }
}

/// Returns `#[derive(DeviceCopy)]`
pub(super) fn device_copy(item: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &item.ident;
    let bound: TokenStream = quote!(::kernel_dsl::DeviceCopy);
    let generics = with_bound(&item.generics, &bound);
    let (of_impl, of_type, bounds) = generics.split_for_impl();
    let (undefined, zero) = match &item.data {
        Data::Struct(data) => {
            let members: Vec<_> = data.fields.members().collect();
            let types: Vec<_> = data.fields.iter().map(|f| &f.ty).collect();
            (
                quote!(Self { #(#members: <#types as #bound>::undefined()),* }),
                quote!(Self { #(#members: <#types as #bound>::zero()),* }),
            )
        }
        Data::Enum(data) => {
            let Some(first) = data.variants.first() else {
                let message = "`DeviceCopy` needs an initial value: add a variant";
                return Err(syn::Error::new_spanned(name, message));
            };
            let variant = &first.ident;
            let members: Vec<_> = first.fields.members().collect();
            let types: Vec<_> = first.fields.iter().map(|f| &f.ty).collect();
            (
                quote!(Self::#variant { #(#members: <#types as #bound>::undefined()),* }),
                quote!(Self::#variant { #(#members: <#types as #bound>::zero()),* }),
            )
        }
        Data::Union(_) => return Err(syn::Error::new_spanned(name, "unions are not supported on the device")),
    };
    Ok(quote! {
        impl #of_impl #bound for #name #of_type #bounds {
            fn undefined() -> Self {
                #undefined
            }
            fn zero() -> Self {
                #zero
            }
        }
    })
}
