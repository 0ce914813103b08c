//! Prepared launches: checked once and submitted many times.

use super::context::Context;
use super::driver::{Cooperative, Driver};
use super::driver_error::DriverStatus;
use super::module::LoadedEntry;
use super::operation::StreamOperation;
use super::stream::{CudaStream, StreamTable, SubmissionState};
use crate::Result;
use crate::contract::ValidatedArgs;
use crate::hazard::AccessSet;
use cudarc::driver::sys;
use kernel_dsl::compiler::launch::LaunchShape;
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A kernel loaded on a device.
pub(super) enum LoadedKernel {
    /// The kernel's own PTX.
    Unchecked(Arc<LoadedEntry>),
    /// The checked form, which takes the address of a record after the arguments, and the meaning
    /// of its record.
    Checked(Arc<LoadedEntry>, Arc<CheckedKernel>),
}

/// A pointer to each parameter of a launch. A launch with more than 64 parameters allocates.
pub(super) type ParameterPointers = SmallVec<[*mut c_void; 64]>;

/// The driver's description of a launch.
pub(crate) struct DriverLaunch {
    kernel: LoadedKernel,
    shape: LaunchShape,
    /// Whether all blocks are resident at once.
    cooperative: bool,
    shared: u32,
    /// The parameters; the last is the record's address, if there is a record.
    values: Vec<u64>,
}

impl DriverLaunch {
    /// Makes a launch of `kernel`, the instance for which the arguments were validated. A
    /// cooperative launch has no more blocks than the device holds at once.
    pub(super) fn new(
        context: &Context,
        kernel: LoadedKernel,
        validated: &ValidatedArgs<'_, '_>,
    ) -> Result<DriverLaunch> {
        let shared = validated.shared_bytes(kernel.module().instance(), kernel.module().shared())?;
        let mut values = validated.parameters();
        if let LoadedKernel::Checked(..) = kernel {
            values.push(0);
        }
        let (shape, cooperative) = (validated.shape(), validated.is_cooperative());
        let launch = DriverLaunch { kernel, shape, cooperative, shared, values };
        if cooperative {
            context.driver.cooperative()?;
            let (each, all) = (launch.residency(context)?.blocks, context.info.multiprocessors);
            let device = format!("{} with {all} multiprocessors of {each} blocks each", context.info.name);
            validated.require_residency(launch.instance(), u64::from(each) * u64::from(all), &device)?;
        }
        Ok(launch)
    }

    /// Returns the driver's call for the launch.
    fn call(&self, context: &Context) -> Result<DriverCall<'_>> {
        let cooperative = match self.cooperative {
            true => Some(*context.driver.cooperative()?),
            false => None,
        };
        Ok(DriverCall { launch: self, cooperative })
    }

    /// Returns a pointer to each parameter. The driver only reads through them, and the launch must
    /// not change meanwhile.
    pub fn pointers(&self) -> ParameterPointers {
        let mut pointers = ParameterPointers::new();
        pointers.extend(self.values.iter().map(|value| ptr::from_ref(value).cast_mut().cast()));
        pointers
    }

    /// Replaces parameter number `at` of the entry.
    pub fn set_parameter(&mut self, at: usize, value: u64) {
        self.values[at] = value;
    }

    /// Submits the launch to a stream of other code. No tracker records the launch.
    ///
    /// # Safety
    /// `stream` is a live stream of the context, or a default stream of the driver. The launch has
    /// no record. The kernel is free of out-of-bounds accesses and races for its parameters, whose
    /// memory is alive until the launch is over.
    pub(super) unsafe fn submit_untracked(&self, context: &Context, stream: sys::CUstream) -> Result<()> {
        let call = self.call(context)?;
        // SAFETY: by the caller's promise.
        context.run(|| self.operation().to_string(), |driver| unsafe { call.submit(driver, stream) })
    }

    /// Returns the checked form, which gives the launch's record its meaning; `None` without a
    /// record.
    pub fn checked(&self) -> Option<&Arc<CheckedKernel>> {
        match &self.kernel {
            LoadedKernel::Unchecked(_) => None,
            LoadedKernel::Checked(_, form) => Some(form),
        }
    }

    /// Makes the launch write to the record at `address`.
    pub fn set_record(&mut self, address: u64) {
        if let (LoadedKernel::Checked(..), Some(record)) = (&self.kernel, self.values.last_mut()) {
            *record = address;
        }
    }

    /// Returns the launch as parameters of a graph's node, with its own `pointers`.
    pub fn node(&self, pointers: &mut ParameterPointers) -> sys::CUDA_KERNEL_NODE_PARAMS_v1 {
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
            kernelParams: pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
        }
    }

    /// Returns the driver's figures for blocks of the launch's kernel.
    pub(super) fn residency(&self, context: &Context) -> Result<BlockFigures> {
        /// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES` and `…_NUM_REGS`
        const SHARED: i32 = 1;
        const REGISTERS: i32 = 4;
        let function = self.kernel.module().function();
        let threads = self.shape.block.iter().product::<u32>();
        let (mut blocks, mut registers, mut shared) = (0, 0, 0);
        context.run(
            || format!("querying how many blocks of {} fit on a multiprocessor", self.instance()),
            // SAFETY: the function is alive, and the written variables outlive the calls.
            |driver| unsafe {
                let code = (driver.function_attribute)(&mut registers, REGISTERS, function);
                let code = code.max((driver.function_attribute)(&mut shared, SHARED, function));
                code.max((driver.occupancy)(&mut blocks, function, threads as i32, self.shared as usize))
            },
        )?;
        let [blocks, registers, shared] = [blocks, registers, shared].map(|n: i32| n.max(0) as u32);
        Ok(BlockFigures { threads, registers, shared: shared + self.shared, blocks })
    }

    /// Returns the name of the kernel's instance.
    pub fn instance(&self) -> &str {
        self.kernel.module().instance()
    }

    /// Records that the launch is submitted to `stream` next.
    pub fn note(&self, stream: &CudaStream) {
        stream.note(self.kernel.module().instance(), self.shape);
    }

    /// Returns a description for errors and profiles.
    pub fn operation(&self) -> StreamOperation<'_> {
        let instance = self.kernel.module().instance();
        StreamOperation::Launch { instance, shape: self.shape, shared: self.shared }
    }
}

