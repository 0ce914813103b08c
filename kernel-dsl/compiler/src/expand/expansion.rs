//! The expansion of a kernel, as one value that is rendered once.
//!
//! Each step of [`kernel`](super::kernel) fills in or replaces a part. After a failure, the parts
//! that exist are still rendered, so that uses of the kernel do not fail too.

use super::artifact::ArtifactExpansion;
use super::namespace::{self, Stage};
use super::{copy, report};
use crate::syntax;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, Path};

/// The expansion of a kernel.
pub(super) struct Expansion<'a> {
    pub item: &'a ItemFn,
    pub facade: &'a Path,
    /// The kernel's own tokens, which rustc checks and in which an editor works.
    pub copy: TokenStream,
    /// The second copy, in which rustc confirms the checker's types.
    pub witness: TokenStream,
    /// The HIR and PTX, or the chain that ends in them.
    pub artifact: ArtifactExpansion,
    /// The source of the launch functions. `None` at the end of a chain, because the start of the
    /// chain has already rendered them.
    pub launchers: Option<Stage<'a>>,
    /// Errors that appear whether or not rustc finds others, as items.
    pub errors: TokenStream,
}

impl<'a> Expansion<'a> {
    /// Returns the expansion of a kernel that was read, still without HIR and PTX.
    pub(super) fn read(item: &'a ItemFn, facade: &'a Path, kernel: &syntax::Kernel) -> Expansion<'a> {
        Expansion {
            item,
            facade,
            copy: copy::kernel(item, facade, Some(&kernel.launch_tokens)),
            witness: TokenStream::new(),
            artifact: ArtifactExpansion::failed(&kernel.instances),
            launchers: None,
            errors: TokenStream::new(),
        }
    }

    /// Returns the expansion of a kernel that could not be read.
    pub(super) fn refused(item: &'a ItemFn, facade: &'a Path, error: syn::Error) -> Expansion<'a> {
        Expansion {
            item,
            facade,
            copy: copy::kernel(item, facade, None),
            witness: TokenStream::new(),
            artifact: ArtifactExpansion::failed(&[]),
            launchers: Some(Stage::Refused),
            errors: report::refused(error),
        }
    }

    /// Adds the type and launch functions of `kernel`.
    pub(super) fn with_launchers(self, kernel: &'a syntax::Kernel) -> Expansion<'a> {
        Expansion { launchers: Some(Stage::Read(kernel)), ..self }
    }

    /// Renders the items of the expansion; at the end of a chain, the expression of the artifact.
    pub(super) fn render(self) -> TokenStream {
        let Expansion { item, facade, copy, witness, artifact, launchers, errors } = self;
        // The copy comes at the end of a chain, because rustc would otherwise report a missing
        // callee twice. An editor needs the copy at once: a chain that does not resolve yet must
        // not disable completion in the body.
        let (artifact, editor_copy) = match artifact {
            ArtifactExpansion::Chain(chain) => (chain, Some(copy)),
            ArtifactExpansion::Literals(literals) => {
                let artifact = literals.expression(item, facade);
                (quote!({ #copy #witness #errors #artifact }), None)
            }
        };
        let Some(stage) = launchers else { return artifact };
        let names = namespace::kernel(item, facade, &stage, artifact);
        let editor_copy = editor_copy.map(|copy| {
            quote! {
                #[allow(unexpected_cfgs)]
                const _: () = {
                    #[cfg(rust_analyzer)]
                    #copy
                };
            }
        });
        quote!(#names #editor_copy)
    }
}
