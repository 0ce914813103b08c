//! Regression tests of minimized kernels on which executors disagreed: each file in `tests/found`
//! states the cause. A fault of a pass or of emission is a file in
//! `kernel-dsl/compiler/tests/passes/filetests` instead: IR that shows it.

use fuzz::compile::Frontend;
use fuzz::found;
use fuzz::run;

#[test]
fn executors_agree_on_found_kernels() {
    let frontend = Frontend::default();
    let all = found::read(&found::folder()).expect("the folder is readable");
    assert!(!all.is_empty());
    let wrong = all.iter().filter_map(|found| {
        assert!(found.text.contains("Fault: "), "{}: state the cause as `Fault: …`", found.name);
        run::test(&frontend, &found.text, found.seed).err().map(|failure| format!("{}: {failure}", found.name))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
