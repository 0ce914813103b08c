//! Where operations are submitted: a lane of a GPU, or the CPU, which carries each out at once.

use crate::Result;
use crate::cpu;
use crate::cuda::{Cuda, CudaStream};
use crate::hazard::AccessSet;
use crate::uninit::HOST;
use std::sync::Arc;

/// Operations run in the order in which they come here. On the CPU it is kept what of its memory holds nothing yet ([`HOST`]). Memory of no bytes has address 0 and is never touched.
#[derive(Clone)]
pub(crate) enum Queue {
    Cpu,
    Cuda(Arc<Cuda>, Arc<CudaStream>),
}

impl Queue {
    /// Sets all bytes.
    ///
    /// # Safety
    /// They are of one allocation of the device, `used` says that they are written, and nobody else uses them.
    pub unsafe fn fill(&self, used: &AccessSet<'_>, address: u64, bytes: usize, value: u8) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                Queue::Cpu => {
                    HOST.stored(address, bytes);
                    cpu::fill(address, bytes, value);
                    Ok(())
                }
                Queue::Cuda(cuda, stream) => cuda.fill(stream, used, address, bytes, value),
            }
        }
    }

    /// Copies from the host.
    ///
    /// # Safety
    /// As many bytes at `address` are of one allocation of the device, `used` says that they are written, and nobody else uses
    /// them. `from` lives and nobody writes it until the operation is over.
    pub unsafe fn write(&self, used: &AccessSet<'_>, address: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                Queue::Cpu => {
                    HOST.stored(address, bytes);
                    cpu::copy(from.expose_provenance() as u64, address, bytes);
                    Ok(())
                }
                Queue::Cuda(cuda, stream) => cuda.write(stream, used, address, from, bytes),
            }
        }
    }

    /// Copies to the host.
    ///
    /// # Safety
    /// As many bytes at `address` are of one allocation of the device, `used` says that they are read, and nobody writes
    /// them. `to` lives and nobody else uses it until the operation is over.
    pub unsafe fn read(&self, used: &AccessSet<'_>, address: u64, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                Queue::Cpu => {
                    cpu::copy(address, to.expose_provenance() as u64, bytes);
                    Ok(())
                }
                Queue::Cuda(cuda, stream) => cuda.read(stream, used, address, to, bytes),
            }
        }
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// As many bytes at both addresses are of allocations of the device and do not overlap; `used` says that the first are read and the
    /// second written; nobody writes the first or uses the second.
    pub unsafe fn copy(&self, used: &AccessSet<'_>, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                Queue::Cpu => {
                    HOST.quiesce(to, bytes, &HOST.of(from, bytes));
                    cpu::copy(from, to, bytes);
                    Ok(())
                }
                Queue::Cuda(cuda, stream) => cuda.copy(stream, used, from, to, bytes),
            }
        }
    }

    /// Copies from another GPU to this one.
    ///
    /// # Safety
    /// As for `copy`, where `used` says that the second is written, and `from` is memory of `other`'s whose uses `read` are.
    pub unsafe fn copy_from(
        &self,
        used: &AccessSet<'_>,
        to: u64,
        from: (&Arc<Cuda>, &AccessSet<'_>, u64),
        bytes: usize,
    ) -> Result<()> {
        match self {
            Queue::Cuda(cuda, stream) if bytes > 0 => {
                // SAFETY: by the caller's promise.
                unsafe { cuda.copy_from(stream, used, to, from, bytes) }
            }
            Queue::Cuda(..) | Queue::Cpu => Ok(()),
        }
    }

    /// Waits until all that was submitted is over; the error is what was found meanwhile, the oldest first.
    pub fn wait(&self) -> Result<()> {
        match self {
            Queue::Cpu => Ok(()),
            Queue::Cuda(cuda, stream) => cuda.wait(stream),
        }
    }
}
