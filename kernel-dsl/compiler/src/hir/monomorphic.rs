//! Monomorphization: one instance of a program without generic parameters.
//!
//! Each function is instantiated for each list of generic arguments that it is called with. Type
//! parameters are replaced by their arguments, and trait methods by the functions of the impl. A
//! struct becomes the tuple of its fields, and an enum the `i32` of its discriminant. All functions
//! share one table of types.

use super::{
    Block, Constant, Expr, ExprKind, Function, FunctionId, GenericKind, Instance, Program, Root, Size, Tolerance,
    TraitId, TraitItemKind, Type, TypeId, Unroll, item, layout, merge, operator_function, serial, visit,
};
use crate::Scalar;
use crate::error::{Error, Errors};
use crate::ir::Comparison;
use crate::oracle::DeclaredOutput;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The largest number of functions of a monomorphic program. The limit ends generic functions that
/// call one another with ever larger types.
const MAX_FUNCTIONS: usize = 1 << 14;
/// The largest depth of nested structs, and of associated types of associated types.
const MAX_DEPTH: usize = 64;

/// A program for one instance: no type contains a parameter, and each call names a function without
/// generic arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Monomorphic {
    program: Program,
    instance: Instance,
    /// The types of the functions with structs and enums by name, for messages.
    named: Vec<Type>,
    items: item::Items,
    /// The `eq` of each compared type that an impl compares.
    equality: HashMap<TypeId, FunctionId>,
}

impl Monomorphic {
    /// Returns the program. Launch expressions still name the kernel's generic constants, so that
    /// errors can print the names.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the kernel's function.
    pub fn kernel(&self) -> &Function {
        &self.program.functions[0]
    }

