//! The rules of branches, loops, blocks and terminators.

use super::{OpenConstruct, S, Verifier};
use crate::ir::*;
use crate::scalar::Scalar;

impl<'a> Verifier<'a> {
    pub(super) fn branch(&mut self, inst: &'a Inst, condition: Value, regions: [&'a Region; 2]) {
        self.check(inst, self.ty(condition) == S(Scalar::Bool), "an `if` takes a bool");
        for region in regions {
            self.check(inst, region.parameters.is_empty(), "its regions have no parameters");
            self.region(region, &inst.results);
        }
    }

    pub(super) fn counted(&mut self, inst: &'a Inst, counted: &'a For) {
        let index = self.ty(counted.start);
        let fits = index == self.ty(counted.end) && index == self.ty(counted.step);
        self.check(inst, fits && index.scalar().is_some_and(Scalar::is_integer), "a range has one integer type");
        let Some((first, carried)) = counted.body.parameters.split_first() else {
            return self.error(inst, "a `for` has an index");
        };
        let fits = self.ty(*first) == index
            && self.have_same_types(&counted.inits, carried)
            && self.have_same_types(carried, &inst.results);
        self.check(inst, fits, "first values, carried parameters and results differ in number or type");
        let open = OpenConstruct { label: counted.label, leave: &inst.results, next: Some(carried) };
        self.verify_body(inst, open, &counted.body, carried);
    }

    pub(super) fn endless(&mut self, inst: &'a Inst, label: Label, inits: &[Value], body: &'a Region) {
        self.check(inst, self.have_same_types(inits, &body.parameters), "first values and carried parameters differ");
        let open = OpenConstruct { label, leave: &inst.results, next: Some(&body.parameters) };
        self.verify_body(inst, open, body, &body.parameters);
    }

    pub(super) fn block(&mut self, inst: &'a Inst, label: Label, body: &'a Region) {
        self.check(inst, body.parameters.is_empty(), "a block has no parameters");
        let open = OpenConstruct { label, leave: &inst.results, next: None };
        self.verify_body(inst, open, body, &inst.results);
    }

    fn verify_body(&mut self, inst: &Inst, open: OpenConstruct<'a>, body: &'a Region, yields: &[Value]) {
        let label = open.label;
        let new = self.labels.insert(label);
        self.check(inst, new, "another construct has the same label");
        self.open.push(open);
        self.region(body, yields);
        self.open.pop();
    }

    pub(super) fn yielded(&mut self, inst: &Inst, values: &[Value], yields: &[Value]) {
        let fits = self.have_same_types(values, yields) && inst.results.is_empty();
        self.check(inst, fits, "the yielded values do not match the results of the construct");
    }

    /// Checks a `Break` or `Continue`. `takes` returns the values of the construct that receive
    /// those of the jump.
    pub(super) fn jump(
        &mut self,
        inst: &Inst,
        label: Label,
        values: &[Value],
        takes: impl Fn(&OpenConstruct<'a>) -> Option<&'a [Value]>,
    ) {
        match self.open.iter().find(|open| open.label == label).and_then(takes) {
            None => self.error(inst, "no enclosing construct has this label"),
            Some(target) if !self.have_same_types(values, target) => {
                self.error(inst, "the carried values do not match those of the target")
            }
            Some(_) => {}
        }
    }
}