/// The driver's figures for a launch's blocks.
pub(crate) struct BlockFigures {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block: static memory, and the memory that the launch adds.
    pub shared: u32,
    /// Blocks that a multiprocessor holds.
    pub blocks: u32,
}

/// A launch with the memory that it uses.
pub(crate) struct Ready<'a> {
    launch: DriverLaunch,
    used: AccessSet<'a>,
}

/// The driver's call for a launch.
struct DriverCall<'a> {
    launch: &'a DriverLaunch,
    cooperative: Option<Cooperative>,
}

impl DriverCall<'_> {
    /// Calls the driver.
    ///
    /// # Safety
    /// The stream belongs to the context of the launch. The kernel and its memory are as
    /// [`Ready::submit`] requires.
    unsafe fn submit(&self, driver: &Driver, stream: sys::CUstream) -> DriverStatus {
        let DriverLaunch { kernel, shape, shared, .. } = self.launch;
        let ([gx, gy, gz], [bx, by, bz], shared) = (shape.grid, shape.block, *shared);
        let (function, mut pointers) = (kernel.module().function(), self.launch.pointers());
        let parameters = pointers.as_mut_ptr();
        // SAFETY: there is a pointer for each parameter of the entry, to at least the bytes of the
        // parameter, which the driver copies; the caller guarantees the rest.
        unsafe {
            match self.cooperative {
                Some(of) => (of.launch)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters),
                None => (driver.launch)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, ptr::null_mut()),
            }
        }
    }
}

impl<'a> Ready<'a> {
    pub(super) fn new(launch: DriverLaunch, validated: &ValidatedArgs<'_, 'a>) -> Ready<'a> {
        Ready { launch, used: validated.accesses() }
    }

    /// Returns the launch, without the memory that it uses.
    pub fn into_launch(self) -> DriverLaunch {
        self.launch
    }

    /// Submits the launch; `state` is the stream's.
    ///
    /// # Safety
    /// For its arguments the kernel is free of out-of-bounds accesses and races, unless it is the
    /// checked form. The memory of the arguments is alive.
    pub(super) unsafe fn submit(
        &mut self,
        streams: &StreamTable,
        stream: &CudaStream,
        state: &mut SubmissionState,
    ) -> Result<()> {
        let Ready { launch, used } = self;
        let record = match launch.checked() {
            Some(form) => {
                if state.records.is_unallocated() {
                    streams.quiesce()?;
                }
                Some(stream.next_record(state, form)?)
            }
            None => None,
        };
        record.into_iter().for_each(|address| launch.set_record(address));
        let call = launch.call(stream.context())?;
        launch.note(stream);
        let submitted = streams.submit_in(
            stream,
            state,
            used,
            launch.operation(),
            // SAFETY: by the caller's promise.
            |driver, stream| unsafe { call.submit(driver, stream) },
        );
        if submitted.is_err() && record.is_some() {
            state.records.take_back();
        }
        submitted
    }
}

impl LoadedKernel {
    fn module(&self) -> &LoadedEntry {
        match self {
            LoadedKernel::Unchecked(module) | LoadedKernel::Checked(module, _) => module,
        }
    }
}
