//! The launches in flight, any of which may have caused the loss of a device.

use kernel_dsl::compiler::launch::LaunchShape;
use runtime_simt::Lock;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The largest number of kernels of a stream that are recorded by name between two waits. A further
/// kernel replaces the last.
const MAX_LISTED_LAUNCHES: usize = 16;

/// Launches of a kernel that no wait has covered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InFlightLaunches {
    instance: Arc<str>,
    /// The shape of the last launch.
    shape: LaunchShape,
    times: u64,
    /// The number of the stream's last operation that launched this kernel.
    last: u64,
}

impl InFlightLaunches {
    /// Returns the kernel's instance, such as `matmul::<16>`.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns the blocks of the last launch, by dimension.
    pub fn grid(&self) -> [u32; 3] {
        self.shape.grid
    }

    /// Returns the threads of a block of the last launch, by dimension.
    pub fn block(&self) -> [u32; 3] {
        self.shape.block
    }

    /// Returns the number of launches.
    pub fn times(&self) -> u64 {
        self.times
    }
}

impl fmt::Display for InFlightLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InFlightLaunches { instance, shape, times, .. } = self;
        write!(f, "{instance} in {}", shown(*shape))?;
        if *times > 1 { write!(f, " ({times} times)") } else { Ok(()) }
    }
}

/// `4 × 1 × 1 blocks of 256 × 1 × 1 threads`
pub(super) fn shown(shape: LaunchShape) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
    format!("{gx} × {gy} × {gz} blocks of {bx} × {by} × {bz} threads")
}

/// The launches of a stream since its last wait. The lock on the launches is held for a few
/// instructions, and no other lock is taken under it.
#[derive(Default)]
pub(super) struct InFlight(Lock<SmallVec<[InFlightLaunches; 4]>>);

impl InFlight {
    /// Records a launch that is submitted as the stream's operation `number`.
    pub fn note(&self, instance: &Arc<str>, shape: LaunchShape, number: u64) {
        let mut launched = self.0.lock();
        match launched.iter_mut().find(|l| Arc::ptr_eq(&l.instance, instance) || l.instance == *instance) {
            Some(known) => {
                known.times += 1;
                (known.shape, known.last) = (shape, number);
            }
            None => {
                let one = InFlightLaunches { instance: instance.clone(), shape, times: 1, last: number };
                if launched.len() == MAX_LISTED_LAUNCHES {
                    launched.pop();
                }
                launched.push(one);
            }
        }
    }

    /// Removes the launches up to operation `number`, all of which are complete.
    pub fn remove_completed(&self, number: u64) {
        self.0.lock().retain(|launched| launched.last > number);
    }

    /// Returns the launches.
    pub fn list(&self) -> SmallVec<[InFlightLaunches; 4]> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_launches_leave_the_list() {
        let shape = LaunchShape { grid: [4, 1, 1], block: [256, 1, 1] };
        let (in_flight, a, b) = (InFlight::default(), Arc::from("a"), Arc::from("b::<16>"));
        in_flight.note(&a, shape, 1);
        in_flight.note(&b, shape, 2);
        in_flight.note(&a, shape, 3);
        let shown: Vec<_> = in_flight.list().iter().map(InFlightLaunches::to_string).collect();
        let text = "in 4 × 1 × 1 blocks of 256 × 1 × 1 threads";
        assert_eq!(shown, [format!("a {text} (2 times)"), format!("b::<16> {text}")]);
        in_flight.remove_completed(2);
        assert_eq!(in_flight.list().len(), 1);
        in_flight.remove_completed(3);
        assert!(in_flight.list().is_empty());
        (0..100).for_each(|i| in_flight.note(&Arc::from(format!("k::<{i}>")), shape, i));
        assert_eq!(in_flight.list().len(), MAX_LISTED_LAUNCHES);
    }
}
