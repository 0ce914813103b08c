//! The functions that launch a kernel, typed by its parameters.

use super::namespace::{Stage, at_name, where_device_types};
use super::with_span;
use crate::syntax::BlockExtent;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericParam, ItemFn, Lifetime, Pat, PatType, Path, PathArguments, Type};

/// The lifetime for which a launch borrows its arguments. Kernels have no lifetime parameters.
const LIFETIME: &str = "'a";

/// Returns the impl with `call`, `launch` and `launch_unchecked`.
pub(super) fn functions(item: &ItemFn, facade: &Path, stage: &Stage) -> TokenStream {
    let name = &item.sig.ident;
    let (of_impl, of_type, _) = item.sig.generics.split_for_impl();
    let device_types = where_device_types(item, facade);
    let docs: Vec<_> = item.attrs.iter().filter(|a| a.path().is_ident("doc")).collect();
    let [call, launch, unchecked] = ["call", "launch", "launch_unchecked"].map(|name| at_name(item, name));
    // Locals are hygienic, so that a parameter of the kernel may also be named `device`. Types are
    // not hygienic.
    let device = Ident::new("device", Span::mixed_site());
    let lifetime = Lifetime::new(LIFETIME, Span::call_site());
    let runner = free_name(item, "Device");
    let parameters: Vec<_> = parameters(item).enumerate().map(|(i, p)| LaunchParameter::new(i, p, facade)).collect();
    let declared: Vec<_> = parameters.iter().map(|p| p.declared(stage)).collect();
    // Hygienic too: a parameter may have this name.
    let arguments = Ident::new("arguments", Span::mixed_site());
    let block = chosen_extent(stage);
    let block_declared = block.as_ref().map(|(name, _)| quote!(#name: usize,));
    let block_docs = block.as_ref().map(|(_, docs)| quote!(#[doc = ""] #[doc = #docs]));
    let block_passed = match &block {
        Some((name, _)) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    let count = parameters.len();
    let erased = parameters.iter().map(|p| p.erased(&arguments));
    let names: Vec<_> = parameters.iter().map(|p| &p.name).collect();
    let passed = match &block {
        Some((name, _)) => quote!(#name, #(#names),*),
        None => quote!(#(#names),*),
    };
    let read = matches!(stage, Stage::Read(_));
    let body = |body: TokenStream| if read { body } else { quote!(::core::unreachable!()) };
    let call_body = body(quote! {
        let mut #arguments = #facade::__private::Vec::with_capacity(#count);
        #(#erased)*
        #facade::Call::new(
            <Self as #facade::Kernel>::ARTIFACT,
            <Self as #facade::Kernel>::CONSTANTS,
            #block_passed,
            #arguments,
        )
    });
    let checked_body = body(quote!(#facade::Call::launch(Self::#call(#passed), #device)));
    // The caller guarantees the safety conditions of the launcher.
    let unchecked_body = body(quote!(unsafe { #facade::Call::launch_unchecked(Self::#call(#passed), #device) }));
    let errors_docs = quote! {
        #[doc = ""]
        #[doc = " # Errors"]
        #[doc = " Arguments that violate the kernel's contract, or an error on the device."]
    };
    let separator = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
    quote! {
        #[allow(clippy::too_many_arguments, dead_code, deprecated, non_snake_case, non_upper_case_globals, unused_variables)]
        impl #of_impl #name #of_type #device_types {
            /// Binds these arguments to the kernel, for a launcher to run once or to prepare for
            /// repeated runs.
            #block_docs
            pub fn #call<#lifetime>(
                #block_declared
                #(#declared),*
            ) -> #facade::Call<#lifetime> {
                #call_body
            }

            #(#docs)*
            #separator
            /// Runs the kernel on `device` and checks every memory access.
            #block_docs
            #errors_docs
            pub fn #launch<#lifetime, #runner: #facade::Launcher>(
                #device: &#runner,
                #block_declared
                #(#declared),*
            ) -> ::core::result::Result<(), #runner::Error> {
                #checked_body
            }

            #(#docs)*
            #separator
            /// Runs the kernel's PTX on `device`. The arguments are checked against the contract;
            /// memory accesses are not checked.
            #block_docs
            #[doc = ""]
            #[doc = " # Safety"]
            #[doc = " For these arguments the kernel must have no out-of-bounds access and no race."]
            #errors_docs
            pub unsafe fn #unchecked<#lifetime, #runner: #facade::Launcher>(
                #device: &#runner,
                #block_declared
                #(#declared),*
            ) -> ::core::result::Result<(), #runner::Error> {
                #unchecked_body
            }
        }
    }
}

/// Returns the hygienic name of the block extent that a launch chooses, and its documentation.
fn chosen_extent(stage: &Stage) -> Option<(Ident, String)> {
    let Stage::Read(parsed) = stage else { return None };
    let axis = parsed.block.iter().position(|extent| matches!(extent, BlockExtent::Chosen { .. }))?;
    let (name, what) = [
        ("block", "the number of threads of a block"),
        ("block_y", "the number of threads of a block along y"),
        ("block_z", "the number of threads of a block along z"),
    ][axis.min(2)];
    Some((
        Ident::new(name, Span::mixed_site()),
        format!("`{name}` is {what}, chosen from the range that the kernel declares."),
    ))
}

/// Returns the parameters except `self`.
pub(super) fn parameters(item: &ItemFn) -> impl Iterator<Item = &PatType> {
    item.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    })
}

/// Returns `name`, extended with `_` if the kernel has a generic parameter of that name.
fn free_name(item: &ItemFn, name: &str) -> Ident {
    let mut name = name.to_string();
    let taken = |name: &str| {
        item.sig.generics.params.iter().any(|p| match p {
            GenericParam::Const(c) => c.ident == name,
            GenericParam::Type(t) => t.ident == name,
            GenericParam::Lifetime(_) => false,
        })
    };
    while taken(&name) {
        name.push('_');
    }
    Ident::new(&name, Span::call_site())
}

/// A parameter of the launch functions.
struct LaunchParameter<'a> {
    name: Ident,
    ty: &'a Type,
    /// The trait of the facade's module `launcher` that erases the parameter's type.
    argument: Ident,
    /// The arguments of the trait, except the lifetime.
    arguments: Vec<TokenStream>,
    /// Whether any type with the trait can be passed; otherwise only the declared type.
    any: bool,
    facade: &'a Path,
}

impl<'a> LaunchParameter<'a> {
    fn new(i: usize, parameter: &'a PatType, facade: &'a Path) -> LaunchParameter<'a> {
        let name = match &*parameter.pat {
            Pat::Ident(p) => p.ident.clone(),
            // A pattern is rejected elsewhere; the launch function still needs a name for this
            // argument.
            other => Ident::new(&format!("argument{i}"), other.span()),
        };
        let ((argument, arguments), any) = match memory(&parameter.ty) {
            Some(argument) => (argument, true),
            None => (("ValueArgument", Vec::new()), false),
        };
        let argument = Ident::new(argument, Span::call_site());
        LaunchParameter { name, ty: &parameter.ty, argument, arguments, any, facade }
    }

    fn declared(&self, stage: &Stage) -> TokenStream {
        let LaunchParameter { name, ty, argument, arguments, any, facade } = self;
        match stage {
            Stage::Refused => quote!(#name: impl ::core::marker::Sized),
            Stage::Read(_) if *any => {
                // rustc reports an unsatisfied bound at its first to last token, which are given
                // the position of the parameter's type. Tokens that the user wrote keep their
                // position, because rustdoc shows numbers by their source text.
                let mut places = ty.to_token_stream().into_iter().map(|t| t.span());
                let first = places.next().unwrap_or_else(Span::call_site);
                let last = places.last().unwrap_or(first);
                let lifetime = Lifetime::new(LIFETIME, first);
                let open = with_span(quote!(#facade::launcher::#argument), first);
                let close = quote_spanned!(last=> >);
                quote!(#name: impl #open < #lifetime, #(#arguments),* #close)
            }
            Stage::Read(_) => quote!(#name: #ty),
        }
    }

    /// Returns the statement that adds the type-erased argument to a list.
    fn erased(&self, list: &Ident) -> TokenStream {
        let LaunchParameter { name, argument, facade, any, .. } = self;
        match any {
            true => quote!(#list.push(#facade::launcher::#argument::argument(#name));),
            false => quote!(#facade::launcher::ValueArgument::arguments(#name, &mut #list);),
        }
    }
}

/// Returns the trait for a parameter in memory, and its arguments except the lifetime; `None` for a
/// scalar.
fn memory(ty: &Type) -> Option<(&'static str, Vec<TokenStream>)> {
    let mut ty = ty.clone();
    LifetimeNamer.visit_type_mut(&mut ty);
    memory_of(&ty)
}

/// Names the lifetime of references. No buffer can hold a reference, and rustc should report that
/// instead of a missing lifetime.
struct LifetimeNamer;

impl VisitMut for LifetimeNamer {
    fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
        let at = reference.and_token.span;
        reference.lifetime.get_or_insert_with(|| Lifetime::new(LIFETIME, at));
        syn::visit_mut::visit_type_reference_mut(self, reference);
    }
}

fn memory_of(ty: &Type) -> Option<(&'static str, Vec<TokenStream>)> {
    match ty {
        Type::Reference(reference) => {
            let Type::Slice(slice) = &*reference.elem else { return None };
            let name = if reference.mutability.is_some() { "SliceMutArgument" } else { "SliceArgument" };
            Some((name, vec![slice.elem.to_token_stream()]))
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            let arguments: Vec<_> = arguments.args.iter().map(ToTokens::to_token_stream).collect();
            // rustc reports a missing rank at the type, and would name our trait in a second error.
            if arguments.len() != 2 {
                return None;
            }
            match last.ident.to_string().as_str() {
                "View" => Some(("ViewArgument", arguments)),
                "ViewMut" => Some(("ViewMutArgument", arguments)),
                "Strided" => Some(("StridedArgument", arguments)),
                "StridedMut" => Some(("StridedMutArgument", arguments)),
                _ => None,
            }
        }
        Type::Group(group) => memory_of(&group.elem),
        Type::Paren(paren) => memory_of(&paren.elem),
        _ => None,
    }
}