    /// Returns a type of the functions in Rust notation.
    pub fn name(&self, id: TypeId) -> String {
        match &self.named[id.0 as usize] {
            Type::Scalar(s) => s.to_string(),
            Type::Array(element, Size::Known(n)) => format!("[{}; {n}]", self.name(*element)),
            Type::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|p| self.name(*p)).collect();
                format!("({})", parts.join(", "))
            }
            Type::Struct(id, arguments) => {
                let name = &self.items.struct_of(*id).name;
                let arguments: Vec<_> = arguments.iter().map(|a| self.name(*a)).collect();
                if arguments.is_empty() { name.clone() } else { format!("{name}<{}>", arguments.join(", ")) }
            }
            Type::Constant(Size::Known(n)) => n.to_string(),
            Type::Constant(Size::Value(n)) => n.to_string(),
            Type::Enum(id, arguments) => {
                let name = &self.items.enums[id.0 as usize].name;
                let arguments: Vec<_> = arguments.iter().map(|a| self.name(*a)).collect();
                if arguments.is_empty() { name.clone() } else { format!("{name}<{}>", arguments.join(", ")) }
            }
            other => format!("{other:?}"),
        }
    }

    /// Returns the `eq` of a compared type, if an impl supplies it: a function of two references.
    pub fn equality(&self, ty: TypeId) -> Option<FunctionId> {
        self.equality.get(&ty).copied()
    }

    /// Returns whether a comparison of values of the type can call the `eq` of an impl.
    pub fn calls_equality(&self, ty: TypeId) -> bool {
        let within = |parts: &[TypeId]| parts.iter().any(|part| self.calls_equality(*part));
        self.equality(ty).is_some()
            || match &self.kernel().types[ty.0 as usize] {
                Type::Tuple(parts) => within(parts),
                Type::Array(part, _) | Type::Option(part) | Type::Reference { to: part, .. } => within(&[*part]),
                _ => false,
            }
    }

    /// Returns the variants of an enum with data: the discriminant of each, and the parts of a
    /// value that are its fields. Returns `None` for other types.
    pub fn variants(&self, ty: TypeId) -> Option<Vec<(i32, Range<usize>)>> {
        let Type::Enum(id, _) = self.named[ty.0 as usize] else { return None };
        let item = &self.items.enums[id.0 as usize];
        let fields = &self.items.struct_of(item.data?).fields;
        let mut next = 1;
        let variants = item.variants.iter().map(|variant| {
            let (first, prefix) = (next, format!("{}.", variant.name));
            next += fields[first..].iter().take_while(|field| field.name.starts_with(&prefix)).count();
            (variant.value, first..next)
        });
        Some(variants.collect())
    }

    /// Returns the tolerance of argument number `index`; `None` if the kernel declares none.
    pub fn tolerance(&self, index: usize) -> Option<Tolerance> {
        let parameter = self.arguments().get(index)?.parameter;
        self.program.launch.tolerances.iter().copied().find(|t| t.parameter == parameter)
    }

    /// Returns the arguments for which the kernel declares how much it writes: the views and slices
    /// of the declared parameters.
    pub fn outputs(&self) -> Vec<DeclaredOutput> {
        let memory = |ty: TypeId| {
            let ty = &self.kernel().types[ty.0 as usize];
            matches!(ty, Type::Slice { mutable: true, .. } | Type::View { mutable: true, .. })
        };
        let of = |parameter| self.program.launch.outputs.iter().find(move |o| o.index == parameter);
        let arguments = self.arguments().into_iter().enumerate().filter(|(_, a)| memory(a.ty));
        arguments.filter_map(|(i, a)| Some(DeclaredOutput { index: i as u32, ..*of(a.parameter)? })).collect()
    }

    /// Returns the arguments of a launch, in order: one for each number, slice and view in the
    /// kernel's parameters, and two for a `u128`.
    pub fn arguments(&self) -> Vec<LaunchArgument> {
        let kernel = self.kernel();
        let mut all = Vec::new();
        for (i, local) in kernel.locals.iter().take(kernel.parameters as usize).enumerate() {
            self.parts(local.name.clone(), local.ty, i as u32, &mut all);
        }
        all
    }

    fn parts(&self, name: String, ty: TypeId, parameter: u32, all: &mut Vec<LaunchArgument>) {
        match (&self.kernel().types[ty.0 as usize], &self.named[ty.0 as usize]) {
            (Type::Tuple(parts), Type::Struct(id, _)) => {
                for (field, part) in self.items.struct_of(*id).fields.iter().zip(parts) {
                    self.parts(format!("{name}.{}", field.name), *part, parameter, all);
                }
            }
            (Type::Tuple(parts), _) => {
                for (i, part) in parts.iter().enumerate() {
                    self.parts(format!("{name}.{i}"), *part, parameter, all);
                }
            }
            (Type::Array(element, Size::Known(n)), _) => {
                for i in 0..*n {
                    self.parts(format!("{name}[{i}]"), *element, parameter, all);
                }
            }
            (Type::Scalar(Scalar::U128), _) => {
                let word = self.kernel().types.iter().position(|t| *t == Type::Scalar(Scalar::U64));
                let ty = TypeId(word.expect("`u128` was interned after `u64`") as u32);
                for part in ["low", "high"] {
                    all.push(LaunchArgument { name: format!("{name}.{part}"), ty, parameter });
                }
            }
            _ => all.push(LaunchArgument { name, ty, parameter }),
        }
    }

    /// Returns the name of the instance as reports and errors print it.
    pub fn instance_name(&self) -> String {
        self.program.instance_name(&self.instance)
    }

    /// Returns the generic arguments of the kernel.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }
}

/// One argument of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchArgument {
    /// The name in Rust: `x`, `epilogue.scale`.
    pub name: String,
    /// A scalar, slice or view.
    pub ty: TypeId,
    /// The index of the parameter that contains the argument.
    pub parameter: u32,
}

