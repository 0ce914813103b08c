//! Estimates beside published figures, and a survey of calls on several cards.

use crate::error::{CommandOutcome, Error};
use crate::tune::TunableCall;
use kernels_rs::attention::{Attention, Qkv};
use kernels_rs_estimate::device::DeviceModel;
use kernels_rs_estimate::{Estimator, LaunchEstimate};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Plans beside the one in use that the survey estimates.
const SURVEYED_PLANS: usize = 10;

/// A file of published figures, and of what the survey estimates.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFigures {
    figures: Vec<PublishedFigure>,
    survey: CardSurvey,
}

/// A published figure of a device.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedFigure {
    device: String,
    what: String,
    rate: f64,
    unit: PublishedUnit,
    /// The calls of this library for the same work.
    work: Vec<CountedCase>,
    /// Tokens that the work processes, for rates in tokens.
    #[serde(default)]
    tokens: f64,
    source: String,
}

#[derive(Clone, Copy, Deserialize)]
enum PublishedUnit {
    #[serde(rename = "TFLOP/s")]
    Teraflops,
    #[serde(rename = "tokens/s")]
    Tokens,
}

/// A call that takes place a number of times.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountedCase {
    call: TunableCall,
    case: String,
    count: f64,
}

/// The calls that are estimated on each of some cards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardSurvey {
    devices: Vec<String>,
    calls: Vec<SurveyedCall>,
    /// Sequences, heads, queries and keys, and elements of a head, of causal attention.
    attention: Vec<[usize; 4]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SurveyedCall {
    call: TunableCall,
    case: String,
}

/// Prints the tables of a file of published figures.
pub(super) fn print(path: &Path, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
    let failed = |why: String| Error::Published { path: path.to_path_buf(), why };
    let text = crate::text_file::read(path).map_err(|e| failed(e.to_string()))?;
    let PublishedFigures { figures, survey } = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
    // Machine code is assembled once for all figures of a device.
    let mut estimators: BTreeMap<String, Arc<Estimator>> = BTreeMap::new();
    for device in figures.iter().map(|figure| &figure.device).chain(&survey.devices) {
        if !estimators.contains_key(device) {
            estimators.insert(device.clone(), Estimator::new(DeviceModel::named(device)?)?);
        }
    }
    writeln!(out, "| device | work | published | estimate | ratio | source |\n|---|---|---|---|---|---|")?;
    for figure in &figures {
        figure.print(&estimators[&figure.device], out)?;
        out.flush()?;
    }
    writeln!(
        out,
        "\n| device | call | plan in use | estimate µs | of the f32 peak | of the memory's peak | of the issue \
         slots | limited by | most waiting | fastest plan | time |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for device in &survey.devices {
        let estimator = &estimators[device];
        for SurveyedCall { call, case } in &survey.calls {
            let survey = call.survey(case, estimator, SURVEYED_PLANS)?;
            let fastest = match survey.fastest {
                Some((plan, ratio)) => format!("{plan} | {ratio:.2} ×"),
                None => "the same | 1 ×".to_string(),
            };
            let call = format!("{}, {case}", survey.call);
            survey_row(estimator, &call, &survey.plan, &survey.launches, &fastest, out)?;
        }
        for shape in &survey.attention {
            let launches = attention(*shape, estimator)?;
            let call = format!("causal attention, {}", shape.map(|n| n.to_string()).join("x"));
            survey_row(estimator, &call, "–", &launches, "– | –", out)?;
        }
    }
    Ok(CommandOutcome::Success)
}

impl PublishedFigure {
    fn print(&self, estimator: &Arc<Estimator>, out: &mut dyn Write) -> Result<(), Error> {
        let (mut us, mut operations) = (0.0, 0.0);
        for CountedCase { call, case, count } in &self.work {
            let survey = call.survey(case, estimator, 0)?;
            us += count * survey.launches.iter().map(|launch| launch.time_us).sum::<f64>();
            operations += count * survey.operations;
        }
        let (rate, unit) = match self.unit {
            PublishedUnit::Teraflops => (operations / us / 1e6, "TFLOP/s"),
            PublishedUnit::Tokens => (self.tokens / us * 1e6, "tokens/s"),
        };
        let (name, ratio) = (&estimator.model().device.name, rate / self.rate);
        let shown = |rate: f64| if rate < 100.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
        let (published, rate) = (shown(self.rate), shown(rate));
        let PublishedFigure { what, source, .. } = self;
        writeln!(out, "| {name} | {what} | {published} {unit} | {rate} {unit} | {ratio:.2} | {source} |")?;
        Ok(())
    }
}

/// Prints the row of a call. `launches` are the launches of one call.
fn survey_row(
    estimator: &Estimator,
    call: &str,
    plan: &str,
    launches: &[LaunchEstimate],
    fastest: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let us: f64 = launches.iter().map(|launch| launch.time_us).sum();
    let weighted = |of: &dyn Fn(&LaunchEstimate) -> f64| {
        100.0 * launches.iter().map(|launch| of(launch) * launch.time_us).sum::<f64>() / us
    };
    let (float, dram) = (weighted(&|launch| launch.float_share), weighted(&|launch| launch.dram_share));
    let issue = weighted(&|launch| launch.issue_share);
    let longest = launches.iter().max_by(|a, b| a.time_us.total_cmp(&b.time_us));
    let (limiter, waiting) = longest.map_or_else(Default::default, |launch| {
        let most = launch.stalls.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let waiting =
            most.map_or_else(String::new, |(reason, share)| format!("{} {:.0} %", reason.name(), 100.0 * share));
        (launch.limiter.name(), waiting)
    });
    let name = &estimator.model().device.name;
    writeln!(
        out,
        "| {name} | {call} | {plan} | {us:.1} | {float:.0} % | {dram:.0} % | {issue:.0} % | {limiter} | {waiting} | {fastest} |"
    )?;
    out.flush()?;
    Ok(())
}

/// Estimates causal attention.
fn attention(shape: [usize; 4], estimator: &Arc<Estimator>) -> Result<Vec<LaunchEstimate>, Error> {
    let device = estimator.device();
    let elements: usize = shape.iter().product();
    let run = || {
        let [q, k, v] = [device.zeros::<f32>(elements)?, device.zeros(elements)?, device.zeros(elements)?];
        let mut o = device.zeros::<f32>(elements)?;
        let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
        Attention::new().causal().run(&device, qkv, &mut o.view_mut(shape)?, None)
    };
    run().map_err(Error::Device)?;
    Ok(estimator.take()?)
}
