//! The shapes of softmax and norms in tables of measured plans.

use super::plan::{LONGEST_KEPT_ROW, Team, most_kept_of_norm_in_floats, most_kept_of_softmax};
use crate::tuned::{self, TunableShape, TunedPlans};
use kernel_dsl::{Float, GenericArgument};
use runtime::Device;
use std::fmt;
use std::sync::LazyLock;

/// A kernel of rows whose team a table decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RowKernel {
    /// [`Softmax`](super::Softmax) without masks.
    Softmax,
    /// The RMS norm of [`Norm`](super::Norm), without a residual.
    RmsNorm,
    /// The layer norm of [`Norm`](super::Norm), without a residual.
    LayerNorm,
}

impl RowKernel {
    const NAMES: [(&'static str, RowKernel); 3] =
        [("softmax", RowKernel::Softmax), ("rms norm", RowKernel::RmsNorm), ("layer norm", RowKernel::LayerNorm)];
}

/// Rows of `f32`, and the kernel that reduces them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RowsShape {
    /// The number of rows.
    pub rows: usize,
    /// The elements of a row.
    pub cols: usize,
    /// The kernel.
    pub kernel: RowKernel,
}

impl RowsShape {
    /// Returns the team on a device with this number of multiprocessors, unless a table decides.
    #[must_use]
    pub fn usual(self, multiprocessors: u32) -> Team {
        let RowsShape { rows, cols, kernel } = self;
        let most = match kernel {
            RowKernel::Softmax => most_kept_of_softmax(false),
            RowKernel::RmsNorm | RowKernel::LayerNorm => most_kept_of_norm_in_floats::<f32>(cols),
        };
        Team::with_multiprocessors(multiprocessors, rows, cols, most)
    }

    /// Returns the usual team, and then other teams, those nearest to it first. A tuner measures
    /// these.
    #[must_use]
    pub fn ranked(self, multiprocessors: u32) -> Vec<Team> {
        self.usual(multiprocessors).with_others()
    }
}

/// Extents are those such as `8192x4096`, rows × columns. The variant is `softmax`, `rms norm` or
/// `layer norm`.
impl TunableShape for RowsShape {
    type Plan = Team;

    const HEADER: &'static str = "\
# The fastest teams of threads for softmax and norms of rows of f32 by device and shape.
# `kernels tune rows --case 'ROWSxCOLUMNS, softmax' --device cuda:0 --write FILE` adds lines.
# device | rows x columns | kernel | plan | evidence
";
    const USUAL_VARIANT: &'static str = "softmax";

    fn parse(extents: &str, kernel: &str) -> Result<RowsShape, String> {
        let Some(&[rows, cols]) = tuned::extents(extents).as_deref() else {
            return Err(format!("`{extents}` are not extents; write ROWSxCOLUMNS, such as 8192x4096"));
        };
        if cols > LONGEST_KEPT_ROW {
            return Err(format!(
                "several blocks share a row of more than {LONGEST_KEPT_ROW} elements, and no team decides; a table has shorter rows"
            ));
        }
        let Some((_, kernel)) = RowKernel::NAMES.into_iter().find(|(name, _)| *name == kernel) else {
            let known = RowKernel::NAMES.map(|(name, _)| name).join(", ");
            return Err(format!("there is no kernel `{kernel}`; the kernels are {known}"));
        };
        Ok(RowsShape { rows, cols, kernel })
    }

    fn variant(self) -> &'static str {
        RowKernel::NAMES.into_iter().find(|(_, kernel)| *kernel == self.kernel).map_or("", |(name, _)| name)
    }

    fn unsuitable(self, _plan: Team) -> Option<String> {
        // A team reads again what it cannot keep, so that each team reduces rows of any length.
        None
    }

    fn built_in() -> &'static TunedPlans<RowsShape> {
        static BUILT_IN: LazyLock<TunedPlans<RowsShape>> = LazyLock::new(|| {
            // A test reads the file, so that the library never has a damaged one.
            TunedPlans::parse(include_str!("tuned.txt")).unwrap_or_default()
        });
        &BUILT_IN
    }
}

/// Formats the extents, without the kernel.
impl fmt::Display for RowsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)
    }
}

/// How a call chooses its team.
#[derive(Clone, Copy, Debug)]
pub(in crate::rowwise) struct TeamChoice {
    /// The table instead of the one that the library is compiled with.
    pub tuned: Option<&'static TunedPlans<RowsShape>>,
    /// The team instead of any other.
    pub team: Option<Team>,
}

impl TeamChoice {
    /// The choice of the library.
    pub const USUAL: TeamChoice = TeamChoice { tuned: None, team: None };

