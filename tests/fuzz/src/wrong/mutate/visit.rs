//! The walk over a program: at each node, the mutations of its kind.

use super::{MutationClass, Mutator, removed, toggled};
use proc_macro2::Span;
use quote::format_ident;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Ident, Lit, Local, Pat, parse_quote};

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
        if matches!(visibility, syn::Visibility::Public(_)) && self.hit(MutationClass::VisibilityRemoved) {
            *visibility = syn::Visibility::Inherited;
        }
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
        self.block(block);
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
