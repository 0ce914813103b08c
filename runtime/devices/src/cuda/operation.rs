//! Descriptions of a stream's operations, for errors and profiles.

use super::in_flight::shown;
use kernel_dsl::compiler::launch::LaunchShape;
use std::fmt;
use std::sync::Arc;

/// An operation of a stream.
#[derive(Clone, Copy)]
pub(crate) enum StreamOperation<'a> {
    /// A kernel, with bytes of dynamic shared memory.
    Launch { instance: &'a Arc<str>, shape: LaunchShape, shared: u32 },
    /// A copy from the host.
    Upload { bytes: usize, to: u64 },
    /// A copy to the host.
    Download { bytes: usize, from: u64 },
    /// A copy within the device.
    Copy { bytes: usize, from: u64, to: u64 },
    /// A replay of a graph.
    Replay { launches: usize },
    /// A fill with one byte.
    Fill { bytes: usize, at: u64 },
}

impl fmt::Display for StreamOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StreamOperation::Launch { instance, shape, shared: 0 } => {
                write!(f, "launching {instance} in {}", shown(shape))
            }
            StreamOperation::Launch { instance, shape, shared } => {
                write!(f, "launching {instance} in {}, with {shared} bytes of dynamic shared memory", shown(shape))
            }
            StreamOperation::Upload { bytes, to } => write!(f, "copying {bytes} bytes to the device at {to:#x}"),
            StreamOperation::Download { bytes, from } => {
                write!(f, "copying {bytes} bytes from the device at {from:#x}")
            }
            StreamOperation::Copy { bytes, from, to } => write!(f, "copying {bytes} bytes from {from:#x} to {to:#x}"),
            StreamOperation::Replay { launches } => write!(f, "replaying a graph of {launches} launches"),
            StreamOperation::Fill { bytes, at } => write!(f, "filling {bytes} bytes at {at:#x}"),
        }
    }
}
