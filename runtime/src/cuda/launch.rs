//! Launches made ready: checked once, submitted as often as one likes.

use super::lane::{Lane, Lanes, State};
use super::module::Module;
use crate::Result;
use crate::contract::Approved;
use crate::stream::Used;
use cudarc::driver::sys;
use kernel_dsl::compiler::launch::Shape;
use kernel_dsl::compiler::lower::checked::Checked;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A kernel loaded on a device.
pub(super) enum Loaded {
    /// Its own PTX.
    Bare(Arc<Module>),
    /// Its checked form, which takes the address of a record after the arguments, and what that reports mean.
    Checked(Arc<Module>, Arc<Checked>),
}

/// All that the driver is told of a launch.
pub(super) struct Launch {
    kernel: Loaded,
    instance: String,
    shape: Shape,
    shared: u32,
    /// The parameters, the record's address last where there is one.
    values: Box<[u64]>,
    /// To each of `values`.
    pointers: Box<[*mut c_void]>,
}

// SAFETY: the pointers are to memory of its own, which moves with it and is used through `&mut` only.
unsafe impl Send for Launch {}
// SAFETY: as above.
unsafe impl Sync for Launch {}

impl Launch {
    /// Of `kernel`, the instance that the arguments were approved for.
    pub fn new(kernel: Loaded, instance: String, approved: &Approved<'_, '_>) -> Result<Launch> {
        let shared = approved.shared_bytes(&instance, kernel.module().shared())?;
        let record = matches!(kernel, Loaded::Checked(..)).then_some(0);
        let mut values: Box<[u64]> = approved.parameters().into_iter().chain(record).collect();
        let pointers = values.iter_mut().map(|value| ptr::from_mut(value).cast()).collect();
        Ok(Launch { kernel, instance, shape: approved.shape(), shared, values, pointers })
    }

    /// What its record means, if it has one.
    pub fn checked(&self) -> Option<&Arc<Checked>> {
        match &self.kernel {
            Loaded::Bare(_) => None,
            Loaded::Checked(_, form) => Some(form),
        }
    }

    /// Has it write to the record there.
    pub fn set_record(&mut self, address: u64) {
        if let (Loaded::Checked(..), Some(record)) = (&self.kernel, self.values.last_mut()) {
            *record = address;
        }
    }

    /// As a graph takes it.
    pub fn node(&mut self) -> sys::CUDA_KERNEL_NODE_PARAMS_v1 {
        let ([gx, gy, gz], [bx, by, bz]) = (self.shape.grid, self.shape.block);
        sys::CUDA_KERNEL_NODE_PARAMS_v1 {
            func: self.kernel.module().function(),
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: self.shared,
            kernelParams: self.pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
        }
    }

    /// What it is, for errors.
    pub fn doing(&self) -> String {
        let ([gx, gy, gz], [bx, by, bz]) = (self.shape.grid, self.shape.block);
        format!("running {} in {gx} × {gy} × {gz} blocks of {bx} × {by} × {bz} threads", self.instance)
    }
}

/// A launch with the memory that it uses.
pub(crate) struct Ready<'a> {
    launch: Launch,
    used: Used<'a>,
}

impl<'a> Ready<'a> {
    pub(super) fn new(launch: Launch, approved: &Approved<'_, 'a>) -> Ready<'a> {
        Ready { launch, used: approved.used() }
    }

    /// Submits it. `state` is the lane's.
    ///
    /// # Safety
    /// For its arguments the kernel is free of out-of-bounds accesses and races, unless it is the checked form; the memory of the arguments
    /// lives.
    pub(super) unsafe fn submit(&mut self, lanes: &Lanes, lane: &Lane, state: &mut State) -> Result<()> {
        let Ready { launch, used } = self;
        let record = match launch.checked() {
            Some(form) => Some(lane.next_record(state, form)?),
            None => None,
        };
        record.into_iter().for_each(|address| launch.set_record(address));
        let (function, parameters) = (launch.kernel.module().function(), launch.pointers.as_mut_ptr());
        let ([gx, gy, gz], [bx, by, bz], shared) = (launch.shape.grid, launch.shape.block, launch.shared);
        let submitted = lanes.submit_in(
            lane,
            state,
            used,
            || launch.doing(),
            // SAFETY: there is a pointer for each parameter of the entry, to at least as many bytes as the parameter has, which the
            // driver copies; the rest by the caller's promise.
            |driver, stream| unsafe {
                (driver.launch)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, ptr::null_mut())
            },
        );
        if submitted.is_err() && record.is_some() {
            state.records.take_back();
        }
        submitted
    }
}

impl Loaded {
    fn module(&self) -> &Module {
        match self {
            Loaded::Bare(module) | Loaded::Checked(module, _) => module,
        }
    }
}
