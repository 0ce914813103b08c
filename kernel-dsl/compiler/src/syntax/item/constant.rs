//! Constants: their values, and where their tables are stored.

use crate::ir::Placement;
use crate::syntax::{Block, Expr, Function, Reader, place};
use proc_macro2::Ident;
use quote::ToTokens;

impl Reader {
    /// Reads a constant as a function that returns its value.
    pub(super) fn constant(
        &mut self,
        name: &Ident,
        attributes: &[syn::Attribute],
        ty: &syn::Type,
        value: Option<&syn::Expr>,
        item: &impl ToTokens,
    ) -> Function {
        let placement = self.placement(attributes);
        let mut reader = Reader::from_line(name.span().start().line);
        let value: Option<Box<Expr>> = value.map(|e| Box::new(reader.expression(e)));
        let returns = Some(reader.ty(ty));
        let mark = reader.mark(item);
        if let Some(error) = reader.refused {
            self.refuse(error);
        }
        let source = place::source_of(name, item);
        Function {
            name: name.clone(),
            generics: Vec::new(),
            parameters: Vec::new(),
            receiver: false,
            returns,
            constant: Some(placement),
            private: false,
            allowances: Vec::new(),
            body: Block { statements: Vec::new(), value, mark },
            hash: place::hash_of(name, item),
            source,
            written: None,
        }
    }

    /// Reads the placement of a table from `#[device(constant)]` or `#[device(global)]`.
    fn placement(&mut self, attributes: &[syn::Attribute]) -> Placement {
        let mut placement = Placement::ByUse;
        for attribute in attributes.iter().filter(|a| is_placement(a)) {
            match attribute.parse_args::<Ident>() {
                Ok(word) if word == "constant" => placement = Placement::Constant,
                Ok(word) if word == "global" => placement = Placement::Global,
                _ => self.refuse(syn::Error::new_spanned(
                    attribute,
                    "expected `#[device(constant)]` or `#[device(global)]`; without either, the placement follows from how the constant is read",
                )),
            }
        }
        placement
    }
}

/// Returns whether an attribute places a constant: `#[device(global)]` on a constant inside a
/// device item.
pub fn is_placement(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|s| s.ident == "device")
        && matches!(attribute.meta, syn::Meta::List(_))
}
