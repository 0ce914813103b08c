//! Rejects kernels that cannot be launched. The launch's contract checks the block size, which is
//! known before lowering, and the layout of shared memory checks its size.

use crate::error::Error;
use crate::ir::{Kernel, Parameter, Role};

/// Maximum size of an entry's parameters in bytes, on every target.
const MAX_PARAMETER_BYTES: u32 = 4096;
/// Bytes that the checked form needs for the address of its record.
const RECORD_BYTES: u32 = 8;

/// Returns an error for each limit that the kernel exceeds.
pub(super) fn exceeded(kernel: &Kernel) -> Vec<Error> {
    let bytes =
        kernel.parameters.iter().map(bytes).fold(0u32, |sum, bytes| sum.next_multiple_of(bytes).saturating_add(bytes));
    let room = MAX_PARAMETER_BYTES - RECORD_BYTES;
    if bytes <= room {
        return Vec::new();
    }
    let error = Error::without_span(format!(
        "the parameters of `{}` take {bytes} bytes; the limit is {room} bytes",
        kernel.instance
    ));
    vec![error.help("pass the numbers in a slice, which takes 12 bytes for any length")]
}

/// Returns the size of a parameter in bytes.
fn bytes(parameter: &Parameter) -> u32 {
    match parameter.role {
        Role::Value(scalar) => scalar.bytes(),
        Role::Address { .. } => 8,
        Role::Extent(_) | Role::Stride(_) => 4,
    }
}
