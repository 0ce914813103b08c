//! Types under inference: a table of types, some of them unknown, and unification.

use crate::Scalar;
use crate::hir::{self, CallTrait, EnumId, FunctionId, StructId, TraitId};
use std::fmt::Write;

/// Index into [`TypeTable`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TypeIndex(pub u32);

/// A type whose parts may be unknown.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Ty {
    Unknown(UnknownKind),
    /// Unified with another type.
    Same(TypeIndex),
    Unit,
    Never,
    /// The type of an erroneous expression; unifies with every type, so that an error is reported
    /// once.
    Wrong,
    Scalar(Scalar),
    Tuple(Vec<TypeIndex>),
    Array(TypeIndex, TypeIndex),
    Slice {
        element: TypeIndex,
        mutable: bool,
    },
    View {
        element: TypeIndex,
        rank: u32,
        mutable: bool,
        /// The last stride need not be 1.
        strided: bool,
    },
    Shared {
        element: TypeIndex,
        rank: u32,
    },
    /// A token for copies in flight.
    Pending,
    /// `warp::Group` with this number of lanes.
    Group(TypeIndex),
    Reference {
        to: TypeIndex,
        mutable: bool,
    },
    Option(TypeIndex),
    /// The type of a parameter that takes a closure.
    Function {
        parameters: Vec<TypeIndex>,
        returns: TypeIndex,
        calls: CallTrait,
    },
    /// A closure or function of the program. Each has its own type, as in Rust.
    Closure {
        number: u32,
        parameters: Vec<TypeIndex>,
        returns: TypeIndex,
    },
    /// A number in a type.
    Size(hir::Size),
    /// A type parameter.
    Parameter(u32),
    /// An associated type of a type parameter.
    Projection {
        of: TypeIndex,
        of_trait: TraitId,
        item: u32,
    },
    Struct(StructId, Vec<TypeIndex>),
    Enum(EnumId, Vec<TypeIndex>),
    /// A device function passed for a type parameter.
    Item(FunctionId),
}

/// The constraint on an unknown type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnknownKind {
    Any,
    /// From an integer literal without a suffix.
    Integer,
    /// From a float literal without a suffix.
    Float,
    /// A number in a type, and not a type.
    Size,
}

/// The names of the items and generic parameters, for printing types.
#[derive(Clone, Copy)]
pub(super) struct TypeNames<'a> {
    pub generics: &'a [hir::Generic],
    pub items: &'a hir::Items,
}

/// The types of one function.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeTable {
    entries: Vec<Ty>,
}

impl TypeTable {
    pub(super) fn add(&mut self, ty: Ty) -> TypeIndex {
        self.entries.push(ty);
        TypeIndex(self.entries.len() as u32 - 1)
    }

    pub(super) fn scalar(&mut self, s: Scalar) -> TypeIndex {
        self.add(Ty::Scalar(s))
    }

    pub(super) fn unknown(&mut self) -> TypeIndex {
        self.add(Ty::Unknown(UnknownKind::Any))
    }

    /// Returns the representative of all types unified with `id`.
    pub(super) fn root(&self, mut id: TypeIndex) -> TypeIndex {
        while let Ty::Same(next) = self.entries[id.0 as usize] {
            id = next;
        }
        id
    }

    pub(super) fn get(&self, id: TypeIndex) -> &Ty {
        &self.entries[self.root(id).0 as usize]
    }

