//! Assembles a kernel's PTX with ptxas, for its own target and for a later one in rotation, or for
//! each supported target with `TESTS=all`.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Target, compile};
use kernels_rs_command::ptxas::Ptxas;

/// Assembles each declared instance as the program contains it, and compiled for later targets, if
/// there is a ptxas that supports sm_61.
pub fn assemble(artifact: &Artifact) {
    let Some(ptxas) = Ptxas::find().filter(Ptxas::takes_sm_61) else {
        eprintln!("no ptxas for sm_61: `tests/get-ptxas` fetches one");
        return;
    };
    let program = artifact.program().unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    let targets: Vec<_> = Target::ALL.into_iter().filter(|t| *t >= artifact.target && ptxas.supports(*t)).collect();
    // Kernels and instances differ in their later target, the same one in each run.
    let name_sum = artifact.name.bytes().map(usize::from).sum::<usize>();
    for (number, declared) in artifact.instances.iter().enumerate() {
        let later = targets[(name_sum + number) % targets.len()];
        let selected = |t: &&Target| tests::share::is_whole() || **t == artifact.target || **t == later;
        for &target in targets.iter().filter(selected) {
            let ptx = match target == artifact.target {
                true => Ok(declared.ptx.to_string()),
                false => compile(&program, &Instance(declared.constants.to_vec()), target),
            };
            let ptx = ptx.unwrap_or_else(|e| panic!("{} for {target}: {e}", declared.name));
            ptxas.assemble(&ptx, target).unwrap_or_else(|e| panic!("{} for {target}: {e}\n{ptx}", declared.name));
        }
    }
}
