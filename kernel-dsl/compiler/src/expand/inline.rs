//! `ptx!(…)` and attributes for the oracle, in the copies that rustc checks.
//!
//! rustc cannot check PTX. The attributes rewrite each call to the types and values of its
//! operands, from which the macro `ptx` makes code that rustc can check:
//! ```text
//! ptx!("add.u32 {d}, {a}, {b};", a = in(u32) x, b = in(u32) y, d = out(u32))
//! ptx!(#device (u32 = x, u32 = y) -> u32)
//! ```
//! A call outside kernels and device functions is not rewritten, and the macro reports an error.

use crate::syntax::allow::is_allowance;
use crate::syntax::inline::{InlineCall, is_inline};
use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};
use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Item, ItemFn, Macro};

/// Returns the function with its `ptx!` calls rewritten for rustc.
pub(super) fn for_rustc(item: &ItemFn) -> ItemFn {
    let mut item = item.clone();
    Calls::default().visit_item_fn_mut(&mut item);
    item
}

/// Returns the block with its `ptx!` calls rewritten for rustc.
pub(super) fn block_for_rustc(block: &Block) -> Block {
    let mut block = block.clone();
    Calls::default().visit_block_mut(&mut block);
    block
}

/// Rewrites the `ptx!` calls of an item for rustc, in place.
pub(super) fn item_for_rustc(item: &mut Item) {
    Calls::default().visit_item_mut(item);
}

#[derive(Default)]
struct Calls {
    /// Whether the visitor is in a body. Attributes outside bodies are never for the oracle.
    inside: bool,
}

impl VisitMut for Calls {
    /// Removes attributes for the oracle, which rustc does not know.
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        if self.inside {
            attributes.retain(|attribute| !is_allowance(attribute));
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let outside = std::mem::replace(&mut self.inside, true);
        visit_mut::visit_block_mut(self, block);
        self.inside = outside;
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        visit_mut::visit_macro_mut(self, mac);
        // The call was rewritten in an earlier copy.
        if !is_inline(mac) || is_typed(mac) {
            return;
        }
        let hash = Punct::new('#', Spacing::Alone);
        // The reader of the kernel reports a call that does not parse.
        let typed = mac.parse_body::<InlineCall>().ok().map(|call| self.typed(call));
        mac.tokens = quote!(#hash device #typed);
    }
}

fn is_typed(mac: &Macro) -> bool {
    matches!(mac.tokens.clone().into_iter().next(), Some(TokenTree::Punct(p)) if p.as_char() == '#')
}

impl Calls {
    fn typed(&mut self, call: InlineCall) -> TokenStream {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for operand in call.operands {
            let ty = operand.ty;
            if let Some(mut value) = operand.value {
                self.visit_expr_mut(&mut value);
                inputs.push(quote!(#ty = #value));
            }
            if operand.direction.leaves() {
                outputs.push(ty);
            }
        }
        let output = match &outputs[..] {
            [one] => quote!(#one),
            _ => quote!((#(#outputs),*)),
        };
        quote!((#(#inputs),*) -> #output)
    }
}