    /// Returns the scalar, if it is known to be one.
    pub(super) fn as_scalar(&self, id: TypeIndex) -> Option<Scalar> {
        match self.get(id) {
            Ty::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// Unifies `a` and `b`. Returns false if they cannot be equal.
    pub(super) fn unify(&mut self, a: TypeIndex, b: TypeIndex) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return true;
        }
        let (x, y) = (self.get(a).clone(), self.get(b).clone());
        match (x, y) {
            (Ty::Wrong, Ty::Unknown(_)) => self.link(b, a),
            (Ty::Unknown(_), Ty::Wrong) => self.link(a, b),
            (Ty::Wrong, _) | (_, Ty::Wrong) => true,
            (Ty::Unknown(ka), Ty::Unknown(kb)) => match (ka, kb) {
                (UnknownKind::Any, _) => self.link(a, b),
                (_, UnknownKind::Any) => self.link(b, a),
                (ka, kb) if ka == kb => self.link(a, b),
                _ => false,
            },
            (Ty::Unknown(kind), known) => self.known(kind, &known) && self.link(a, b),
            (known, Ty::Unknown(kind)) => self.known(kind, &known) && self.link(b, a),
            (Ty::Tuple(p), Ty::Tuple(q)) => p.len() == q.len() && p.into_iter().zip(q).all(|(a, b)| self.unify(a, b)),
            (Ty::Array(p, n), Ty::Array(q, m)) => self.unify(p, q) && self.unify(n, m),
            (Ty::Slice { element: p, mutable: m }, Ty::Slice { element: q, mutable: n }) => m == n && self.unify(p, q),
            (
                Ty::View { element: p, rank: r, mutable: m, strided: d },
                Ty::View { element: q, rank: s, mutable: n, strided: e },
            ) => (r, m, d) == (s, n, e) && self.unify(p, q),
            (Ty::Shared { element: p, rank: r }, Ty::Shared { element: q, rank: s }) => r == s && self.unify(p, q),
            (Ty::Struct(a, p), Ty::Struct(b, q)) => a == b && p.into_iter().zip(q).all(|(a, b)| self.unify(a, b)),
            (Ty::Enum(a, p), Ty::Enum(b, q)) => a == b && p.into_iter().zip(q).all(|(a, b)| self.unify(a, b)),
            (Ty::Projection { of: p, of_trait: t, item: i }, Ty::Projection { of: q, of_trait: u, item: j }) => {
                (t, i) == (u, j) && self.unify(p, q)
            }
            (Ty::Pending, Ty::Pending) => true,
            (Ty::Group(n), Ty::Group(m)) => self.unify(n, m),
            (Ty::Reference { to: p, mutable: m }, Ty::Reference { to: q, mutable: n }) => m == n && self.unify(p, q),
            (Ty::Option(p), Ty::Option(q)) => self.unify(p, q),
            (Ty::Closure { number: m, .. }, Ty::Closure { number: n, .. }) => m == n,
            (
                Ty::Closure { parameters: p, returns: r, .. } | Ty::Function { parameters: p, returns: r, .. },
                Ty::Closure { parameters: q, returns: s, .. } | Ty::Function { parameters: q, returns: s, .. },
            ) => p.len() == q.len() && p.into_iter().zip(q).all(|(a, b)| self.unify(a, b)) && self.unify(r, s),
            (x, y) => x == y,
        }
    }

    /// Binds the unknown `from` to `to`. Returns false if `to` contains it, because no type
    /// contains itself.
    fn link(&mut self, from: TypeIndex, to: TypeIndex) -> bool {
        if self.holds(to, from) {
            return false;
        }
        self.entries[from.0 as usize] = Ty::Same(to);
        true
    }

    fn holds(&self, whole: TypeIndex, part: TypeIndex) -> bool {
        let whole = self.root(whole);
        whole == part
            || match &self.entries[whole.0 as usize] {
                Ty::Tuple(parts) | Ty::Struct(_, parts) | Ty::Enum(_, parts) => {
                    parts.iter().any(|p| self.holds(*p, part))
                }
                Ty::Array(element, _)
                | Ty::Slice { element, .. }
                | Ty::View { element, .. }
                | Ty::Shared { element, .. } => self.holds(*element, part),
                Ty::Reference { to, .. } => self.holds(*to, part),
                Ty::Option(inner) => self.holds(*inner, part),
                Ty::Function { parameters, returns, .. } | Ty::Closure { parameters, returns, .. } => {
                    parameters.iter().chain([returns]).any(|p| self.holds(*p, part))
                }
                _ => false,
            }
    }

