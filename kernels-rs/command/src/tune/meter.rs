//! Measurements of the plans of a call on a GPU. Every plan is checked against a reference in f64.

use super::call::{CallOperands, CallReference, TunedCall};
use super::search::CandidateMeter;
use crate::bench::{Contender, Timer};
use crate::error::Error;
use indicatif::ProgressBar;
use runtime::Device;
use std::thread;
use std::time::{Duration, Instant};

/// Target duration of one measurement, which hides the resolution of the device's clock.
const LONG_NS: f64 = 1e6;
/// Time under load after which clocks have settled.
const WARM_UP_TIME: Duration = Duration::from_millis(500);

/// Measurements of plans on a GPU.
pub(super) struct PlanMeter<'a, S: TunedCall> {
    start: Instant,
    device: &'a Device,
    operands: &'a S::Operands,
    reference: CallReference,
    plans: &'a [S::Plan],
    contenders: Vec<Contender<'a>>,
    bar: &'a ProgressBar,
}

impl<S: TunedCall> PlanMeter<'_, S> {
    /// Passes a meter of the plans of a shape to `act`.
    pub fn with<T>(
        device: &Device,
        shape: S,
        operands: &S::Operands,
        plans: &[S::Plan],
        bar: &ProgressBar,
        act: impl FnOnce(&mut PlanMeter<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let start = Instant::now();
        bar.set_message("reference in f64");
        let reference = operands.reference();
        let timer = Timer::new(device)?;
        // Clocks rise under load.
        timer.busy_during(|| {
            thread::sleep(WARM_UP_TIME);
            Some(())
        });
        let launches = (LONG_NS / shape.typical_ns()).clamp(2.0, 100.0) as u32;
        let timer = &timer;
        let contender = |plan: &S::Plan| {
            let plan = *plan;
            timer.timed("plan", launches, move || operands.run(timer.stream(), plan))
        };
        let contenders = plans.iter().map(contender).collect();
        act(&mut PlanMeter { start, device, operands, reference, plans, contenders, bar })
    }
}

impl<S: TunedCall> CandidateMeter for PlanMeter<'_, S> {
    fn rejected(&mut self, candidate: usize) -> Result<Option<String>, Error> {
        self.bar.set_message(format!("check of {}", self.plans[candidate]));
        self.operands.overwrite_result(self.device).map_err(Error::Device)?;
        if let Err(e) = self.operands.run(self.device, self.plans[candidate]) {
            // The device cannot run more.
            if self.device.lost().is_some() {
                return Err(Error::Device(e));
            }
            return Ok(Some(e.to_string()));
        }
        let result = self.operands.result().map_err(Error::Device)?;
        let wrong = self.reference.mismatch(&result);
        if wrong.is_none() {
            // The first measurement does not know yet how long the host takes to queue the work.
            self.time(candidate)?;
        }
        Ok(wrong)
    }

    fn time(&mut self, candidate: usize) -> Result<f64, Error> {
        Ok((self.contenders[candidate].run)()?.as_secs_f64() * 1e3)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn progress(&mut self, phase: &str, best: usize, median_ms: f64) {
        self.bar.set_message(format!("{phase}, best so far: {}, {:.2} µs", self.plans[best], median_ms * 1e3));
        self.bar.inc(1);
    }
}
