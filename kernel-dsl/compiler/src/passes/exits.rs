//! The values that leave an iteration of a loop.

use crate::ir::{Label, Op, Region, Values};

/// The exits of an iteration of a loop.
#[derive(Default)]
pub struct Exits<'r> {
    /// The values that each end of an iteration passes to the next.
    pub next: Vec<&'r Values>,
    /// The values of each `Break`.
    pub breaks: Vec<&'r Values>,
}

impl<'r> Exits<'r> {
    /// Collects the exits of the loop `label` with this body.
    pub fn of(body: &'r Region, label: Label) -> Exits<'r> {
        let mut exits = Exits::default();
        exits.collect(body, label, true);
        exits
    }

    fn collect(&mut self, region: &'r Region, label: Label, body: bool) {
        for inst in &region.insts {
            match &inst.op {
                Op::Yield(values) if body => self.next.push(values),
                Op::Continue(l, values) if *l == label => self.next.push(values),
                Op::Break(l, values) if *l == label => self.breaks.push(values),
                op => op.regions().into_iter().for_each(|r| self.collect(r, label, false)),
            }
        }
    }
}