    /// Returns the team that the call or a table has for rows of `T`, if any. Both have teams for
    /// `f32` only: longer accesses need other teams.
    pub fn team<T: Float + GenericArgument>(self, device: &Device, shape: Option<RowsShape>) -> Option<Team> {
        if T::CONSTANT != f32::CONSTANT {
            return None;
        }
        let tuned = self.tuned.unwrap_or_else(RowsShape::built_in);
        let listed = || shape.filter(|_| !tuned.is_empty()).and_then(|shape| tuned.plan(device.name(), shape));
        self.team.or_else(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Norm, Softmax};
    use super::*;
    use crate::tuned::TunedPlan;

    #[test]
    fn the_built_in_table_is_whole() {
        let text = include_str!("tuned.txt");
        let plans: TunedPlans<RowsShape> = TunedPlans::parse(text).unwrap();
        assert_eq!(plans.to_string(), text);
        assert_eq!(&plans, RowsShape::built_in());
    }

    #[test]
    fn damaged_lines_name_the_reason() {
        for (line, why) in [
            ("H200 | 8192 | softmax | team 256 8", "write ROWSxCOLUMNS"),
            ("H200 | 64x32769 | softmax | team 1024 32", "several blocks share a row of more than 32768 elements"),
            ("H200 | 8192x4096 | soft | team 256 8", "the kernels are softmax, rms norm, layer norm"),
            ("H200 | 8192x4096 | rms norm | team 256", "`team 256` is not a plan"),
            ("H200 | 8192x4096 | rms norm | team 250 8", "a team has 32 to 1024 threads, in warps of 32"),
            ("H200 | 8192x4096 | rms norm | team 256 6", "keeps 4 to 64 elements, in fours"),
        ] {
            let error = TunedPlans::<RowsShape>::parse(line).unwrap_err();
            assert!(error.why.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn every_ranked_team_is_read_as_written() {
        for kernel in [RowKernel::Softmax, RowKernel::RmsNorm, RowKernel::LayerNorm] {
            for (rows, cols) in [(1, 100), (8192, 4096), (512, 32_768), (3, 20_000)] {
                let shape = RowsShape { rows, cols, kernel };
                let ranked = shape.ranked(20);
                assert_eq!(ranked[0], shape.usual(20));
                for team in &ranked {
                    assert_eq!(team.to_string().parse(), Ok(*team));
                    assert_eq!(ranked.iter().filter(|other| *other == team).count(), 1, "{team}");
                }
            }
        }
    }

    /// Computes rows by a table's team and by the usual one, which add in different orders.
    #[test]
    fn a_table_decides_the_team() {
        let device = Device::cpu();
        let [rows, cols] = [8, 1000];
        let mut plans = TunedPlans::default();
        for kernel in [RowKernel::Softmax, RowKernel::RmsNorm, RowKernel::LayerNorm] {
            let team: Team = "team 64 4".parse().unwrap();
            let shape = RowsShape { rows, cols, kernel };
            assert_ne!(shape.usual(1), team);
            plans.insert("CPU", shape, TunedPlan { plan: team, evidence: String::new() }).unwrap();
        }
        let plans: &'static TunedPlans<RowsShape> = Box::leak(Box::new(plans));
        let numbers: Vec<f32> = (0..rows * cols).map(|i| (i as f32 * 0.7).sin()).collect();
        let x = device.upload(&numbers).unwrap();
        let result = |run: &dyn Fn(&mut runtime::BufferViewMut<'_, f32, 2>)| {
            let mut y = device.zeros::<f32>(rows * cols).unwrap();
            run(&mut y.view_mut([rows, cols]).unwrap());
            y.download().unwrap()
        };
        let softmax = |call: Softmax<'_>| result(&|y| call.run(&device, &x.view([rows, cols]).unwrap(), y).unwrap());
        let norm = |call: Norm<'_>| result(&|y| call.run(&device, &x.view([rows, cols]).unwrap(), y).unwrap());
        let team = "team 64 4".parse().unwrap();
        let softmaxes = [Softmax::new().tuned(plans), Softmax::new().team(team), Softmax::new()].map(softmax);
        assert!(softmaxes[0] == softmaxes[1] && softmaxes[0] != softmaxes[2]);
        for usual in [Norm::rms(1e-5), Norm::layer(1e-5)] {
            let norms = [usual.tuned(plans), usual.team(team), usual].map(norm);
            assert!(norms[0] == norms[1] && norms[0] != norms[2]);
            let close = norms[0].iter().zip(&norms[2]).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(close);
        }
    }
}
