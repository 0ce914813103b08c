//! Stalls by line of Rust: the estimate of where warps wait.

use super::limits::CARD_KEY;
use super::model::Inspection;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::hir::Monomorphic;
use kernels_rs_estimate::Estimator;
use kernels_rs_estimate::device::DeviceModel;
use runtime::testing::{self, Case};
use serde::Serialize;

/// Waiting time of warps at a line.
#[derive(Clone, Serialize)]
pub(crate) struct LineStall {
    /// Share of the waiting time of all warps.
    pub share: f64,
    /// Most frequent reason.
    pub reason: &'static str,
}

/// Estimate of a case's time, which is not a measurement.
#[derive(Serialize)]
pub(crate) struct EstimatedTime {
    /// Name of the device.
    pub device: String,
    pub microseconds: f64,
    /// Limit of the launch, in words.
    pub limiter: String,
    /// Reasons and their shares of the waiting time, the largest first.
    pub reasons: Vec<(&'static str, f64)>,
}

impl Inspection {
    /// Adds the estimate of a case's time and its stalls, if the device of the model runs machine
    /// code for `target`.
    pub(super) fn estimate(
        &mut self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        target: Target,
        case: &Case,
    ) -> Result<(), crate::error::Error> {
        if target != Target::SM_61 {
            return Ok(());
        }
        let estimator = Estimator::new(DeviceModel::named(CARD_KEY)?)?;
        let estimate = testing::validated(program, case, &estimator.device(), |validated| {
            Ok(estimator.estimate(artifact, program, validated))
        });
        let failed = |source| crate::error::Error::Profile {
            instance: self.report.instance.clone(),
            case: case.name.clone(),
            source: Box::new(source),
        };
        // A kernel whose blocks wait for one another cannot run on sampled blocks. The page is
        // complete without the estimate.
        let Ok(launch) = estimate.map_err(failed)? else { return Ok(()) };
        for line in &launch.lines {
            if let Some(at) = line.line.as_ref().and_then(|at| self.index.get(&at.file, at.number)) {
                self.lines[at].stall = Some(LineStall { share: line.share, reason: line.reason.name() });
            }
        }
        let mut reasons: Vec<_> = launch.stalls.iter().map(|(reason, share)| (reason.name(), *share)).collect();
        reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.estimate = Some(EstimatedTime {
            device: estimator.model().device.name.clone(),
            microseconds: launch.time_us,
            limiter: launch.limiter.name(),
            reasons,
        });
        Ok(())
    }
}
