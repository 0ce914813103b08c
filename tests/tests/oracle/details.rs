//! Details of reports: the values of an access, every location of a conflict, and the report as
//! JSON.

use super::support::{AlignedMemory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::{AccessValues, Check, Options, Report, Schedule};

/// Returns the values of the only finding.
fn values(report: &Report) -> AccessValues {
    let [finding] = &report.findings[..] else { panic!("{report}") };
    finding.values.clone().unwrap_or_else(|| panic!("{report}"))
}

fn some(value: &str) -> Option<String> {
    Some(value.to_string())
}

#[kernel(block = 64, grid = 1)]
fn two_stores(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([1]);
    if thread::x() == 0 {
        tile[0] = x[3];
    }
    if thread::x() == 32 {
        tile[0] = x[7];
    }
    block::sync();
    y[thread::x()] = tile[0];
}

#[kernel(block = 64, grid = 1)]
fn a_load_and_a_store(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([1]);
    if thread::x() == 0 {
        tile[0] = x[5];
    }
    block::sync();
    if thread::x() < 32 {
        y[thread::x()] = tile[0];
    } else if thread::x() == 32 {
        tile[0] = x[7];
    }
}

#[kernel(block = 64, grid = 1)]
fn a_sum_and_a_load(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        tile[0] = 40;
    }
    block::sync();
    if thread::x() == 33 {
        tile.fetch_add(0, 2);
    }
    if thread::x() == 1 {
        y[0] = x[0] + tile[0] as f32;
    }
}

#[test]
fn report_of_a_race_has_both_stored_values() {
    let (in_order, _) = run(two_stores::ARTIFACT, 1);
    let expected = AccessValues { other_stored: some("3.0"), stores: some("7.0"), ..AccessValues::default() };
    assert_eq!(values(&in_order), expected);
    assert!(in_order.to_string().contains("= note: the other stored 3.0, this stores 7.0"), "{in_order}");
    let options = Options { schedule: Schedule::Reversed, ..Options::default() };
    let (reversed, _) = run_on(two_stores::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), options);
    assert_eq!(
        values(&reversed),
        AccessValues { other_stored: some("7.0"), stores: some("3.0"), ..AccessValues::default() }
    );
    assert!(
        reversed.to_string().ends_with("blocks and warps ran in reversed order; `--order reversed` repeats this run")
    );
}

#[test]
fn report_of_a_race_has_the_loaded_value() {
    let (stored, _) = run(a_load_and_a_store::ARTIFACT, 1);
    assert_eq!(
        values(&stored),
        AccessValues { other_loaded: some("5.0"), stores: some("7.0"), ..AccessValues::default() }
    );
    let options = Options { schedule: Schedule::Reversed, ..Options::default() };
    let (loaded, _) = run_on(a_load_and_a_store::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), options);
    assert_eq!(
        values(&loaded),
        AccessValues { other_stored: some("7.0"), loads: some("7.0"), ..AccessValues::default() }
    );
}

#[test]
fn report_of_a_race_has_the_operand_of_an_atomic_operation() {
    let (report, _) = run(a_sum_and_a_load::ARTIFACT, 1);
    assert_eq!(
        values(&report),
        AccessValues { other_loaded: some("40"), operand: some("2"), ..AccessValues::default() }
    );
    let options = Options { schedule: Schedule::Reversed, ..Options::default() };
    let (report, _) = run_on(a_sum_and_a_load::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), options);
    // The operand of the other operation is unknown: memory holds the sum.
    assert_eq!(values(&report), AccessValues { loads: some("42"), ..AccessValues::default() });
}

/// Stores different values to one element by lanes of a warp.
#[kernel(block = 32, grid = 1)]
fn at_once(x: &[f32], y: &mut [f32]) {
    y[thread::x() / 2] = x[thread::x()];
}

#[kernel(block = 32, grid = 1)]
fn never_stored(x: &[f32], y: &mut [f32]) {
    let tile = Shared::<f32, 1>::new([32]);
    y[thread::x()] = x[0] + tile[thread::x()];
}

#[test]
fn reports_of_conflicts_and_uninitialized_loads_have_values() {
    let (report, _) = run(at_once::ARTIFACT, 1);
    assert_eq!(checks(&report), [Check::StoreConflict]);
    assert_eq!(
        values(&report),
        AccessValues { other_stored: some("0.0"), stores: some("1.0"), ..AccessValues::default() }
    );
    let options = Options { fill: 0x40, ..Options::default() };
    let (report, _) = run_on(never_stored::ARTIFACT, 1, &AlignedMemory::new(|_| 0.0), options);
    assert_eq!(values(&report).loads, Some(format!("{:?}", f32::from_bits(0x4040_4040))));
}

