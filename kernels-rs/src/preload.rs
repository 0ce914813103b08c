//! Kernels that are compiled ahead of their first use.
//!
//! The driver compiles a kernel for its GPU at the first launch of an instance, which takes from
//! milliseconds to a second. [`preload_most_used`] moves this time to the start of a program, and
//! compiles several kernels at once. A program calls it with its own work: no call of the library
//! does, because only the program knows what it launches. The command `kernels cache fill` calls it
//! with typical work; the driver then keeps the machine code for later programs.

use crate::Queue;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::launcher::{LaunchForm, Launcher};
use kernel_dsl::{Argument, Artifact, Element};
use runtime::{BufferView, Device, Error};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::thread;

/// A queue that counts the launches of each kernel instance and runs none.
///
/// Calls choose their kernels for the queue's device. Scratch memory is allocated, and the results
/// of the calls are not written.
pub struct LaunchCounter<'d> {
    device: &'d Device,
    counted: RefCell<Vec<CountedInstance>>,
}

/// An instance with the number of its launches.
struct CountedInstance {
    form: LaunchForm,
    kernel: &'static Artifact,
    constants: Vec<Constant>,
    launches: usize,
}

impl Launcher for LaunchCounter<'_> {
    type Error = Error;

    /// Counts the launch. The arguments are not checked.
    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        _block: Option<usize>,
        _arguments: &[Argument<'_>],
    ) -> Result<(), Error> {
        let mut counted = self.counted.borrow_mut();
        let is_same = |known: &&mut CountedInstance| {
            std::ptr::eq(known.kernel, kernel) && known.constants == constants && known.form == form
        };
        match counted.iter_mut().find(is_same) {
            Some(known) => known.launches += 1,
            None => counted.push(CountedInstance { form, kernel, constants: constants.to_vec(), launches: 1 }),
        }
        Ok(())
    }
}

impl Queue for LaunchCounter<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn reading<T: Element, const R: usize>(
        &self,
        _view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        launch()
    }
}

/// Compiles and loads the `count` kernel instances that `work` launches most often on this device,
/// all at once. Of instances with equally many launches, the first one counts more. Returns their
/// names, the most used first.
///
/// `work` queues typical calls, such as a step of a model. Nothing runs: pass memory of the real
/// extents, because these decide the kernels. On the CPU nothing is compiled.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::gemm::Gemm;
/// use kernels_rs::preload::preload_most_used;
/// let device = runtime::Device::cpu();
/// let (a, b) = (device.zeros::<f32>(64 * 64)?, device.zeros::<f32>(64 * 64)?);
/// let mut c = device.zeros::<f32>(64 * 64)?;
/// let names = preload_most_used(&device, 5, |queue| {
///     let shape = [1, 64, 64];
///     Gemm::new().run(queue, &a.view(shape)?, &b.view(shape)?, &mut c.view_mut(shape)?)
/// })?;
/// assert!(names[0].starts_with("gemm"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns the errors of `work`, and an error if an instance cannot be compiled.
pub fn preload_most_used(
    device: &Device,
    count: usize,
    work: impl FnOnce(&LaunchCounter<'_>) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let queue = LaunchCounter { device, counted: RefCell::default() };
    work(&queue)?;
    let mut counted = queue.counted.into_inner();
    // A stable sort keeps the order of the first launches.
    counted.sort_by_key(|of| Reverse(of.launches));
    counted.truncate(count);
    thread::scope(|scope| {
        let load = |of: &CountedInstance| device.load_form(of.form, of.kernel, &of.constants);
        let loads: Vec<_> = counted.iter().map(|of| scope.spawn(move || load(of))).collect();
        loads.into_iter().try_for_each(|load| load.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    Ok(counted.iter().map(|of| of.kernel.instance_name(&of.constants)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rowwise::{Norm, Softmax};
    use kernel_dsl::compiler::launch::DeviceFacts;

    /// Counts the launches of a softmax and of two norms of 2000 rows.
    fn most_used(device: &Device, count: usize) -> Vec<String> {
        let (x, mut y) = (device.zeros::<f32>(2000 * 1024).unwrap(), device.zeros::<f32>(2000 * 1024).unwrap());
        let names = preload_most_used(device, count, |queue| {
            let (x, mut y) = (x.view([2000, 1024])?, y.view_mut([2000, 1024])?);
            Softmax::new().run(queue, &x, &mut y)?;
            Norm::rms(1e-5).run(queue, &x, &mut y)?;
            Norm::rms(1e-6).run(queue, &x, &mut y)
        });
        assert!(y.download().unwrap().iter().all(|y| *y == 0.0), "nothing runs");
        names.unwrap()
    }

    #[test]
    fn the_most_used_instances_come_first() {
        let device = Device::cpu();
        let [norm, softmax] = &most_used(&device, 5)[..] else { panic!("two instances") };
        assert!(norm.starts_with("norm_rows") && softmax.starts_with("softmax_rows"), "{norm}, {softmax}");
        assert_eq!(most_used(&device, 1), [norm.as_str()]);
        assert_eq!(most_used(&device, 0), [""; 0]);
    }

    #[test]
    fn the_device_decides_the_instances() {
        let [few, many] =
            [4000, 10].map(|multiprocessors| most_used(&Device::cpu_with_facts(DeviceFacts { multiprocessors }), 5));
        // A warp or a block for each row.
        assert_ne!(few, many);
    }
}
