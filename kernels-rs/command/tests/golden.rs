//! Tests of `golden!` on a template of `kernels new`.

#[path = "../templates/tiled.rs"]
mod tiled;

use kernels_rs_command::golden::{self, MachineCodeLimits};
use kernels_rs_command::ptxas::Ptxas;
use tiled::product;

#[test]
fn ptx_and_machine_code_are_as_accepted() {
    kernels_rs_command::golden!(product<16>, max_registers = 48, max_spill_bytes = 0, max_shared_bytes = 8192);
}

#[test]
fn each_exceeded_limit_of_each_instance_is_reported() {
    if Ptxas::find().is_none_or(|ptxas| !ptxas.takes_sm_61()) {
        println!("skipped: no ptxas for sm_61 is found");
        return;
    }
    let budget =
        MachineCodeLimits { max_registers: Some(8), max_shared_bytes: Some(4096), ..MachineCodeLimits::default() };
    let exceeded = golden::check(golden::artifact::<product<16>>(), budget).unwrap_err();
    let lines: Vec<&str> = exceeded.lines().collect();
    assert_eq!(lines.len(), 3, "{exceeded}");
    for (line, start) in lines.iter().zip([
        "product@t16: ",
        "product@t32: ",
        "product@t32: 8192 bytes of shared memory; the budget is 4096",
    ]) {
        assert!(line.starts_with(start), "{exceeded}");
    }
    assert!(lines[0].contains("registers; the budget is 8"), "{exceeded}");
}
