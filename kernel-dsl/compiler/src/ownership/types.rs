//! Types with their generic arguments, as patterns and moves need them.

use crate::Scalar;
use crate::hir::{self, Builtin, Generic, GenericKind, Items, Struct, TraitBound, Type, TypeId};
use std::rc::Rc;

/// A type of a table, with the arguments for its parameters.
#[derive(Clone)]
pub(super) struct AppliedType<'t> {
    table: &'t [Type],
    id: TypeId,
    arguments: Rc<Vec<AppliedType<'t>>>,
}

/// The values of a type, as patterns take them apart.
pub(super) enum ValueShape<'t> {
    Bool,
    Integer(Scalar),
    Option(AppliedType<'t>),
    Reference(AppliedType<'t>),
    Parts(Vec<AppliedType<'t>>),
    /// A struct, with its name.
    Struct(String, Vec<AppliedType<'t>>),
    /// An array of elements.
    Elements(AppliedType<'t>),
    Variants(Vec<VariantShape<'t>>),
    /// Values that patterns cannot enumerate.
    Other,
}

/// A variant of an enum.
pub(super) struct VariantShape<'t> {
    pub name: String,
    pub value: i32,
    /// The indices of the fields in the parts of the enum.
    pub fields: Vec<usize>,
    pub types: Vec<AppliedType<'t>>,
}

impl<'t> AppliedType<'t> {
    /// Returns a type of a function.
    pub(super) fn of(table: &'t [Type], id: TypeId) -> AppliedType<'t> {
        AppliedType { table, id, arguments: Rc::default() }.resolved()
    }

    fn part(&self, id: TypeId) -> AppliedType<'t> {
        AppliedType { table: self.table, id, arguments: self.arguments.clone() }.resolved()
    }

    /// Returns the argument for a parameter of an item.
    fn resolved(self) -> AppliedType<'t> {
        match self.ty() {
            Type::Parameter(i) => self.arguments.get(*i as usize).cloned().unwrap_or(self),
            _ => self,
        }
    }

    fn ty(&self) -> &'t Type {
        &self.table[self.id.0 as usize]
    }

    fn fields(&self, item: &'t Struct, arguments: &[TypeId]) -> Vec<AppliedType<'t>> {
        let arguments = Rc::new(arguments.iter().map(|id| self.part(*id)).collect::<Vec<_>>());
        let field = |id| AppliedType { table: &item.types, id, arguments: arguments.clone() }.resolved();
        item.fields.iter().map(|f| field(f.ty)).collect()
    }

    /// Returns the values of the type.
    pub(super) fn shape(&self, items: &'t Items) -> ValueShape<'t> {
        match self.ty() {
            Type::Scalar(Scalar::Bool) => ValueShape::Bool,
            Type::Scalar(scalar) if scalar.is_integer() => ValueShape::Integer(*scalar),
            Type::Unit => ValueShape::Parts(Vec::new()),
            Type::Tuple(parts) => ValueShape::Parts(parts.iter().map(|id| self.part(*id)).collect()),
            Type::Array(element, _) => ValueShape::Elements(self.part(*element)),
            Type::Option(inner) => ValueShape::Option(self.part(*inner)),
            Type::Reference { to, .. } => ValueShape::Reference(self.part(*to)),
            Type::Struct(id, arguments) => {
                let item = items.struct_of(*id);
                ValueShape::Struct(item.name.clone(), self.fields(item, arguments))
            }
            Type::Enum(id, arguments) => {
                let item = &items.enums[id.0 as usize];
                let data = item.data.map(|data| items.struct_of(data));
                let types = data.map(|data| self.fields(data, arguments)).unwrap_or_default();
                let variant = |v: &hir::Variant| {
                    let prefix = format!("{}.", v.name);
                    let names = data.map_or(&[][..], |data| &data.fields);
                    let fields: Vec<usize> =
                        (0..names.len()).filter(|at| names[*at].name.starts_with(&prefix)).collect();
                    let types = fields.iter().map(|at| types[*at].clone()).collect();
                    let path = match item.name.as_str() {
                        "Result" => v.name.clone(),
                        name => format!("{name}::{}", v.name),
                    };
                    VariantShape { name: path, value: v.value, fields, types }
                };
                ValueShape::Variants(item.variants.iter().map(variant).collect())
            }
            _ => ValueShape::Other,
        }
    }

    /// Returns whether a use of a value leaves the value in its place.
    pub(super) fn is_copy(&self, items: &'t Items, generics: &[Generic]) -> bool {
        let all = |ids: &[TypeId]| ids.iter().all(|id| self.part(*id).is_copy(items, generics));
        match self.ty() {
            Type::Slice { mutable, .. } | Type::Reference { mutable, .. } => !mutable,
            Type::Pending => false,
            Type::Tuple(parts) => all(parts),
            Type::Array(element, _) | Type::Option(element) => all(&[*element]),
            Type::Struct(id, arguments) => items.struct_of(*id).copy && all(arguments),
            Type::Enum(id, arguments) => items.enums[id.0 as usize].copy && all(arguments),
            Type::Parameter(i) => match generics.get(*i as usize).map(|g| &g.kind) {
                Some(GenericKind::Type(bounds)) => implies_copy(bounds, items, 0),
                _ => true,
            },
            _ => true,
        }
    }

    /// Returns whether a value holds references, or a closure that may capture some.
    pub(super) fn holds_references(&self) -> bool {
        let any = |ids: &[TypeId]| ids.iter().any(|id| self.part(*id).holds_references());
        match self.ty() {
            Type::Slice { .. } | Type::Reference { .. } | Type::Function { .. } => true,
            Type::Tuple(parts) => any(parts),
            Type::Array(element, _) | Type::Option(element) => any(&[*element]),
            Type::Struct(_, arguments) | Type::Enum(_, arguments) => any(arguments),
            _ => false,
        }
    }

    /// Returns whether the type is a reference, and whether to a place that can be written.
    pub(super) fn reference(&self) -> Option<bool> {
        match self.ty() {
            Type::Slice { mutable, .. } | Type::Reference { mutable, .. } => Some(*mutable),
            _ => None,
        }
    }

    /// Returns whether the type is a struct or enum of the program, with its name.
    pub(super) fn item_name(&self, items: &'t Items) -> Option<&'t str> {
        match self.ty() {
            Type::Struct(id, _) => Some(&items.struct_of(*id).name),
            Type::Enum(id, _) => Some(&items.enums[id.0 as usize].name),
            _ => None,
        }
    }
}

/// Returns whether a type with these bounds is `Copy`. Bounds of the prelude imply it.
fn implies_copy(bounds: &[TraitBound], items: &Items, depth: u32) -> bool {
    depth > 8
        || bounds.iter().any(|bound| match bound {
            TraitBound::Builtin(builtin) => builtin.implies(Builtin::Copy),
            TraitBound::Trait(id) => implies_copy(&items.trait_of(*id).bounds, items, depth + 1),
            TraitBound::Function { .. } => true,
        })
}