/// Loads in one loop the elements that three other warps store.
#[kernel(block = 128, grid = 1)]
fn three_against_a_loop(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([3]);
    if thread::x() == 0 {
        tile[0] = x[1];
    }
    if thread::x() == 32 {
        tile[1] = x[2];
    }
    if thread::x() == 64 {
        tile[2] = x[3];
    }
    if thread::x() == 96 {
        let mut sum = 0.0;
        for k in rolled(0..3) {
            sum += tile[k];
        }
        y[0] = sum;
    }
}

/// Loads in one instruction the elements that three other warps store.
#[kernel(block = 128, grid = 1)]
fn three_against_a_warp(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([3]);
    if thread::x() == 0 {
        tile[0] = x[1];
    }
    if thread::x() == 32 {
        tile[1] = x[2];
    }
    if thread::x() == 64 {
        tile[2] = x[3];
    }
    if thread::x() >= 96 {
        y[thread::x() - 96] = tile[thread::x() % 3];
    }
}

/// Races a store with two loads.
#[kernel(block = 96, grid = 1)]
fn two_loads_and_a_store(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([1]);
    if thread::x() == 0 {
        tile[0] = x[1];
    }
    block::sync();
    if thread::x() == 0 {
        y[0] = tile[0];
    }
    if thread::x() == 32 {
        y[1] = 2.0 * tile[0];
    }
    if thread::x() == 64 {
        tile[0] = x[2];
    }
}

#[test]
fn report_has_every_location_of_a_conflict() {
    for (artifact, others, count) in [
        (three_against_a_loop::ARTIFACT, 2, 3),
        (three_against_a_warp::ARTIFACT, 2, 32),
        (two_loads_and_a_store::ARTIFACT, 1, 1),
    ] {
        let (report, _) = run(artifact, 1);
        let [finding] = &report.findings[..] else { panic!("{}: {report}", artifact.name) };
        assert_eq!((finding.others.len(), finding.count), (others, count), "{report}");
        let mut lines: Vec<_> =
            finding.other.iter().chain(&finding.others).map(|o| o.place.as_ref().unwrap().line).collect();
        let text = report.to_string();
        for line in &lines[1..] {
            let place = format!("and with tests/tests/oracle/details.rs:{line}: thread [");
            assert!(text.contains(&place), "no `{place}` in\n{text}");
        }
        lines.dedup();
        assert_eq!(lines.len(), others + 1, "{report}");
    }
}

/// Races two stores with one load; one of the races is allowed.
#[kernel(block = 96, grid = 1)]
fn one_partner_allowed(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([2]);
    if thread::x() == 0 {
        #[allow(shared_race, reason = "a flag")]
        {
            tile[0] = 1.0;
        }
    }
    if thread::x() == 32 {
        tile[1] = x[1];
    }
    if thread::x() >= 64 {
        y[thread::x() - 64] = tile[thread::x() % 2];
    }
}

#[test]
fn race_allowed_for_one_store_is_reported_for_another() {
    let (report, _) = run(one_partner_allowed::ARTIFACT, 1);
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!((finding.count, finding.others.len(), report.allowed[0].count), (16, 0, 16), "{report}");
}

#[test]
fn json_agrees_with_the_text() {
    let options = Options { schedule: Schedule::Seeded(7), ..Options::default() };
    let (report, _) = run_on(three_against_a_loop::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), options);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "fail");
    assert_eq!(json["schedule"], "seeded:7");
    assert_eq!(json["schedule"].as_str().unwrap().parse(), Ok(Schedule::Seeded(7)));
    let finding = &json["findings"][0];
    assert_eq!((&finding["check"], &finding["severity"]), (&"shared-race".into(), &"error".into()));
    let text = report.to_string();
    for name in ["loads", "stores", "other_stored"] {
        if let Some(value) = finding["values"][name].as_str() {
            assert!(text.contains(value), "{value} is not in\n{text}");
        }
    }
    let other = &finding["others"][0];
    let line = format!("{}:{}", other["place"]["file"].as_str().unwrap(), other["place"]["line"]);
    assert!(text.contains(&line) && text.contains(other["action"].as_str().unwrap()), "{text}");
    let (report, _) = run_on(never_stored::ARTIFACT, 0, &AlignedMemory::new(|_| 0.0), Options::default());
    assert_eq!(serde_json::to_value(&report).unwrap()["verdict"], "pass");
}
