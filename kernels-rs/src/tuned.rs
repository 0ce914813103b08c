//! Tables of plans, by device and shape. A table is a text file that people can read and review:
//! `kernels tune CALL --write FILE` writes it, and the call's dispatch reads it.
//!
//! The plans are measured on the device. For a device that is not there, a plan can be estimated,
//! and its evidence says so. Dispatch reads such a line too, until a measured one replaces it.
//!
//! A line of a table has a device, the extents of a shape, its layout or format, a plan, and the
//! evidence. [`Gemm::tuned`](crate::gemm::Gemm::tuned),
//! [`Weights::tuned`](crate::quant::Weights::tuned),
//! [`Softmax::tuned`](crate::rowwise::Softmax::tuned) and
//! [`Norm::tuned`](crate::rowwise::Norm::tuned) take a table.
//!
//! A hot GPU lowers its clock, and another plan may then be faster. A program that has tables for
//! both cases can choose one by [`Device::choose_by_clock`](runtime::Device::choose_by_clock).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A shape of a call whose dispatch reads a table: extents, and a layout or a format.
///
/// [`Display`](fmt::Display) formats the extents as [`parse`](TunableShape::parse) reads them.
pub trait TunableShape: Copy + Ord + fmt::Debug + fmt::Display + 'static {
    /// A way to compute the call. The text form is that of the tables.
    type Plan: Copy + PartialEq + fmt::Debug + fmt::Display + FromStr<Err = String> + 'static;

    /// The lines of a table before its entries.
    const HEADER: &'static str;
    /// The layout or format of a case without one; empty if a case needs one.
    const USUAL_VARIANT: &'static str;

    /// Reads extents, such as `512x6144x2048`, and a layout or a format.
    ///
    /// # Errors
    /// Returns what is wrong with the text, and what is expected.
    fn parse(extents: &str, variant: &str) -> Result<Self, String>;

    /// Returns the layout or the format, as tables write it.
    fn variant(self) -> &'static str;

    /// Returns why a plan cannot compute this shape, if it cannot.
    fn unsuitable(self, plan: Self::Plan) -> Option<String>;

    /// Returns the table that the library is compiled with.
    fn built_in() -> &'static TunedPlans<Self>;
}

/// A plan with its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunedPlan<P> {
    /// The plan.
    pub plan: P,
    /// The reason to use the plan, in words.
    pub evidence: String,
}

impl<P> TunedPlan<P> {
    /// The beginning of the evidence of a plan that was estimated.
    pub const ESTIMATE: &'static str = "an estimate, not a measurement";

    /// Returns whether the plan was estimated and not measured.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.evidence.starts_with(Self::ESTIMATE)
    }
}

/// The devices that have a plan for a shape, with these plans.
type DevicePlans<P> = Vec<(String, TunedPlan<P>)>;

/// Plans by device and shape.
#[derive(Clone, PartialEq, Debug)]
pub struct TunedPlans<S: TunableShape> {
    /// The devices of each shape. Few devices have one shape, so that a list is short.
    plans: BTreeMap<S, DevicePlans<S::Plan>>,
}

/// The error of a damaged table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunedTableError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The reason, and the expected form.
    pub why: String,
}

impl fmt::Display for TunedTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the table of tuned plans: {}", self.line, self.why)
    }
}

impl std::error::Error for TunedTableError {}

impl<S: TunableShape> Default for TunedPlans<S> {
    fn default() -> TunedPlans<S> {
        TunedPlans { plans: BTreeMap::new() }
    }
}

impl<S: TunableShape> TunedPlans<S> {
    /// Reads a table. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// Returns the first line that is not an entry, with the reason.
    pub fn parse(text: &str) -> Result<TunedPlans<S>, TunedTableError> {
        let mut plans = TunedPlans::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let added = plans.add_line(line);
            added.map_err(|why| TunedTableError { line: number + 1, why })?;
        }
        Ok(plans)
    }

    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<_> = line.splitn(5, '|').map(str::trim).collect();
        let &[device, extents, variant, plan, ref evidence @ ..] = &fields[..] else {
            return Err(format!(
                "{} of the 4 fields `device | extents | layout or format | plan`; add the others, or remove the line",
                fields.len()
            ));
        };
        if device.is_empty() {
            return Err("the device has no name; write the driver's name, such as `NVIDIA H200`".to_string());
        }
        let shape = S::parse(extents, variant)?;
        let plan: S::Plan = plan.parse()?;
        let evidence = evidence.first().copied().unwrap_or_default().to_string();
        if self.plan(device, shape).is_some() {
            return Err(format!("a second plan of {shape}, {variant} for {device}; remove one of them"));
        }
        self.insert(device, shape, TunedPlan { plan, evidence })
    }

    /// Adds a plan for a device, by the driver's name, and a shape, in place of an earlier one.
    ///
    /// # Errors
    /// Returns why the plan cannot compute this shape.
    pub fn insert(&mut self, device: &str, shape: S, tuned: TunedPlan<S::Plan>) -> Result<(), String> {
        if let Some(why) = shape.unsuitable(tuned.plan) {
            return Err(format!("`{}` cannot compute {shape}, {}: {why}", tuned.plan, shape.variant()));
        }
        let devices = self.plans.entry(shape).or_default();
        devices.retain(|(name, _)| known_name(name) != known_name(device));
        devices.push((device.to_string(), tuned));
        devices.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(())
    }

    /// Returns the plan of a device, by the driver's name, for a shape, if there is one.
    #[must_use]
    pub fn plan(&self, device: &str, shape: S) -> Option<S::Plan> {
        self.entry(device, shape).map(|tuned| tuned.plan)
    }

    /// Returns the plan of a device, by the driver's name, for a shape with its evidence, if there
    /// is one.
    #[must_use]
    pub fn entry(&self, device: &str, shape: S) -> Option<&TunedPlan<S::Plan>> {
        let devices = self.plans.get(&shape)?;
        let found = devices.iter().find(|(name, _)| known_name(name) == known_name(device));
        found.map(|(_, tuned)| tuned)
    }

    /// Returns the shapes that have a plan for a device, by the driver's name.
    pub fn shapes(&self, device: &str) -> impl Iterator<Item = S> {
        self.plans.keys().copied().filter(move |shape| self.plan(device, *shape).is_some())
    }

    /// Returns whether there is no plan.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }
}

/// Reads extents such as `512x6144x2048`. Returns `None` if a part is not a number.
pub(crate) fn extents(text: &str) -> Option<Vec<usize>> {
    text.split('x').map(|word| word.trim().parse().ok()).collect()
}

/// Reads a number of a plan.
///
/// # Errors
/// Returns which word of the plan is not a number.
pub(crate) fn number(word: &str, plan: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("`{word}` in the plan `{plan}` is not a number"))
}

/// Returns the name without the vendor, which older drivers leave out.
fn known_name(device: &str) -> &str {
    device.strip_prefix("NVIDIA ").unwrap_or(device)
}

/// Formats the table as [`parse`](TunedPlans::parse) reads it.
impl<S: TunableShape> fmt::Display for TunedPlans<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::HEADER)?;
        for (shape, devices) in &self.plans {
            for (device, TunedPlan { plan, evidence }) in devices {
                writeln!(f, "{device} | {shape} | {} | {plan} | {evidence}", shape.variant())?;
            }
        }
        Ok(())
    }
}
