//! HIR as bytes: the form that expansions embed, and that device functions pass to macros of other
//! crates.
//!
//! A header of ten bytes holds the format version (`u16`) and a checksum of the rest (`u64`), both
//! little-endian. The rest is [postcard](https://postcard.jamesmunns.com/wire-format). The checksum
//! is verified before anything is decoded, so corrupt bytes are rejected: postcard alone would
//! follow a corrupt length or deeply nested expressions. Decoding also verifies that all indices
//! are valid.

use super::{
    DeviceLibrary, ExprKind, Function, FunctionId, Items, Program, Root, TraitId, TraitItemKind, Type, TypeId, visit,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// The format that this compiler writes and reads. Increment it with every change of a type in
/// [`hir`](super) or of a type that such a type contains.
pub const VERSION: u16 = 19;

const HEADER_BYTES: usize = 10;

/// Error returned when bytes are not HIR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Fewer bytes than the header; the number of bytes.
    Short(usize),
    /// Another format version.
    Version(u16),
    /// A wrong checksum.
    Checksum {
        /// The checksum in the header.
        written: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// A valid checksum, but the bytes encode another kind of item, such as a library instead of a
    /// kernel.
    Shape,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Short(n) => {
                write!(f, "{n} bytes are too few for a kernel's HIR, whose header has {HEADER_BYTES} bytes")
            }
            Error::Version(v) => write!(
                f,
                "found HIR of format {v}, this compiler reads format {VERSION}: build both crates with the same version of kernel-dsl"
            ),
            Error::Checksum { written, found } => {
                write!(
                    f,
                    "corrupt HIR: expected checksum {written:016x}, found {found:016x}; rebuild the crate that it comes from"
                )
            }
            Error::Shape => {
                f.write_str("wrong kind of HIR: a device function where a kernel is needed, or the reverse")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Encodes a kernel.
pub fn encode_program(program: &Program) -> Vec<u8> {
    encode(program)
}

/// Encodes a device item.
pub fn encode_library(library: &DeviceLibrary) -> Vec<u8> {
    encode(library)
}

/// Decodes a kernel.
pub fn program(bytes: &[u8]) -> Result<Program, Error> {
    let mut program: Program = decode(bytes)?;
    let kernel = !program.functions.is_empty();
    if kernel && closed(&mut program.functions, &program.items, None) { Ok(program) } else { Err(Error::Shape) }
}

/// Decodes a device item.
pub fn library(bytes: &[u8]) -> Result<DeviceLibrary, Error> {
    let mut library: DeviceLibrary = decode(bytes)?;
    if closed(&mut library.functions, &library.items, library.root) { Ok(library) } else { Err(Error::Shape) }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Every HIR type is a struct, enum, vector, string or number, which postcard can write to
    // memory.
    let body = postcard::to_stdvec(value).expect("postcard can serialize every type of HIR");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(checksum(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Err(Error::Short(bytes.len())) };
    let [v0, v1, sum @ ..] = *header;
    let version = u16::from_le_bytes([v0, v1]);
    if version != VERSION {
        return Err(Error::Version(version));
    }
    let (written, found) = (u64::from_le_bytes(sum), checksum(body));
    if written != found {
        return Err(Error::Checksum { written, found });
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(Error::Shape),
    }
}

/// Returns whether every index is valid.
fn closed(functions: &mut [Function], items: &Items, root: Option<Root>) -> bool {
    let count = functions.len();
    let function = |id: FunctionId| (id.0 as usize) < count;
    let has_trait_item =
        |id: TraitId, item: u32| items.traits.get(id.0 as usize).is_some_and(|t| (item as usize) < t.items.len());
    let types = |types: &[Type]| {
        let ty = |id: &TypeId| (id.0 as usize) < types.len();
        types.iter().all(|t| match t {
            Type::Struct(id, arguments) => (id.0 as usize) < items.structs.len() && arguments.iter().all(ty),
            Type::Enum(id, arguments) => (id.0 as usize) < items.enums.len() && arguments.iter().all(ty),
            Type::Item(id) => function(*id),
            Type::Projection { of, of_trait, item } => ty(of) && has_trait_item(*of_trait, *item),
            Type::Tuple(parts) => parts.iter().all(ty),
            Type::Array(id, _) | Type::Option(id) => ty(id),
            Type::Slice { element, .. } | Type::View { element, .. } | Type::Shared { element, .. } => ty(element),
            Type::Reference { to, .. } => ty(to),
            Type::Function { parameters, returns, .. } => parameters.iter().chain([returns]).all(ty),
            Type::Unit
            | Type::Never
            | Type::Pending
            | Type::Scalar(_)
            | Type::Group(_)
            | Type::Constant(_)
            | Type::Parameter(_) => true,
        })
    };
    let mut inside = match root {
        Some(Root::Function(id) | Root::Constant(id)) => function(id),
        Some(Root::Struct(id) | Root::Alias(id)) => (id.0 as usize) < items.structs.len(),
        Some(Root::Enum(id)) => (id.0 as usize) < items.enums.len(),
        Some(Root::Trait(id)) => (id.0 as usize) < items.traits.len(),
        None => true,
    };
    inside &=
        items.structs.iter().all(|s| types(&s.types) && s.fields.iter().all(|f| (f.ty.0 as usize) < s.types.len()));
    inside &= items.enums.iter().filter_map(|e| e.data).all(|id| (id.0 as usize) < items.structs.len());
    inside &= items.traits.iter().flat_map(|t| &t.items).all(|item| match item.kind {
        TraitItemKind::Type(_) => true,
        TraitItemKind::Constant { function: id, .. } | TraitItemKind::Function { function: id, .. } => function(id),
    });
    inside &= items.impls.iter().all(|i| {
        let named = |id: &TypeId| (id.0 as usize) < i.types.len();
        types(&i.types)
            && named(&i.for_type)
            && i.associated.iter().all(|(_, ty)| named(ty))
            && i.functions.iter().all(|(_, f)| function(f.function()))
            && i.of_trait.is_none_or(|t| (t.0 as usize) < items.traits.len())
    });
    for f in functions {
        inside &= types(&f.types) && (f.returns.0 as usize) < f.types.len().max(1);
        visit::block(&mut f.body, &mut |e| match &e.kind {
            ExprKind::Call { function: id, .. } | ExprKind::Function { function: id, .. } => inside &= function(*id),
            ExprKind::CallMethod { of_trait, item, .. } | ExprKind::MethodValue { of_trait, item, .. } => {
                inside &= has_trait_item(*of_trait, *item);
            }
            _ => {}
        });
    }
    inside
}

/// Computes the 64-bit FNV-1a hash (Fowler, Noll, Vo). Each step is a bijection of the state, so
/// any single corrupt byte changes the result.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::*;
    use crate::source::{KernelSource, Span};
    use crate::target::Target;

    fn function(name: &str, body: Block) -> Function {
        Function {
            name: name.into(),
            hash: 7,
            source: KernelSource {
                name: name.into(),
                file: "a/src/lib.rs".into(),
                line: 3,
                text: vec![format!("fn {name}() {{}}")],
            },
            generics: vec![],
            types: vec![Type::Unit],
            locals: vec![],
            parameters: 0,
            returns: TypeId(0),
            constant: None,
            private_to: 0,
            allowances: vec![],
            body,
        }
    }

    fn expr(kind: ExprKind) -> Expr {
        Expr { kind, ty: TypeId(0), span: Span::default() }
    }

    fn call(function: u32) -> Block {
        let call = ExprKind::Call { function: FunctionId(function), generics: vec![], arguments: vec![] };
        Block { statements: vec![Statement::Expr(expr(call))], value: None }
    }

    fn library_of(functions: Vec<Function>) -> DeviceLibrary {
        DeviceLibrary { root: Some(Root::Function(FunctionId(0))), functions, items: Items::default() }
    }

    fn sample() -> Program {
        let launch = LaunchContract {
            block: vec![BlockExtent::Computed(expr(ExprKind::Literal(256)))],
            grid: vec![expr(ExprKind::Literal(1))],
            requires: vec![],
            min_blocks: Some(expr(ExprKind::Literal(2))),
            max_registers: None,
            contract: false,
            assertions: false,
            cooperative: false,
            target: Target::SM_61,
            instances: vec![DeclaredInstance {
                name: Some("tile".into()),
                arguments: Instance(vec![Constant::Usize(16), Constant::Bool(true)]),
            }],
            tolerances: vec![],
            outputs: vec![],
        };
        Program {
            launch,
            functions: vec![function("k", call(1)), function("f", Block::default())],
            items: Items::default(),
        }
    }

    #[test]
    fn written_data_is_read_back() {
        let program = sample();
        assert_eq!(super::program(&encode_program(&program)), Ok(program));
        let library = library_of(vec![function("f", Block::default())]);
        assert_eq!(super::library(&encode_library(&library)), Ok(library));
    }

    #[test]
    fn an_error_names_the_other_version() {
        let mut bytes = encode_program(&sample());
        bytes[0] = 255;
        assert_eq!(program(&bytes), Err(Error::Version(255)));
        let message = format!("format 255, this compiler reads format {VERSION}");
        assert!(Error::Version(255).to_string().contains(&message));
    }

    #[test]
    fn every_damaged_byte_is_detected() {
        let good = encode_program(&sample());
        for i in 0..good.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[i] ^= flip;
                assert!(program(&bytes).is_err(), "byte {i} ^ {flip:#x}");
            }
            assert!(program(&good[..i]).is_err(), "cut at {i}");
        }
        assert!(program(&[good.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn a_deep_nest_with_a_wrong_checksum_is_not_followed() {
        let mut bytes = encode_program(&sample());
        bytes.extend(std::iter::repeat_n(2, 10_000_000));
        assert!(matches!(program(&bytes), Err(Error::Checksum { .. })));
    }

    #[test]
    fn a_library_is_not_a_program() {
        let library = library_of(vec![function("f", Block::default())]);
        assert_eq!(program(&encode_library(&library)), Err(Error::Shape));
    }

    #[test]
    fn a_call_of_a_missing_function_is_refused() {
        let library = library_of(vec![function("f", call(1))]);
        assert_eq!(super::library(&encode_library(&library)), Err(Error::Shape));
        assert_eq!(super::library(&encode_library(&library_of(vec![]))), Err(Error::Shape));
    }
}
