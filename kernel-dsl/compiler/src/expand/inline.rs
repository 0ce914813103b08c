//! `ptx!(…)` in the copies that rustc sees.
//!
//! rustc knows nothing of PTX. The macro of that name takes only what the attributes make of a call, the types and values of
//! its operands, and gives what rustc needs to check them:
//! ```text
//! ptx!("add.u32 {d}, {a}, {b};", a = in(u32) x, b = in(u32) y, d = out(u32))
//! ptx!(#device (u32 = x, u32 = y) -> u32)
//! ```
//! A call that no attribute has seen stands where there is no device, and says so.

use crate::syntax::inline::{Call, is_inline};
use proc_macro2::{Punct, Spacing, TokenStream};
use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Item, ItemFn, Macro};

/// The function with its calls made for rustc.
pub(super) fn for_rustc(item: &ItemFn) -> ItemFn {
    let mut item = item.clone();
    Calls.visit_item_fn_mut(&mut item);
    item
}

/// The same of a block.
pub(super) fn block_for_rustc(block: &Block) -> Block {
    let mut block = block.clone();
    Calls.visit_block_mut(&mut block);
    block
}

/// The same of an item, in place.
pub(super) fn item_for_rustc(item: &mut Item) {
    Calls.visit_item_mut(item);
}

struct Calls;

impl VisitMut for Calls {
    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        visit_mut::visit_macro_mut(self, mac);
        if !is_inline(mac) {
            return;
        }
        let hash = Punct::new('#', Spacing::Alone);
        // A mistake is told by who reads the kernel.
        let typed = mac.parse_body::<Call>().ok().map(|call| self.typed(call));
        mac.tokens = quote!(#hash device #typed);
    }
}

impl Calls {
    fn typed(&mut self, call: Call) -> TokenStream {
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