/// Instantiates `program` with the generic arguments of `instance`.
pub fn monomorphic(program: &Program, instance: &Instance) -> Result<Monomorphic, Errors> {
    let mut program = program.clone();
    let Some(kernel) = program.functions.first() else {
        return Err(Error::without_span("the program contains no kernel").into());
    };
    if instance.0.len() != kernel.generics.len() {
        let (name, wanted) = (&kernel.name, kernel.generics.len());
        let message = format!("`{name}` takes {wanted} generic arguments, {} given", instance.0.len());
        return Err(Error::without_span(message).into());
    }
    for constant in &instance.0 {
        add_missing_item(&mut program, constant)?;
    }
    let mut monomorphizer = Monomorphizer {
        source: &program,
        types: Vec::new(),
        erased: Vec::new(),
        interned: HashMap::new(),
        made: HashMap::new(),
        functions: Vec::new(),
        opened: Vec::new(),
        projected: 0,
        compared: HashSet::new(),
        equality: HashMap::new(),
        errors: Vec::new(),
    };
    let mut arguments = Vec::with_capacity(instance.0.len());
    for (constant, generic) in instance.0.iter().zip(&program.functions[0].generics) {
        match monomorphizer.argument(constant, &generic.kind) {
            Some(ty) => arguments.push(ty),
            None => {
                let wanted = match &generic.kind {
                    GenericKind::Constant(scalar) => format!("a `{scalar}`"),
                    GenericKind::Type(_) => "a type".to_string(),
                };
                monomorphizer.errors.push(Error::without_span(format!(
                    "the parameter `{}` of `{}` must be {wanted}, found `{constant}`",
                    generic.name, program.functions[0].name
                )));
            }
        }
    }
    if !monomorphizer.errors.is_empty() {
        return Err(Errors(monomorphizer.errors));
    }
    monomorphizer.instance(FunctionId(0), arguments.clone());
    let mut launch = program.launch.clone();
    let conditions = launch.requires.iter_mut().map(|r| &mut r.condition);
    let block = launch.block.iter_mut().flat_map(super::BlockExtent::expressions_mut);
    let limits = launch.min_blocks.iter_mut().chain(&mut launch.max_registers);
    for e in block.chain(&mut launch.grid).chain(limits).chain(conditions) {
        let keep = true;
        visit::expr(e, &mut |e| monomorphizer.expr(e, &program.functions[0], &arguments, keep));
    }
    // A new function requests others, which are added after it.
    let mut next = 0;
    while next < monomorphizer.functions.len() {
        monomorphizer.body(next);
        next += 1;
    }
    if !monomorphizer.errors.is_empty() {
        return Err(Errors(monomorphizer.errors));
    }
    let Monomorphizer { erased, functions, types: named, equality, .. } = monomorphizer;
    let mut functions: Vec<Function> = functions.into_iter().map(|(function, _)| function).collect();
    for function in &mut functions {
        function.types = erased.clone();
    }
    functions[0].generics.clone_from(&program.functions[0].generics);
    let items = program.items.clone();
    let program = Program { launch, functions, items: item::Items::default() };
    Ok(Monomorphic { program, instance: instance.clone(), named, items, equality })
}

/// Adds the item that a generic argument names to the program, if it is missing.
fn add_missing_item(program: &mut Program, constant: &Constant) -> Result<(), Errors> {
    let Constant::Item(item) = constant else { return Ok(()) };
    if merge::find(&program.functions, &program.items, constant).is_some() {
        return Ok(());
    }
    let library = serial::library(&item.library)
        .map_err(|e| Errors::from(Error::without_span(format!("cannot read the device item `{}`: {e}", item.name))))?;
    merge::merge(&mut program.functions, &mut program.items, &library);
    Ok(())
}

