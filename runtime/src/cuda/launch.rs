//! Launches made ready: checked once, submitted as often as one likes.

use super::lane::{Lane, Lanes, State};
use super::module::Module;
use super::operation::Operation;
use crate::Result;
use crate::contract::Approved;
use crate::stream::Used;
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
pub(crate) struct Ready<'a> {
    kernel: Loaded,
    instance: Arc<str>,
    shape: Shape,
    shared: u32,
    /// The parameters, the record's address last where there is one.
    values: Box<[u64]>,
    /// To each of `values`.
    pointers: Box<[*mut c_void]>,
    used: Used<'a>,
}

impl<'a> Ready<'a> {
    /// A launch of `kernel`, the instance that the arguments were approved for.
    pub(super) fn new(kernel: Loaded, instance: String, approved: &Approved<'_, 'a>) -> Result<Ready<'a>> {
        let shared = approved.shared_bytes(&instance, kernel.module().shared())?;
        let record = matches!(kernel, Loaded::Checked(..)).then_some(0);
        let mut values: Box<[u64]> = approved.parameters().into_iter().chain(record).collect();
        let pointers = values.iter_mut().map(|value| ptr::from_mut(value).cast()).collect();
        Ok(Ready {
            kernel,
            instance: instance.into(),
            shape: approved.shape(),
            shared,
            values,
            pointers,
            used: approved.used(),
        })
    }

    /// Submits it. `state` is the lane's.
    ///
    /// # Safety
    /// For its arguments the kernel is free of out-of-bounds accesses and races, unless it is the checked form; the memory of the arguments
    /// lives.
    pub(super) unsafe fn submit(&mut self, lanes: &Lanes, lane: &Lane, state: &mut State) -> Result<()> {
        if let (Loaded::Checked(_, form), Some(record)) = (&self.kernel, self.values.last_mut()) {
            if state.records.are_to_be_made() {
                lanes.settle()?;
            }
            *record = lane.next_record(state, form)?;
        }
        let Ready { kernel, instance, shape, shared, pointers, used, .. } = self;
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        lane.note(instance, *shape);
        let submitted = lanes.submit_in(
            lane,
            state,
            used,
            Operation::Launch { instance, shape: *shape, shared: *shared },
            // SAFETY: there is a pointer for each parameter of the entry, to at least as many bytes as the parameter has, which the
            // driver copies; the rest by the caller's promise.
            |driver, stream| unsafe {
                let (function, parameters) = (kernel.module().function(), pointers.as_mut_ptr());
                (driver.launch)(function, gx, gy, gz, bx, by, bz, *shared, stream, parameters, ptr::null_mut())
            },
        );
        if submitted.is_err() && matches!(kernel, Loaded::Checked(..)) {
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
