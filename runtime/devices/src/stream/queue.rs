//! The queue behind a stream: a driver's stream, or the CPU, which runs each operation at once.

use crate::Result;
use crate::cpu;
use crate::cuda::{Cuda, CudaStream};
use crate::hazard::AccessSet;
use crate::uninit::HOST;
use std::sync::Arc;

/// An in-order queue of operations. On the CPU it tracks which memory is uninitialized ([`HOST`]).
/// Memory of zero bytes has address 0 and is never accessed.
#[derive(Clone)]
pub(crate) enum OperationQueue {
    Cpu,
    Cuda(Arc<Cuda>, Arc<CudaStream>),
}

impl OperationQueue {
    /// Sets all bytes.
    ///
    /// # Safety
    /// The bytes belong to one allocation of the device, `used` records the write, and no other
    /// code uses them.
    pub unsafe fn fill(&self, used: &AccessSet<'_>, address: u64, bytes: usize, value: u8) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                OperationQueue::Cpu => {
                    HOST.stored(address, bytes);
                    cpu::fill(address, bytes, value);
                    Ok(())
                }
                OperationQueue::Cuda(cuda, stream) => cuda.fill(stream, used, address, bytes, value),
            }
        }
    }

    /// Copies from the host.
    ///
    /// # Safety
    /// `bytes` bytes at `address` belong to one allocation of the device, `used` records the write,
    /// and no other code uses them. `from` stays alive and unwritten until the operation is
    /// complete.
    pub unsafe fn write(&self, used: &AccessSet<'_>, address: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                OperationQueue::Cpu => {
                    HOST.stored(address, bytes);
                    cpu::copy(from.expose_provenance() as u64, address, bytes);
                    Ok(())
                }
                OperationQueue::Cuda(cuda, stream) => cuda.write(stream, used, address, from, bytes),
            }
        }
    }

    /// Copies to the host.
    ///
    /// # Safety
    /// `bytes` bytes at `address` belong to one allocation of the device, `used` records the read,
    /// and no other code writes them. `to` stays alive and otherwise unused until the operation is
    /// complete.
    pub unsafe fn read(&self, used: &AccessSet<'_>, address: u64, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                OperationQueue::Cpu => {
                    cpu::copy(address, to.expose_provenance() as u64, bytes);
                    Ok(())
                }
                OperationQueue::Cuda(cuda, stream) => cuda.read(stream, used, address, to, bytes),
            }
        }
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// `bytes` bytes at both addresses belong to allocations of the device and do not overlap.
    /// `used` records the read of the first and the write of the second. No other code writes the
    /// first or uses the second.
    pub unsafe fn copy(&self, used: &AccessSet<'_>, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                OperationQueue::Cpu => {
                    HOST.set_initialized_except(to, bytes, &HOST.of(from, bytes));
                    cpu::copy(from, to, bytes);
                    Ok(())
                }
                OperationQueue::Cuda(cuda, stream) => cuda.copy(stream, used, from, to, bytes),
            }
        }
    }

    /// Copies from another GPU to this one.
    ///
    /// # Safety
    /// As for `copy`, where `used` records the write, and `from` is memory of `other` whose
    /// accesses `read` tracks.
    pub unsafe fn copy_from(
        &self,
        used: &AccessSet<'_>,
        to: u64,
        from: (&Arc<Cuda>, &AccessSet<'_>, u64),
        bytes: usize,
    ) -> Result<()> {
        match self {
            OperationQueue::Cuda(cuda, stream) if bytes > 0 => {
                // SAFETY: by the caller's promise.
                unsafe { cuda.copy_from(stream, used, to, from, bytes) }
            }
            OperationQueue::Cuda(..) | OperationQueue::Cpu => Ok(()),
        }
    }

    /// Waits until all submitted work is complete, and returns the oldest violation or error of
    /// this work.
    pub fn wait(&self) -> Result<()> {
        match self {
            OperationQueue::Cpu => Ok(()),
            OperationQueue::Cuda(cuda, stream) => cuda.wait(stream),
        }
    }
}
