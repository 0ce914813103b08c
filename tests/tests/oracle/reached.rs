//! Lines and branches that launches do not reach.

use super::support::{AlignedMemory, lowered};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::{ArgumentBytes, Binding, Gap, Launch, Options, Program, ReachedInstructions};

#[kernel(block = 32, grid = 1)]
fn partly_reached(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if i < x.len() {
        y[i] = x[i];
    }
    if x[i] > 100.0 {
        y[i] = 1.0;
    } else if x[i] > 50.0 {
        let root = x[i].sqrt();
        y[i] = root;
    }
}

/// Returns the gaps after launches on these inputs, with the code of their lines.
fn gaps(inputs: &[fn(usize) -> f32]) -> Vec<(Gap, String)> {
    let program = Program::decode(&lowered(partly_reached::ARTIFACT)).unwrap();
    let mut reached = ReachedInstructions::default();
    for input in inputs {
        let (x, mut y) = (AlignedMemory::new(input), AlignedMemory::new(|_| 0.0));
        let arguments = vec![
            Binding::Memory { bytes: ArgumentBytes::Shared(&x.0), extents: vec![64], strides: vec![] },
            Binding::Memory { bytes: ArgumentBytes::Exclusive(&mut y.0), extents: vec![64], strides: vec![] },
        ];
        let launch = Launch { grid: [1; 3], block: None, arguments, options: Options::default() };
        program.reach(launch, &mut reached).unwrap();
    }
    program.unreached(&reached).into_iter().map(|gap| (gap.gap, gap.code)).collect()
}

#[test]
fn gaps_are_what_no_launch_reaches() {
    let owned = |gap: Gap, code: &str| (gap, code.to_string());
    let whole = owned(Gap::AlwaysHolds, "if i < x.len() {");
    let few = gaps(&[|i| i as f32]);
    assert_eq!(
        few,
        [
            whole.clone(),
            owned(Gap::NeverHolds, "if x[i] > 100.0 {"),
            owned(Gap::Line, "y[i] = 1.0;"),
            owned(Gap::NeverHolds, "} else if x[i] > 50.0 {"),
            owned(Gap::Line, "let root = x[i].sqrt();"),
            owned(Gap::Line, "y[i] = root;"),
        ]
    );
    assert_eq!(gaps(&[|i| i as f32, |i| 20.0 * i as f32]), [whole]);
}
