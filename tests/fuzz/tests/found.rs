//! Kernels that executors did not agree about once, made small: `tests/found` has each with whose fault it was.

use fuzz::compile::Frontend;
use fuzz::found;
use fuzz::run;

#[test]
fn executors_agree_about_what_they_did_not_agree_about() {
    let frontend = Frontend::default();
    let all = found::read(&found::folder()).expect("a folder of files");
    assert!(!all.is_empty());
    let wrong = all.iter().filter_map(|found| {
        assert!(found.text.contains("Fault: "), "{}: say whose fault it was", found.name);
        run::test(&frontend, &found.text, found.seed).err().map(|failure| format!("{}: {failure}", found.name))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
