//! Merging of libraries: each item is kept once, and all indices are renumbered.

use super::{
    Associated, Constant, DeviceLibrary, EnumId, ExprKind, Function, FunctionId, Generic, GenericKind, Items, Root,
    StructId, TraitBound, TraitId, TraitItemKind, Type, visit,
};

/// The indices of a library's items in the lists it was merged into.
#[derive(Clone, Debug, Default)]
struct MergedIndices {
    functions: Vec<FunctionId>,
    structs: Vec<StructId>,
    enums: Vec<EnumId>,
    traits: Vec<TraitId>,
}

/// Adds the items of `library` that the lists lack. Returns the index of its root. Items are equal
/// if their names and hashes are equal.
pub fn merge(functions: &mut Vec<Function>, items: &mut Items, library: &DeviceLibrary) -> Option<Root> {
    let mut places = MergedIndices::default();
    let mut new = Vec::new();
    // The items of one library differ, so only earlier items are compared.
    let before = functions.len();
    for function in &library.functions {
        let at = functions[..before].iter().position(|f| f.hash == function.hash && f.name == function.name);
        places.functions.push(FunctionId(at.unwrap_or(functions.len()) as u32));
        if at.is_none() {
            new.push(functions.len());
            functions.push(function.clone());
        }
    }
    macro_rules! place {
        ($list:ident, $Id:ident, $new:ident) => {
            let mut $new = Vec::new();
            let before = items.$list.len();
            for item in &library.items.$list {
                let at = items.$list[..before].iter().position(|i| i.hash == item.hash && i.name == item.name);
                places.$list.push($Id(at.unwrap_or(items.$list.len()) as u32));
                if at.is_none() {
                    $new.push(items.$list.len());
                    items.$list.push(item.clone());
                }
            }
        };
    }
    place!(structs, StructId, structs);
    place!(enums, EnumId, enums);
    place!(traits, TraitId, traits);
    for i in new {
        places.function(&mut functions[i]);
    }
    for i in structs {
        let item = &mut items.structs[i];
        places.generics(&mut item.generics);
        places.types(&mut item.types);
    }
    for i in enums {
        let data = &mut items.enums[i].data;
        *data = data.map(|id| places.structs[id.0 as usize]);
    }
    for i in traits {
        let item = &mut items.traits[i];
        places.bounds(&mut item.bounds);
        for item in &mut item.items {
            match &mut item.kind {
                TraitItemKind::Type(bounds) => places.bounds(bounds),
                TraitItemKind::Constant { function, .. } | TraitItemKind::Function { function, .. } => {
                    *function = places.functions[function.0 as usize];
                }
            }
        }
    }
    for item in &library.items.impls {
        if items.impls.iter().any(|i| i.hash == item.hash) {
            continue;
        }
        let mut item = item.clone();
        places.generics(&mut item.generics);
        places.types(&mut item.types);
        item.of_trait = item.of_trait.map(|t| places.traits[t.0 as usize]);
        for (_, associated) in &mut item.functions {
            match associated {
                Associated::Constant(function) | Associated::Function { function, .. } => {
                    *function = places.functions[function.0 as usize];
                }
            }
        }
        items.impls.push(item);
    }
    library.root.map(|root| match root {
        Root::Function(id) => Root::Function(places.functions[id.0 as usize]),
        Root::Constant(id) => Root::Constant(places.functions[id.0 as usize]),
        Root::Struct(id) => Root::Struct(places.structs[id.0 as usize]),
        Root::Enum(id) => Root::Enum(places.enums[id.0 as usize]),
        Root::Trait(id) => Root::Trait(places.traits[id.0 as usize]),
        Root::Alias(id) => Root::Alias(places.structs[id.0 as usize]),
    })
}

impl MergedIndices {
    fn function(&self, function: &mut Function) {
        self.generics(&mut function.generics);
        self.types(&mut function.types);
        visit::block(&mut function.body, &mut |e| match &mut e.kind {
            ExprKind::Call { function, .. } | ExprKind::Function { function, .. } => {
                *function = self.functions[function.0 as usize];
            }
            ExprKind::CallMethod { of_trait, .. } | ExprKind::MethodValue { of_trait, .. } => {
                *of_trait = self.traits[of_trait.0 as usize]
            }
            _ => {}
        });
    }

    fn generics(&self, generics: &mut [Generic]) {
        for generic in generics {
            if let GenericKind::Type(bounds) = &mut generic.kind {
                self.bounds(bounds);
            }
        }
    }

    fn bounds(&self, bounds: &mut [TraitBound]) {
        for bound in bounds {
            if let TraitBound::Trait(id) = bound {
                *id = self.traits[id.0 as usize];
            }
        }
    }

    fn types(&self, types: &mut [Type]) {
        for ty in types {
            match ty {
                Type::Struct(id, _) => *id = self.structs[id.0 as usize],
                Type::Enum(id, _) => *id = self.enums[id.0 as usize],
                Type::Projection { of_trait, .. } => *of_trait = self.traits[of_trait.0 as usize],
                Type::Item(id) => *id = self.functions[id.0 as usize],
                _ => {}
            }
        }
    }
}

/// Returns the index of an item passed for a type parameter, if the lists contain it.
pub fn find(functions: &[Function], items: &Items, constant: &Constant) -> Option<Root> {
    let Constant::Item(item) = constant else { return None };
    let same = |name: &str, hash: u64| hash == item.hash && name == item.name;
    let struct_index = items.structs.iter().position(|s| same(&s.name, s.hash));
    let enum_index = || items.enums.iter().position(|e| same(&e.name, e.hash));
    let function_index = || functions.iter().position(|f| same(&f.name, f.hash));
    struct_index
        .map(|i| Root::Struct(StructId(i as u32)))
        .or_else(|| enum_index().map(|i| Root::Enum(EnumId(i as u32))))
        .or_else(|| function_index().map(|i| Root::Function(FunctionId(i as u32))))
}
