//! Element types: their names in NumPy, PyTorch and Rust, and the bits of Python's numbers.

use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns the element type with a type string of the array interface; `None` for one of another
/// library.
pub fn of_typestr(typestr: &str) -> Option<Scalar> {
    let code = typestr.strip_prefix(['<', '|', '='])?;
    Some(match code {
        "b1" | "u1" => Scalar::U8,
        "i1" => Scalar::I8,
        "i2" => Scalar::I16,
        "i4" => Scalar::I32,
        "i8" => Scalar::I64,
        "u2" => Scalar::U16,
        "u4" => Scalar::U32,
        "u8" => Scalar::U64,
        "f2" => Scalar::F16,
        "f4" => Scalar::F32,
        "f8" => Scalar::F64,
        _ => return None,
    })
}

/// Returns the error for an element type whose bytes are in the other order.
pub fn other_order(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "elements of the type {name} have their bytes in the other order: convert the array to the machine's order"
    ))
}

/// Returns whether the type is a float of any width.
pub fn is_float(scalar: Scalar) -> bool {
    scalar.is_float() || scalar.is_half()
}

/// Returns the type string of the array interface.
pub fn typestr(scalar: Scalar) -> String {
    match scalar {
        Scalar::I8 | Scalar::U8 => format!("|{}1", if scalar.is_signed() { 'i' } else { 'u' }),
        // Two bytes without a meaning in NumPy.
        Scalar::Bf16 => "<V2".to_string(),
        scalar if is_float(scalar) => format!("<f{}", scalar.bytes()),
        scalar => format!("<{}{}", if scalar.is_signed() { 'i' } else { 'u' }, scalar.bytes()),
    }
}

/// The NumPy names of the element types.
pub const NAMES: [(&str, Scalar); 12] = [
    ("float32", Scalar::F32),
    ("float16", Scalar::F16),
    ("bfloat16", Scalar::Bf16),
    ("float64", Scalar::F64),
    ("int8", Scalar::I8),
    ("int16", Scalar::I16),
    ("int32", Scalar::I32),
    ("int64", Scalar::I64),
    ("uint8", Scalar::U8),
    ("uint16", Scalar::U16),
    ("uint32", Scalar::U32),
    ("uint64", Scalar::U64),
];

/// Returns the number of an element type among [`NAMES`].
pub fn code_of(scalar: Scalar) -> u64 {
    NAMES.iter().position(|(_, known)| *known == scalar).map_or(u64::MAX, |at| at as u64)
}

/// Returns the element type with a name in NumPy, PyTorch or Rust: `float32`, `torch.float32`,
/// `f32`.
pub fn named(name: &str) -> PyResult<Scalar> {
    let plain = name.rsplit('.').next().unwrap_or(name);
    // NumPy and PyTorch have other names too.
    let other = |name: &str| match name {
        "half" => Some(Scalar::F16),
        "double" => Some(Scalar::F64),
        "b1" | "?" => None,
        code => of_typestr(&format!("<{code}")),
    };
    let numpy = NAMES.iter().find(|(known, _)| *known == plain).map(|(_, scalar)| *scalar).or_else(|| other(plain));
    let rust = || Scalar::from_name(plain).filter(|s| NAMES.iter().any(|(_, known)| known == s));
    numpy.or_else(rust).ok_or_else(|| {
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        PyTypeError::new_err(format!("no element type `{name}`; the types are {}", known.join(", ")))
    })
}

/// Returns the element type of a dtype: a name, a dtype of NumPy or PyTorch, or a type of NumPy.
pub fn dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(name) = dtype.extract::<String>() {
        return named(&name);
    }
    // The name of a dtype does not state the order of its bytes.
    if let Ok(order) = dtype.getattr("byteorder").and_then(|order| order.extract::<String>())
        && order == ">"
    {
        return Err(other_order(&dtype.str()?.to_string()));
    }
    for attribute in ["name", "__name__"] {
        if let Ok(name) = dtype.getattr(attribute).and_then(|name| name.extract::<String>()) {
            // Python's own types of numbers have 64 bits in NumPy and PyTorch.
            return match name.as_str() {
                "float" => Ok(Scalar::F64),
                "int" => Ok(Scalar::I64),
                name => named(name),
            };
        }
    }
    named(&dtype.str()?.to_string())
}

/// Returns the NumPy name of an element type.
pub fn name_of(scalar: Scalar) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == scalar).map_or(scalar.name(), |(name, _)| name)
}

/// Converts a Python number to the bits of a scalar, zero-extended.
pub fn number(value: &Bound<'_, PyAny>, scalar: Scalar, name: &str) -> PyResult<u64> {
    let wrong = |why: &str| PyTypeError::new_err(format!("argument `{name}`: expected {scalar}, {why}"));
    let kind = || value.get_type().name().map_or_else(|_| "an object".to_string(), |name| name.to_string());
    // Python has larger integers, and larger floats than `f32`.
    let out_of_range = || PyValueError::new_err(format!("argument `{name}`: {value} is out of range for {scalar}"));
    let other = |e: PyErr| match e.is_instance_of::<PyOverflowError>(value.py()) {
        true => out_of_range(),
        false => wrong(&format!("given {}", kind())),
    };
    if scalar == Scalar::Bool {
        // A truth value of None or of a text is not what a caller means.
        if value.is_none() || value.is_instance_of::<PyString>() {
            return Err(wrong(&format!("given {}", kind())));
        }
        let given = value.call_method0("__bool__").and_then(|b| b.extract::<bool>());
        return given.map(u64::from).map_err(|_| wrong(&format!("given {}", kind())));
    }
    if is_float(scalar) {
        let given: f64 = value.extract().map_err(other)?;
        let (bits, is_infinite) = match scalar {
            Scalar::F64 => (given.to_bits(), given.is_infinite()),
            Scalar::F16 => (u64::from(f16::from_f64(given).to_bits()), f16::from_f64(given).is_infinite()),
            Scalar::Bf16 => (u64::from(bf16::from_f64(given).to_bits()), bf16::from_f64(given).is_infinite()),
            _ => (u64::from((given as f32).to_bits()), (given as f32).is_infinite()),
        };
        return if is_infinite && given.is_finite() { Err(out_of_range()) } else { Ok(bits) };
    }
    let given: i128 = value.extract().map_err(other)?;
    let bits = if scalar == Scalar::Usize { 64 } else { scalar.bits() };
    let (least, most) = match scalar.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    if given < least || given > most {
        return Err(out_of_range());
    }
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    Ok(given as u64 & mask)
}
