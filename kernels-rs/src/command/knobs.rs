//! How the oracle is to run: what the commands take of [`Options`].

use super::nearest::nearest;
use clap::Args;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::oracle::GROUPS;
use runtime::interpreter::{Check, CheckSet, Options, Schedule, Severity};

/// How the oracle runs.
#[derive(Args)]
pub(super) struct Knobs {
    /// In which order blocks, the warps of each, and lanes of an atomic operation run: in-order, reversed, or seeded:N, one of many.
    /// A report that does not come in order says which it was
    #[arg(long, value_name = "ORDER", default_value = "in-order")]
    order: Schedule,
    /// The byte that shared memory, variables and unwritten buffers are full of: with 0xff, floats are NaNs
    #[arg(long, value_name = "BYTE", default_value = "0", value_parser = byte)]
    fill: u8,
    /// Make these checks alone: shared-race,out-of-bounds; race is all kinds of races. Those that end an endless launch are always made.
    /// What is else made on demand is asked for by its name: nan-produced and the like of every result, lossy-cast and equal-stores
    /// without --notes, cancellation with --cancellation 1e-3
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = named, conflicts_with = "without")]
    only: Vec<Named>,
    /// Leave these checks out. What they forbid is skipped all the same
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = leavable)]
    without: Vec<Named>,
    /// Warp instructions of a block after which a loop is taken not to end
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().fuel)]
    fuel: u64,
    /// Warn of sums and differences whose digits cancel, where what is stored is off by this relative error or more, such as 1e-3
    #[arg(long, value_name = "ERROR", value_parser = relative)]
    cancellation: Option<f64>,
    /// Tell, too, of what is right and more than is needed, or may not be meant: lanes that store the same value to one element, casts
    /// to integers that do not hold their operand
    #[arg(long)]
    notes: bool,
    /// End with the first thing that is wrong, and tell it alone
    #[arg(long)]
    stop_at_first: bool,
}

/// The checks that one name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Named(Vec<Check>);

impl Knobs {
    /// The same, as a launch takes it.
    pub(super) fn options(&self) -> Options {
        Options {
            schedule: self.order,
            fill: self.fill,
            without: self.left_out(),
            fuel: self.fuel,
            // What is named is wanted, and asked for.
            cancellation: self.cancellation.or(self.names(|check| check == Check::Cancellation).then_some(1e-3)),
            notes: self.notes || self.names(|check| check.severity(Target::SM_61) == Severity::Note),
            limit: if self.stop_at_first { 1 } else { Options::default().limit },
            ..Options::default()
        }
    }

    /// The checks that are not made.
    pub(super) fn left_out(&self) -> CheckSet {
        let set = |names: &[Named]| names.iter().flat_map(|name| name.0.iter().copied()).collect::<CheckSet>();
        if self.only.is_empty() {
            return set(&self.without);
        }
        let always = Check::ALL.into_iter().filter(|check| check.ends_launch()).collect();
        set(&self.only).and(always).complement()
    }

    /// Whether NaNs and infinities are asked where they come from, whatever holds them: where such a check is named.
    pub(super) fn asks_for_origins(&self) -> bool {
        self.names(|check| Check::ORIGINS.contains(&check))
    }

    /// Whether `--only` names such a check.
    fn names(&self, such: impl Fn(Check) -> bool) -> bool {
        self.only.iter().flat_map(|name| &name.0).any(|check| such(*check))
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

fn named(name: &str) -> Result<Named, String> {
    Check::named(name).map(Named).map_err(|unknown| {
        let names = GROUPS.iter().map(|(group, _)| *group).chain(Check::ALL.map(Check::name));
        match nearest(name, names) {
            Some(near) => format!("there is no check `{name}`; did you mean `{near}`?"),
            None => unknown.to_string(),
        }
    })
}

fn leavable(name: &str) -> Result<Named, String> {
    let named = named(name)?;
    match named.0.iter().any(|check| check.ends_launch()) {
        true => Err(format!("`{name}` ends a launch that would not end, and is always made; --fuel says when")),
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
        knobs: Knobs,
    }

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let line = Line::try_parse_from(["kernels"].iter().chain(arguments));
        line.map(|line| line.knobs.options()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_a_launch_has_it() {
        let (said, default) = (parse(&[]).unwrap(), Options::default());
        assert_eq!(
            (said.schedule, said.fill, said.without, said.fuel, said.limit),
            (default.schedule, default.fill, default.without, default.fuel, default.limit)
        );
    }

    #[test]
    fn what_is_said_is_what_a_launch_is_given() {
        let options = parse(&["--order", "seeded:7", "--fill", "0xff", "--fuel", "9", "--stop-at-first"]).unwrap();
        assert_eq!((options.schedule, options.fill, options.fuel, options.limit), (Schedule::Seeded(7), 0xff, 9, 1));
        let left_out = |arguments: &[&str]| {
            let without = parse(arguments).unwrap().without;
            Check::ALL.into_iter().filter(|check| without.contains(*check)).collect::<Vec<_>>()
        };
        let races = [Check::SharedRace, Check::WarpRace, Check::GlobalRace, Check::StoreConflict];
        assert_eq!(left_out(&["--without", "race"]), races);
        assert_eq!(left_out(&["--without", "misaligned,loop-step"]), [Check::Misaligned, Check::LoopStep]);
        let only = left_out(&["--only", "out-of-bounds", "--only", "loop-step"]);
        let made: Vec<_> = Check::ALL.into_iter().filter(|check| !only.contains(check)).collect();
        assert_eq!(made, [Check::OutOfBounds, Check::LoopStep, Check::Livelock, Check::FuelExhausted]);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_right() {
        let wrong = |arguments: &[&str]| parse(arguments).expect_err("it is wrong");
        for flag in ["--only", "--without"] {
            assert!(wrong(&[flag, "shard-race"]).contains("did you mean `shared-race`?"));
        }
        assert!(wrong(&["--only", "everything"]).contains("there are out-of-bounds, misaligned"));
        assert!(wrong(&["--without", "livelock"]).contains("--fuel says when"));
        assert!(wrong(&["--order", "backwards"]).contains("in-order, reversed, and seeded:N"));
        assert!(wrong(&["--fill", "256"]).contains("such as 255 or 0xff"));
        assert!(wrong(&["--only", "race", "--without", "race"]).contains("cannot be used with"));
    }
}