struct Monomorphizer<'p> {
    source: &'p Program,
    /// The types, with structs and enums by name.
    types: Vec<Type>,
    /// The types, with structs and enums replaced by their parts.
    erased: Vec<Type>,
    interned: HashMap<Type, TypeId>,
    made: HashMap<(FunctionId, Vec<TypeId>), FunctionId>,
    /// The functions, with the generic arguments of each.
    functions: Vec<(Function, Vec<TypeId>)>,
    /// The structs whose fields are being instantiated, to detect a struct that contains itself.
    opened: Vec<Type>,
    /// The depth of nested lookups of associated types.
    projected: usize,
    /// The types that comparisons reach, each with whether the comparison needs an order (`<`).
    compared: HashSet<(TypeId, bool)>,
    /// The `eq` of each compared type that an impl compares.
    equality: HashMap<TypeId, FunctionId>,
    errors: Vec<Error>,
}

impl Monomorphizer<'_> {
    fn argument(&mut self, constant: &Constant, kind: &GenericKind) -> Option<TypeId> {
        let ty = match (constant, kind) {
            (Constant::Usize(n), GenericKind::Constant(Scalar::Usize)) => Type::Constant(Size::Known(*n)),
            (Constant::Integer(n), GenericKind::Constant(scalar)) if *scalar != Scalar::Usize && scalar.holds(*n) => {
                Type::Constant(Size::Value(*n))
            }
            (Constant::Bool(b), GenericKind::Constant(Scalar::Bool)) => Type::Constant(Size::Known(u32::from(*b))),
            (Constant::Scalar(s), GenericKind::Type(_)) => Type::Scalar(*s),
            (Constant::Item(_), GenericKind::Type(_)) => {
                match merge::find(&self.source.functions, &self.source.items, constant)? {
                    Root::Struct(id) if self.source.items.struct_of(id).generics.is_empty() => {
                        Type::Struct(id, Vec::new())
                    }
                    Root::Enum(id) if self.source.items.enum_generics(id).is_empty() => Type::Enum(id, Vec::new()),
                    Root::Function(id) => Type::Item(id),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(self.intern(ty))
    }

    fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.interned.get(&ty) {
            return *id;
        }
        let erased = match &ty {
            Type::Struct(..) if self.opened.contains(&ty) || self.opened.len() > MAX_DEPTH => {
                if self.errors.is_empty() {
                    self.errors.push(Error::without_span("a struct contains itself, or structs are nested too deeply"));
                }
                Type::Unit
            }
            Type::Struct(id, arguments) => {
                self.opened.push(ty.clone());
                let item = self.source.items.struct_of(*id);
                let fields = item.fields.iter().map(|f| self.instantiate_type(&item.types, f.ty, arguments)).collect();
                self.opened.pop();
                Type::Tuple(fields)
            }
            Type::Enum(id, arguments) => match self.source.items.enums[id.0 as usize].data {
                Some(data) => {
                    let data = self.intern(Type::Struct(data, arguments.clone()));
                    self.erased[data.0 as usize].clone()
                }
                None => Type::Scalar(Scalar::I32),
            },
            Type::Item(_) => Type::Unit,
            other => other.clone(),
        };
        // The index is assigned here, because instantiating the fields has interned other types
        // before.
        if ty == Type::Scalar(Scalar::U128) {
            // The type of its words, as arguments of a launch.
            self.intern(Type::Scalar(Scalar::U64));
        }
        let id = TypeId(self.types.len() as u32);
        self.types.push(ty.clone());
        self.erased.push(erased);
        self.interned.insert(ty, id);
        id
    }

    /// Returns the type `id` of `table`, instantiated with `arguments`.
    fn instantiate_type(&mut self, table: &[Type], id: TypeId, arguments: &[TypeId]) -> TypeId {
        let ty = match &table[id.0 as usize] {
            Type::Parameter(i) => return arguments[*i as usize],
            Type::Constant(Size::Generic(i)) => return arguments[*i as usize],
            Type::Projection { of, of_trait, item } => {
                let of = self.instantiate_type(table, *of, arguments);
                if self.projected > MAX_DEPTH {
                    if self.errors.is_empty() {
                        self.errors.push(Error::without_span("an associated type refers to itself"));
                    }
                    return self.intern(Type::Unit);
                }
                self.projected += 1;
                let ty = self.associated_type(of, *of_trait, *item);
                self.projected -= 1;
                return ty;
            }
            Type::Tuple(parts) => {
                Type::Tuple(parts.iter().map(|p| self.instantiate_type(table, *p, arguments)).collect())
            }
            Type::Array(element, size) => {
                let element = self.instantiate_type(table, *element, arguments);
                Type::Array(element, self.size(*size, arguments))
            }
            Type::Slice { element, mutable } => {
                Type::Slice { element: self.instantiate_type(table, *element, arguments), mutable: *mutable }
            }
            Type::View { element, rank, mutable, strided } => {
                let element = self.instantiate_type(table, *element, arguments);
                Type::View { element, rank: *rank, mutable: *mutable, strided: *strided }
            }
            Type::Shared { element, rank } => {
                Type::Shared { element: self.instantiate_type(table, *element, arguments), rank: *rank }
            }
            Type::Pending => Type::Pending,
            Type::Group(size) => Type::Group(self.size(*size, arguments)),
            Type::Reference { to, mutable } => {
                Type::Reference { to: self.instantiate_type(table, *to, arguments), mutable: *mutable }
            }
            Type::Option(inner) => Type::Option(self.instantiate_type(table, *inner, arguments)),
            Type::Function { parameters, returns, calls } => Type::Function {
                parameters: parameters.iter().map(|p| self.instantiate_type(table, *p, arguments)).collect(),
                returns: self.instantiate_type(table, *returns, arguments),
                calls: *calls,
            },
            Type::Struct(id, of) => {
                Type::Struct(*id, of.iter().map(|t| self.instantiate_type(table, *t, arguments)).collect())
            }
            Type::Enum(id, of) => {
                Type::Enum(*id, of.iter().map(|t| self.instantiate_type(table, *t, arguments)).collect())
            }
            Type::Unit | Type::Never | Type::Scalar(_) | Type::Item(_) | Type::Constant(_) => {
                table[id.0 as usize].clone()
            }
        };
        self.intern(ty)
    }

    fn size(&self, size: Size, arguments: &[TypeId]) -> Size {
        match size {
            Size::Generic(i) => match self.types[arguments[i as usize].0 as usize] {
                Type::Constant(size) => size,
                _ => Size::Known(0),
            },
            known => known,
        }
    }

    /// Returns the impl of a trait for a type, with the generic arguments of the impl.
    fn implementation(&mut self, of_trait: TraitId, of: TypeId) -> Option<(usize, Vec<TypeId>)> {
        let source = self.source;
        source.items.impls.iter().enumerate().find_map(|(i, each)| {
            if each.of_trait != Some(of_trait) {
                return None;
            }
            let mut bound = vec![None; each.generics.len()];
            if !self.fits(&each.types, each.for_type, of, &mut bound) {
                return None;
            }
            Some((i, bound.into_iter().collect::<Option<Vec<_>>>()?))
        })
    }

    /// Returns whether the type `of` is an instance of `pattern`; `bound` collects the generic
    /// arguments.
    fn fits(&mut self, table: &[Type], pattern: TypeId, of: TypeId, bound: &mut [Option<TypeId>]) -> bool {
        let closed = self.types[of.0 as usize].clone();
        match (&table[pattern.0 as usize], &closed) {
            (Type::Parameter(i), _) | (Type::Constant(Size::Generic(i)), _) => match &mut bound[*i as usize] {
                Some(before) => *before == of,
                none => {
                    *none = Some(of);
                    true
                }
            },
            (Type::Struct(a, p), Type::Struct(b, q)) => {
                a == b && p.iter().zip(q).all(|(p, q)| self.fits(table, *p, *q, bound))
            }
            (Type::Enum(a, p), Type::Enum(b, q)) => {
                a == b && p.iter().zip(q).all(|(p, q)| self.fits(table, *p, *q, bound))
            }
            (Type::Tuple(p), Type::Tuple(q)) => {
                p.len() == q.len() && p.iter().zip(q).all(|(p, q)| self.fits(table, *p, *q, bound))
            }
            (Type::Array(p, n), Type::Array(q, m)) => {
                let known = match n {
                    Size::Known(_) | Size::Value(_) => n == m,
                    Size::Generic(i) => {
                        let m = self.intern(Type::Constant(*m));
                        *bound[*i as usize].get_or_insert(m) == m
                    }
                };
                known && self.fits(table, *p, *q, bound)
            }
            (Type::Option(p), Type::Option(q)) => self.fits(table, *p, *q, bound),
            (Type::Slice { element: p, mutable: m }, Type::Slice { element: q, mutable: n }) => {
                m == n && self.fits(table, *p, *q, bound)
            }
            (
                Type::View { element: p, rank: r, mutable: m, strided: d },
                Type::View { element: q, rank: s, mutable: n, strided: e },
            ) => (r, m, d) == (s, n, e) && self.fits(table, *p, *q, bound),
            (Type::Shared { element: p, rank: r }, Type::Shared { element: q, rank: s }) => {
                r == s && self.fits(table, *p, *q, bound)
            }
            // Both types are from the same table, or have no parts.
            (Type::Scalar(a), Type::Scalar(b)) => a == b,
            (Type::Item(a), Type::Item(b)) => a == b,
            (Type::Constant(a), Type::Constant(b)) => a == b,
            (Type::Unit, Type::Unit) => true,
            _ => false,
        }
    }

    fn associated_type(&mut self, of: TypeId, of_trait: TraitId, item: u32) -> TypeId {
        let source = self.source;
        let name = &source.items.trait_of(of_trait).items[item as usize].name;
        if let Some((i, arguments)) = self.implementation(of_trait, of) {
            let each = &source.items.impls[i];
            if let Some((_, ty)) = each.associated.iter().find(|(n, _)| n == name) {
                return self.instantiate_type(&each.types, *ty, &arguments);
            }
        }
        self.missing(of, of_trait, name);
        self.intern(Type::Unit)
    }

    fn missing(&mut self, of: TypeId, of_trait: TraitId, name: &str) {
        let the_trait = &self.source.items.trait_of(of_trait).name;
        let of = match &self.types[of.0 as usize] {
            Type::Scalar(s) => s.to_string(),
            Type::Struct(id, _) => self.source.items.struct_of(*id).name.clone(),
            Type::Enum(id, _) => self.source.items.enums[id.0 as usize].name.clone(),
            Type::Item(id) => self.source.functions[id.0 as usize].name.clone(),
            _ => "the type given".to_string(),
        };
        self.errors.push(Error::without_span(format!(
            "there is no `{the_trait}::{name}` of `{of}` on the device: put `impl {the_trait}` into the `#[device] mod` of the type or of the trait"
        )));
    }

    /// Returns the function of a trait item for the type `of`, instantiated with all generic
    /// arguments.
    fn method(&mut self, of: TypeId, of_trait: TraitId, item: u32, own: Vec<TypeId>) -> Option<FunctionId> {
        let source = self.source;
        let declared = &source.items.trait_of(of_trait).items[item as usize];
        if let Some((i, mut arguments)) = self.implementation(of_trait, of) {
            let each = &source.items.impls[i];
            if let Some((_, found)) = each.functions.iter().find(|(n, _)| *n == declared.name) {
                arguments.extend(own);
                return Some(self.instance(found.function(), arguments));
            }
            if let TraitItemKind::Constant { function, provided: true }
            | TraitItemKind::Function { function, provided: true, .. } = declared.kind
            {
                let arguments = std::iter::once(of).chain(own).collect();
                return Some(self.instance(function, arguments));
            }
        }
        self.missing(of, of_trait, &declared.name);
        None
    }

    /// Finds the impls that a comparison of values of a type calls. An order calls none.
    fn compare(&mut self, ty: TypeId, comparison: Comparison) {
        if !self.compared.insert((ty, comparison.is_order())) {
            return;
        }
        let items = &self.source.items;
        let derived = match self.types[ty.0 as usize] {
            Type::Struct(id, _) => Some((items.struct_of(id).derived, &items.struct_of(id).name)),
            Type::Enum(id, _) => Some((items.enums[id.0 as usize].derived, &items.enums[id.0 as usize].name)),
            _ => None,
        };
        if let Some((derived, name)) = derived
            && !derived.has(comparison)
        {
            match self.equality_impl(ty).filter(|_| !comparison.is_order()) {
                Some(function) => {
                    self.equality.insert(ty, function);
                }
                None => self.errors.push(Error::without_span(format!(
                    "`{name}` has no comparison on the device: derive `PartialEq` or `PartialOrd`, below `#[device]`"
                ))),
            }
            return;
        }
        let parts = match &self.erased[ty.0 as usize] {
            Type::Tuple(parts) => parts.clone(),
            Type::Array(part, _) | Type::Option(part) | Type::Reference { to: part, .. } => vec![*part],
            _ => Vec::new(),
        };
        parts.into_iter().for_each(|part| self.compare(part, comparison));
    }

    /// Returns the `eq` of an `impl PartialEq` that compares two values of the type.
    fn equality_impl(&mut self, ty: TypeId) -> Option<FunctionId> {
        let (source, name) = (self.source, operator_function("PartialEq"));
        source.items.impls.iter().find_map(|each| {
            let (_, found) = each.functions.iter().find(|(n, _)| each.of_trait.is_none() && *n == name)?;
            let mut bound = vec![None; each.generics.len()];
            if !self.fits(&each.types, each.for_type, ty, &mut bound) {
                return None;
            }
            let arguments = bound.into_iter().collect::<Option<Vec<_>>>()?;
            let function = &source.functions[found.function().0 as usize];
            let other = self.instantiate_type(&function.types, function.locals.get(1)?.ty, &arguments);
            let compares = self.types[other.0 as usize] == Type::Reference { to: ty, mutable: false };
            compares.then(|| self.instance(found.function(), arguments))
        })
    }

    /// Returns the number of a function with these generic arguments. The function is instantiated
    /// later.
    fn instance(&mut self, id: FunctionId, arguments: Vec<TypeId>) -> FunctionId {
        if let Some(made) = self.made.get(&(id, arguments.clone())) {
            return *made;
        }
        let source = &self.source.functions[id.0 as usize];
        if self.functions.len() >= MAX_FUNCTIONS {
            if self.functions.len() == MAX_FUNCTIONS && self.errors.is_empty() {
                let message =
                    format!("`{}` is instantiated without end, each time with other generic arguments", source.name);
                self.errors.push(Error::without_span(message));
            }
            return FunctionId(0);
        }
        let number = FunctionId(self.functions.len() as u32);
        self.functions.push((source.clone(), arguments.clone()));
        self.made.insert((id, arguments), number);
        number
    }

    /// Instantiates function `number` with its requested generic arguments.
    fn body(&mut self, number: usize) {
        let (mut function, arguments) = self.functions[number].clone();
        let generic = function.clone();
        let mut body: Block = std::mem::take(&mut function.body);
        visit::block(&mut body, &mut |e| self.expr(e, &generic, &arguments, false));
        function.body = body;
        function.returns = self.instantiate_type(&generic.types, function.returns, &arguments);
        for local in &mut function.locals {
            local.ty = self.instantiate_type(&generic.types, local.ty, &arguments);
        }
        function.generics.clear();
        self.functions[number].0 = function;
    }

    /// Instantiates one expression, whose parts are instantiated already. `keep` keeps generic
    /// constants.
    fn expr(&mut self, e: &mut Expr, function: &Function, arguments: &[TypeId], keep: bool) {
        let generic = matches!(function.types[e.ty.0 as usize], Type::Parameter(_) | Type::Projection { .. });
        e.ty = self.instantiate_type(&function.types, e.ty, arguments);
        match &mut e.kind {
            ExprKind::Literal(_) if generic && !matches!(self.types[e.ty.0 as usize], Type::Scalar(_)) => {
                let message = "`default` of a struct or enum exists only on the host: add a function or constant to a device trait instead";
                self.errors.push(Error::at(&function.source, e.span, message));
            }
            ExprKind::Generic(i) if !keep => {
                if let Type::Constant(Size::Value(n)) = self.types[arguments[*i as usize].0 as usize]
                    && let Some(n) = u128::try_from(n).ok().filter(|n| *n > u64::MAX.into())
                {
                    e.kind = ExprKind::LongLiteral(n);
                    return;
                }
                let bits = match (&self.types[arguments[*i as usize].0 as usize], &self.types[e.ty.0 as usize]) {
                    (Type::Constant(Size::Known(n)), _) => u64::from(*n),
                    (Type::Constant(Size::Value(n)), Type::Scalar(scalar)) => *n as u64 & scalar.mask(),
                    _ => 0,
                };
                e.kind = ExprKind::Literal(bits);
            }
            ExprKind::Compare(comparison, a, _) => self.compare(a.ty, *comparison),
            ExprKind::Call { function: callee, generics, .. } | ExprKind::Function { function: callee, generics } => {
                let generics: Vec<_> = std::mem::take(generics)
                    .into_iter()
                    .map(|g| self.instantiate_type(&function.types, g, arguments))
                    .collect();
                *callee = self.instance(*callee, generics);
            }
            ExprKind::CallMethod { of, of_trait, item, generics, arguments: given } => {
                let of = self.instantiate_type(&function.types, *of, arguments);
                let own = generics.iter().map(|g| self.instantiate_type(&function.types, *g, arguments)).collect();
                let given = std::mem::take(given);
                e.kind = match self.method(of, *of_trait, *item, own) {
                    Some(callee) => ExprKind::Call { function: callee, generics: Vec::new(), arguments: given },
                    None => ExprKind::Tuple(Vec::new()),
                };
            }
            ExprKind::MethodValue { of, of_trait, item, generics } => {
                let of = self.instantiate_type(&function.types, *of, arguments);
                let own = generics.iter().map(|g| self.instantiate_type(&function.types, *g, arguments)).collect();
                e.kind = match self.method(of, *of_trait, *item, own) {
                    Some(callee) => ExprKind::Function { function: callee, generics: Vec::new() },
                    None => ExprKind::Tuple(Vec::new()),
                };
            }
            ExprKind::CallItem { of, arguments: given } => {
                let of = self.instantiate_type(&function.types, *of, arguments);
                let given = std::mem::take(given);
                e.kind = match self.types[of.0 as usize] {
                    Type::Item(callee) => {
                        let function = self.instance(callee, Vec::new());
                        ExprKind::Call { function, generics: Vec::new(), arguments: given }
                    }
                    _ => ExprKind::Tuple(Vec::new()),
                };
            }
            ExprKind::SizeOf(ty) => {
                let ty = self.instantiate_type(&function.types, *ty, arguments);
                let bytes = match layout::layout(&self.erased, ty) {
                    Some(layout) => layout.bytes,
                    None => {
                        self.errors.push(Error::at(&function.source, e.span, "this type has no size in memory"));
                        0
                    }
                };
                e.kind = ExprKind::Literal(u64::from(bytes));
            }
            ExprKind::For { range, .. } => {
                if let Unroll::By(size) = &mut range.unroll {
                    *size = self.size(*size, arguments);
                }
            }
            _ => {}
        }
    }
}