    fn known(&self, kind: UnknownKind, ty: &Ty) -> bool {
        match kind {
            UnknownKind::Any => !matches!(ty, Ty::Size(_)),
            UnknownKind::Integer => matches!(ty, Ty::Scalar(s) if s.is_integer()),
            UnknownKind::Float => matches!(ty, Ty::Scalar(s) if s.is_float()),
            UnknownKind::Size => matches!(ty, Ty::Size(_)),
        }
    }

    /// Returns the type in words, as rustc writes it.
    pub(super) fn name(&self, id: TypeIndex, names: TypeNames) -> String {
        let generics = names.generics;
        match self.get(id) {
            Ty::Unknown(UnknownKind::Integer) => "{integer}".into(),
            Ty::Unknown(UnknownKind::Float) => "{float}".into(),
            Ty::Unknown(_) | Ty::Wrong | Ty::Same(_) => "_".into(),
            Ty::Unit => "()".into(),
            Ty::Never => "!".into(),
            Ty::Scalar(s) => s.name().into(),
            Ty::Tuple(parts) => {
                let mut out = String::from("(");
                for (i, part) in parts.iter().enumerate() {
                    let _ = write!(out, "{}{}", if i > 0 { ", " } else { "" }, self.name(*part, names));
                }
                out + ")"
            }
            Ty::Array(element, size) => format!("[{}; {}]", self.name(*element, names), self.name(*size, names)),
            Ty::Slice { element, mutable } => {
                format!("&{}[{}]", if *mutable { "mut " } else { "" }, self.name(*element, names))
            }
            Ty::View { element, rank, mutable, strided } => {
                let name = hir::view_name(*mutable, *strided);
                format!("{name}<{}, {rank}>", self.name(*element, names))
            }
            Ty::Shared { element, rank } => format!("Shared<{}, {rank}>", self.name(*element, names)),
            Ty::Pending => "Pending".to_string(),
            Ty::Group(size) => format!("Group<{}>", self.name(*size, names)),
            Ty::Reference { to, mutable } => {
                format!("&{}{}", if *mutable { "mut " } else { "" }, self.name(*to, names))
            }
            Ty::Option(inner) => format!("Option<{}>", self.name(*inner, names)),
            Ty::Function { parameters, returns, .. } | Ty::Closure { parameters, returns, .. } => {
                let parameters: Vec<_> = parameters.iter().map(|p| self.name(*p, names)).collect();
                let returns = match self.get(*returns) {
                    Ty::Unit => String::new(),
                    _ => format!(" -> {}", self.name(*returns, names)),
                };
                let of = match self.get(id) {
                    Ty::Function { calls, .. } => *calls,
                    _ => CallTrait::Fn,
                };
                format!("impl {}({}){returns}", of.name(), parameters.join(", "))
            }
            Ty::Size(hir::Size::Known(n)) => n.to_string(),
            Ty::Size(hir::Size::Value(n)) => n.to_string(),
            Ty::Size(hir::Size::Generic(i)) | Ty::Parameter(i) => generics[*i as usize].name.clone(),
            Ty::Projection { of, of_trait, item } => {
                let item = &names.items.trait_of(*of_trait).items[*item as usize];
                format!("{}::{}", self.name(*of, names), item.name)
            }
            Ty::Struct(_, arguments) | Ty::Enum(_, arguments) => {
                let name = match self.get(id) {
                    Ty::Enum(of, _) => names.items.enums[of.0 as usize].name.clone(),
                    Ty::Struct(of, _) => names.items.struct_of(*of).name.clone(),
                    _ => String::new(),
                };
                let arguments: Vec<_> = arguments.iter().map(|a| self.name(*a, names)).collect();
                if arguments.is_empty() { name } else { format!("{name}<{}>", arguments.join(", ")) }
            }
            Ty::Item(_) => "a device function".into(),
        }
    }
}

