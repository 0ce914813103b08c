//! DLPack: arrays of other libraries by capsule, in both directions, and by a library's table of C
//! functions.
//!
//! The structs are those of `dlpack.h`, versions 0.8, 1.0 and 1.3.

use crate::scalar::is_float;
use kernel_dsl::compiler::Scalar;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The capsule's name before and after a consumer has taken the array.
const LEGACY: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];
/// The version of the format that is produced.
const VERSION: DlpackVersion = DlpackVersion { major: 1, minor: 0 };
const READ_ONLY: u64 = 1;

/// The codes of device types: `DLDeviceType`.
pub const CPU: i32 = 1;
pub const CUDA: i32 = 2;
pub const CUDA_HOST: i32 = 3;
pub const CUDA_MANAGED: i32 = 13;

/// The code of truth values.
const BOOL: u8 = 6;

/// `DLPackVersion`
#[repr(C)]
#[derive(Clone, Copy)]
struct DlpackVersion {
    major: u32,
    minor: u32,
}

/// `DLDataType`
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`
#[repr(C)]
struct Legacy {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
struct Versioned {
    version: DlpackVersion,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

/// An array taken from its producer, whose deleter is called at the end.
pub struct Managed {
    /// The legacy or the versioned form.
    form: CapsuleForm,
}

/// The two forms of an array in a capsule.
enum CapsuleForm {
    Legacy(*mut Legacy),
    Versioned(*mut Versioned),
}

// SAFETY: the format allows any thread to call the deleter; it is called with the GIL held.
unsafe impl Send for Managed {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Managed {}

/// The description of an array.
pub struct Described {
    pub address: u64,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Vec<isize>,
    pub read_only: bool,
}

impl Managed {
    /// Takes the array out of a capsule.
    pub fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Managed> {
        let taken = |[name, used]: [&CStr; 2]| {
            // SAFETY: the object is alive; a pointer is returned only from a capsule of this name,
            // and the name, which is static, marks it as taken.
            unsafe {
                if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                    return Ok(None);
                }
                let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
                if pointer.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                    return Err(PyErr::fetch(capsule.py()));
                }
                Ok(Some(pointer))
            }
        };
        if let Some(pointer) = taken(VERSIONED)? {
            let managed = Managed { form: CapsuleForm::Versioned(pointer.cast()) };
            // SAFETY: the capsule's name states the type; the version comes first in every version.
            let version = unsafe { (*pointer.cast::<Versioned>()).version };
            if version.major != VERSION.major {
                return Err(PyBufferError::new_err(format!(
                    "the array is in DLPack version {}.{}; this package reads version 1 and earlier",
                    version.major, version.minor
                )));
            }
            return Ok(managed);
        }
        match taken(LEGACY)? {
            Some(pointer) => Ok(Managed { form: CapsuleForm::Legacy(pointer.cast()) }),
            None => Err(PyTypeError::new_err("`__dlpack__` returned no DLPack capsule, or one that was already used")),
        }
    }

    /// Describes the array.
    pub fn described(&self) -> PyResult<Described> {
        // SAFETY: the array was taken, and is alive until the deleter is called.
        let (tensor, read_only) = unsafe {
            match self.form {
                CapsuleForm::Legacy(pointer) => ((*pointer).tensor, false),
                CapsuleForm::Versioned(pointer) => ((*pointer).tensor, (*pointer).flags & READ_ONLY != 0),
            }
        };
        // SAFETY: the array is alive, and so are its shape and strides.
        unsafe { tensor.described(read_only) }
    }
}

impl Tensor {
    /// Describes the array.
    ///
    /// # Safety
    /// Shape and strides, where they are not null, have `ndim` numbers.
    unsafe fn described(&self, read_only: bool) -> PyResult<Described> {
        let rank = usize::try_from(self.ndim).map_err(|_| PyBufferError::new_err("a DLPack array of negative rank"))?;
        let numbers = |start: *mut i64| -> Option<&[i64]> {
            // SAFETY: the caller promises that there are `ndim` numbers.
            (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, rank) })
        };
        let shape = if rank == 0 { &[] } else { numbers(self.shape).unwrap_or_default() };
        let shape: Vec<usize> = shape.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        let strides = match numbers(self.strides) {
            Some(strides) if rank > 0 => strides.iter().map(|n| *n as isize).collect(),
            _ => contiguous(&shape),
        };
        Ok(Described {
            address: (self.data.expose_provenance() as u64).wrapping_add(self.byte_offset),
            scalar: scalar(self.dtype)?,
            shape,
            strides,
            read_only,
        })
    }
}

/// The table of C functions through which a library exchanges its arrays.
#[repr(C)]
struct ExchangeTable {
    version: DlpackVersion,
    /// The table of an earlier version.
    previous: *const ExchangeTable,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    managed_to_object: *const c_void,
    /// Describes an array; the description is valid until control returns to its owner.
    describe: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// The functions of a library that describe its arrays in less time than a capsule or attributes.
#[derive(Clone, Copy)]
pub struct Exchange {
    describe: unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int,
    current_stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

impl Exchange {
    /// Returns the functions of a library by the type of its arrays, if the library has them.
    pub fn of(of: &Bound<'_, PyAny>) -> Option<Exchange> {
        let capsule = of.getattr("__dlpack_c_exchange_api__").ok()?;
        let name = c"dlpack_exchange_api";
        // SAFETY: the object is alive; a pointer is returned only from a capsule of this name.
        let table = unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return None;
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr())
        };
        let mut table = NonNull::new(table.cast::<ExchangeTable>())?;
        loop {
            // SAFETY: by the format, a table lives as long as the process, and its version and the
            // earlier table come first in every version.
            let (version, previous) = unsafe { ((*table.as_ptr()).version, (*table.as_ptr()).previous) };
            if version.major == VERSION.major {
                break;
            }
            table = NonNull::new(previous.cast_mut())?;
        }
        // SAFETY: as above; the major version states the fields.
        let ExchangeTable { describe, current_stream, .. } = unsafe { table.as_ref() };
        Some(Exchange { describe: (*describe)?, current_stream: (*current_stream)? })
    }

    /// Describes an array, and returns the type and the number of its device.
    ///
    /// # Errors
    /// If the array has no plain memory, or elements of an unsupported type.
    ///
    /// # Safety
    /// The object is an array of the library whose functions these are.
    pub unsafe fn describe(&self, object: &Bound<'_, PyAny>) -> PyResult<(Described, [i32; 2])> {
        let mut tensor = MaybeUninit::uninit();
        // SAFETY: the object is alive and of the library's type, as the caller promises.
        if unsafe { (self.describe)(object.as_ptr().cast(), tensor.as_mut_ptr()) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the function has succeeded, so it has written the description. No Python code has
        // run since then.
        let (tensor, described) = unsafe {
            let tensor: Tensor = tensor.assume_init();
            (tensor, tensor.described(false)?)
        };
        if tensor.dtype.code == BOOL {
            return Err(PyTypeError::new_err("truth values are described by their attributes"));
        }
        Ok((described, [tensor.device_type, tensor.device_id]))
    }

    /// Returns the handle of the current stream of a GPU.
    pub fn current_stream(&self, py: Python<'_>, ordinal: usize) -> PyResult<usize> {
        let mut stream = ptr::null_mut();
        // SAFETY: the function writes a handle.
        if unsafe { (self.current_stream)(CUDA, ordinal as i32, &raw mut stream) } != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(stream.expose_provenance())
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // Without an interpreter, the process ends and frees no memory.
        let _ = Python::try_attach(|_| {
            // SAFETY: the array was taken and is deleted once.
            unsafe {
                match self.form {
                    CapsuleForm::Legacy(pointer) => {
                        if let Some(deleter) = (*pointer).deleter {
                            deleter(pointer);
                        }
                    }
                    CapsuleForm::Versioned(pointer) => {
                        if let Some(deleter) = (*pointer).deleter {
                            deleter(pointer);
                        }
                    }
                }
            }
        });
    }
}

/// Returns the strides, in elements, of a row-major array.
pub fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].saturating_mul(shape[d + 1].max(1) as isize);
    }
    strides
}

fn scalar(DataType { code, bits, lanes }: DataType) -> PyResult<Scalar> {
    let found = match (code, bits) {
        _ if lanes != 1 => None,
        (0, 8) => Some(Scalar::I8),
        (0, 16) => Some(Scalar::I16),
        (0, 32) => Some(Scalar::I32),
        (0, 64) => Some(Scalar::I64),
        (1 | BOOL, 8) => Some(Scalar::U8),
        (1, 16) => Some(Scalar::U16),
        (1, 32) => Some(Scalar::U32),
        (1, 64) => Some(Scalar::U64),
        (2, 16) => Some(Scalar::F16),
        (2, 32) => Some(Scalar::F32),
        (2, 64) => Some(Scalar::F64),
        (4, 16) => Some(Scalar::Bf16),
        _ => None,
    };
    found.ok_or_else(|| {
        PyTypeError::new_err(format!("no element type for DLPack code {code} with {bits} bits and {lanes} lanes"))
    })
}

fn data_type(scalar: Scalar) -> DataType {
    let code = match scalar {
        Scalar::Bf16 => 4,
        s if is_float(s) => 2,
        s if s.is_signed() => 0,
        _ => 1,
    };
    DataType { code, bits: scalar.bits() as u8, lanes: 1 }
}

/// The owner and the extents of a produced array.
struct ProducedArray {
    _owner: Py<PyAny>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// Makes a capsule of a row-major array that `owner` keeps alive. Only the versioned form can state
/// that an array is read-only.
pub fn produce(
    py: Python<'_>,
    owner: Py<PyAny>,
    (address, scalar, shape): (u64, Scalar, &[usize]),
    (device_type, device_id): (i32, i32),
    (versioned, writable): (bool, bool),
) -> PyResult<Py<PyAny>> {
    if !versioned && !writable {
        return Err(PyBufferError::new_err(
            "the array is read-only, which DLPack before version 1.0 cannot state: copy the array, or ask for \
             max_version=(1, 0)",
        ));
    }
    let strides = contiguous(shape).into_iter().map(|n| n as i64).collect();
    let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let mut produced = Box::new(ProducedArray { _owner: owner, shape, strides });
    let tensor = Tensor {
        data: ptr::with_exposed_provenance_mut(address as usize),
        device_type,
        device_id,
        ndim: produced.shape.len() as i32,
        dtype: data_type(scalar),
        shape: produced.shape.as_mut_ptr(),
        strides: produced.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(produced).cast();
    let (pointer, name, destructor): (*mut c_void, _, unsafe extern "C" fn(*mut ffi::PyObject)) = if versioned {
        let flags = if writable { 0 } else { READ_ONLY };
        let managed = Versioned { version: VERSION, context, deleter: Some(delete_versioned), flags, tensor };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED[0], destroy_versioned)
    } else {
        let managed = Legacy { tensor, context, deleter: Some(delete_legacy) };
        (Box::into_raw(Box::new(managed)).cast(), LEGACY[0], destroy_legacy)
    };
    // SAFETY: the pointer is not null, the name is static, and the destructor fits the name.
    let capsule =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor))) };
    capsule.map(Bound::unbind)
}

/// Frees an array of the legacy form and its owner.
///
/// # Safety
/// `managed` was made by [`produce`], and is deleted once.
unsafe extern "C" fn delete_legacy(managed: *mut Legacy) {
    // SAFETY: by the caller's promise both come from boxes. A consumer may call without the GIL. At
    // the end of the process there is no interpreter, and no memory is freed.
    let _ = Python::try_attach(|_| unsafe {
        drop((Box::from_raw((*managed).context.cast::<ProducedArray>()), Box::from_raw(managed)))
    });
}

/// Frees an array of the versioned form and its owner.
///
/// # Safety
/// `managed` is as `delete_legacy` requires.
unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: as above.
    let _ = Python::try_attach(|_| unsafe {
        drop((Box::from_raw((*managed).context.cast::<ProducedArray>()), Box::from_raw(managed)))
    });
}

/// Frees the array of a capsule of the legacy form, unless a consumer has taken the array.
///
/// # Safety
/// Python calls it with a capsule of [`produce`] at the end of its life.
unsafe extern "C" fn destroy_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has this name was not taken, so no consumer deletes its array.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY[0].as_ptr()) != 0 {
            delete_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY[0].as_ptr()).cast());
        }
    }
}

/// Frees the array of a capsule of the versioned form, unless a consumer has taken the array.
///
/// # Safety
/// `capsule` is as `destroy_legacy` requires.
unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED[0].as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED[0].as_ptr()).cast());
        }
    }
}
