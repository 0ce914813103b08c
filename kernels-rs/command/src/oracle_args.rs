//! Oracle options of the commands: the [`Options`] that can be set on the command line.

use super::did_you_mean::nearest;
use clap::Args;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::oracle::GROUPS;
use runtime::interpreter::{Check, CheckSet, Options, Schedule, Severity};
use std::time::Duration;

/// Options that control how the oracle runs.
#[derive(Args)]
pub(super) struct OracleArgs {
    /// The order in which blocks, the warps of each, and the lanes of an atomic operation run:
    /// in-order, reversed, seeded:N, or preempted:N@POINTS, which interleaves blocks and switches
    /// to another warp at these atomic operations and fences. A report names the order unless it is
    /// in-order
    #[arg(long, value_name = "ORDER", default_value = "in-order")]
    order: Schedule,
    /// The byte that fills shared memory, variables and unwritten buffers: with 0xff, floats are
    /// NaNs
    #[arg(long, value_name = "BYTE", default_value = "0", value_parser = byte)]
    fill: u8,
    /// Run only these checks, such as shared-race,out-of-bounds; race names all race checks. Checks
    /// that stop an endless launch always run. Naming a check also enables those that are off by
    /// default: nan-produced and similar checks for every result, lossy-cast and equal-stores
    /// without --notes, cancellation with --cancellation 1e-3
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = named, conflicts_with = "without")]
    only: Vec<NamedChecks>,
    /// Disable these checks. The offending accesses are still suppressed
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = parse_disableable)]
    without: Vec<NamedChecks>,
    /// Warp instructions of a block after which a loop counts as endless
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().fuel)]
    fuel: u64,
    /// Seconds after which a run of the interpreter counts as endless
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    time_limit: u64,
    /// Warn about sums and differences that cancel, if the relative error of a stored result is at
    /// least this, such as 1e-3
    #[arg(long, value_name = "ERROR", value_parser = relative)]
    cancellation: Option<f64>,
    /// Also report code that is correct but redundant or possibly unintended: lanes that store the
    /// same value to one element, and casts to integers that cannot hold their operand
    #[arg(long)]
    notes: bool,
    /// Stop at the first finding and report only that
    #[arg(long)]
    stop_at_first: bool,
}

/// Checks that one name selects.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedChecks(Vec<Check>);

impl OracleArgs {
    /// Returns the options in the form that a launch takes.
    pub(super) fn options(&self) -> Options {
        Options {
            schedule: self.order,
            fill: self.fill,
            without: self.left_out(),
            fuel: self.fuel,
            time_limit: Some(Duration::from_secs(self.time_limit)),
            // Naming the check enables it.
            cancellation: self.cancellation.or(self.names(|check| check == Check::Cancellation).then_some(1e-3)),
            notes: self.notes || self.names(|check| check.severity(Target::SM_61) == Severity::Note),
            limit: if self.stop_at_first { 1 } else { Options::default().limit },
            ..Options::default()
        }
    }

    /// Returns the checks that are disabled.
    pub(super) fn left_out(&self) -> CheckSet {
        let set = |names: &[NamedChecks]| names.iter().flat_map(|name| name.0.iter().copied()).collect::<CheckSet>();
        if self.only.is_empty() {
            return set(&self.without);
        }
        let always = Check::ALL.into_iter().filter(|check| check.ends_launch()).collect();
        set(&self.only).union(always).complement()
    }

    /// Returns whether the origin of every NaN and infinity is tracked: a check named with `--only`
    /// requires it.
    pub(super) fn requests_origins(&self) -> bool {
        self.names(|check| Check::ORIGINS.contains(&check))
    }

    /// Returns whether `--only` names a check that satisfies `predicate`.
    fn names(&self, predicate: impl Fn(Check) -> bool) -> bool {
        self.only.iter().flat_map(|name| &name.0).any(|check| predicate(*check))
    }

    pub(super) fn order(&self) -> Schedule {
        self.order
    }

    pub(super) fn stops_at_first(&self) -> bool {
        self.stop_at_first
    }
}

/// A number from 0 to 255, also in hexadecimal.
fn byte(text: &str) -> Result<u8, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a byte, such as 255 or 0xff".to_string())
}

/// A relative error.
fn relative(text: &str) -> Result<f64, String> {
    let error = text.parse().ok().filter(|error: &f64| error.is_finite() && *error > 0.0);
    error.ok_or_else(|| "expected a relative error above 0, such as 1e-3".to_string())
}

fn named(name: &str) -> Result<NamedChecks, String> {
    Check::parse(name).map(NamedChecks).map_err(|unknown| {
        let names = GROUPS.iter().map(|(group, _)| *group).chain(Check::ORACLE.iter().map(|check| check.name()));
        match nearest(name, names) {
            Some(near) => format!("unknown check `{name}`; did you mean `{near}`?"),
            None => unknown.to_string(),
        }
    })
}

fn parse_disableable(name: &str) -> Result<NamedChecks, String> {
    let named = named(name)?;
    match named.0.iter().any(|check| check.ends_launch()) {
        true => Err(format!("`{name}` cannot be disabled, because it stops endless launches; --fuel sets its limit")),
        false => Ok(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        oracle: OracleArgs,
    }

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let line = Line::try_parse_from(["kernels"].iter().chain(arguments));
        line.map(|line| line.oracle.options()).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_those_of_a_launch() {
        let (parsed, default) = (parse(&[]).unwrap(), Options::default());
        assert_eq!(
            (parsed.schedule, parsed.fill, parsed.without, parsed.fuel, parsed.limit),
            (default.schedule, default.fill, default.without, default.fuel, default.limit)
        );
    }

    #[test]
    fn options_are_passed_to_the_launch() {
        let options = parse(&["--order", "seeded:7", "--fill", "0xff", "--fuel", "9", "--stop-at-first"]).unwrap();
        assert_eq!((options.schedule, options.fill, options.fuel, options.limit), (Schedule::Seeded(7), 0xff, 9, 1));
        let left_out = |arguments: &[&str]| {
            let without = parse(arguments).unwrap().without;
            Check::ORACLE.iter().copied().filter(|check| without.contains(*check)).collect::<Vec<_>>()
        };
        let races = [Check::SharedRace, Check::WarpRace, Check::GlobalRace, Check::StoreConflict];
        assert_eq!(left_out(&["--without", "race"]), races);
        assert_eq!(left_out(&["--without", "misaligned,loop-step"]), [Check::Misaligned, Check::LoopStep]);
        let only = left_out(&["--only", "out-of-bounds", "--only", "loop-step"]);
        let made: Vec<_> = Check::ORACLE.iter().copied().filter(|check| !only.contains(check)).collect();
        assert_eq!(made, [Check::OutOfBounds, Check::LoopStep, Check::Livelock, Check::FuelExhausted]);
    }

    #[test]
    fn errors_name_the_valid_values() {
        let wrong = |arguments: &[&str]| parse(arguments).expect_err("it is wrong");
        for flag in ["--only", "--without"] {
            assert!(wrong(&[flag, "shard-race"]).contains("did you mean `shared-race`?"));
        }
        assert!(wrong(&["--only", "everything"]).contains("the checks are out-of-bounds, misaligned"));
        assert!(wrong(&["--without", "livelock"]).contains("--fuel sets its limit"));
        assert!(wrong(&["--order", "backwards"]).contains("in-order, reversed, seeded:N"));
        assert!(wrong(&["--fill", "256"]).contains("such as 255 or 0xff"));
        assert!(wrong(&["--only", "race", "--without", "race"]).contains("cannot be used with"));
    }
}