/// The finished types of a function, each once, made from a [`TypeTable`].
pub(super) struct Finished {
    /// The types, as the HIR names them.
    pub types: Vec<hir::Type>,
    map: Vec<Option<hir::TypeId>>,
    /// The types that stayed unknown.
    pub unknown: Vec<TypeIndex>,
}

impl Finished {
    pub(super) fn new(table: &TypeTable) -> Finished {
        Finished { types: Vec::new(), map: vec![None; table.entries.len()], unknown: Vec::new() }
    }

    /// Returns the finished type of `id`. Literals that nothing constrains are `i32` and `f64`, as
    /// in Rust.
    pub(super) fn get(&mut self, table: &TypeTable, id: TypeIndex) -> hir::TypeId {
        let id = table.root(id);
        if let Some(done) = self.map[id.0 as usize] {
            return done;
        }
        let ty = match table.get(id).clone() {
            Ty::Unknown(UnknownKind::Integer) => hir::Type::Scalar(Scalar::I32),
            Ty::Unknown(UnknownKind::Float) => hir::Type::Scalar(Scalar::F64),
            Ty::Unknown(_) | Ty::Same(_) => {
                self.unknown.push(id);
                hir::Type::Unit
            }
            Ty::Unit | Ty::Wrong => hir::Type::Unit,
            Ty::Never => hir::Type::Never,
            Ty::Scalar(s) => hir::Type::Scalar(s),
            Ty::Tuple(parts) => hir::Type::Tuple(parts.into_iter().map(|p| self.get(table, p)).collect()),
            Ty::Array(element, size) => {
                let element = self.get(table, element);
                match table.get(size) {
                    Ty::Size(size) => hir::Type::Array(element, *size),
                    _ => {
                        self.unknown.push(id);
                        hir::Type::Unit
                    }
                }
            }
            Ty::Slice { element, mutable } => hir::Type::Slice { element: self.get(table, element), mutable },
            Ty::View { element, rank, mutable, strided } => {
                hir::Type::View { element: self.get(table, element), rank, mutable, strided }
            }
            Ty::Shared { element, rank } => hir::Type::Shared { element: self.get(table, element), rank },
            Ty::Pending => hir::Type::Pending,
            Ty::Group(size) => match table.get(size) {
                Ty::Size(size) => hir::Type::Group(*size),
                _ => {
                    self.unknown.push(id);
                    hir::Type::Unit
                }
            },
            Ty::Reference { to, mutable } => hir::Type::Reference { to: self.get(table, to), mutable },
            Ty::Option(inner) => hir::Type::Option(self.get(table, inner)),
            Ty::Function { parameters, returns, calls } => hir::Type::Function {
                parameters: parameters.into_iter().map(|p| self.get(table, p)).collect(),
                returns: self.get(table, returns),
                calls,
            },
            Ty::Closure { parameters, returns, .. } => hir::Type::Function {
                parameters: parameters.into_iter().map(|p| self.get(table, p)).collect(),
                returns: self.get(table, returns),
                calls: CallTrait::Fn,
            },
            Ty::Size(size) => hir::Type::Constant(size),
            Ty::Parameter(i) => hir::Type::Parameter(i),
            Ty::Projection { of, of_trait, item } => hir::Type::Projection { of: self.get(table, of), of_trait, item },
            Ty::Struct(id, arguments) => {
                hir::Type::Struct(id, arguments.into_iter().map(|a| self.get(table, a)).collect())
            }
            Ty::Enum(id, arguments) => hir::Type::Enum(id, arguments.into_iter().map(|a| self.get(table, a)).collect()),
            Ty::Item(id) => hir::Type::Item(id),
        };
        let done = match self.types.iter().position(|t| *t == ty) {
            Some(i) => hir::TypeId(i as u32),
            None => {
                self.types.push(ty);
                hir::TypeId(self.types.len() as u32 - 1)
            }
        };
        self.map[id.0 as usize] = Some(done);
        done
    }
}
