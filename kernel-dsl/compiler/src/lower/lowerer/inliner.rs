//! The calls that are being inlined, and the counters of calls, labels and closures.

use super::frame::{Callable, FunctionFrame, LoopFrame};
use crate::hir::Function;
use crate::ir::{Label, Location};

/// The largest number of labels, and of values, of a kernel. Each call is inlined, so that a few
/// functions that call one another twice make millions.
const MAX_LABELS: u32 = 1 << 15;
const MAX_VALUES: usize = 1 << 20;

/// The calls that are being inlined.
#[derive(Clone, Default)]
pub(in crate::lower) struct Inliner<'h> {
    /// The kernel and the calls being inlined, innermost last.
    frames: Vec<FunctionFrame<'h>>,
    /// The number of functions entered so far.
    entered: u32,
    /// The number of labels so far.
    labels: u32,
    /// The closures and functions that a `Val::Callable` names by index.
    callables: Vec<Callable<'h>>,
    /// The number of loops around the closures that are being inlined. A closure cannot leave them.
    hidden_loops: u32,
    /// Whether the error that the kernel is too large has been reported.
    too_large: bool,
}

/// A frame that a closure has moved to the top, and how to move it back.
pub(in crate::lower) struct RaisedFrame {
    depth: usize,
    caller: Option<Location>,
    loops: Vec<LoopFrame>,
    hidden: u32,
}

impl<'h> Inliner<'h> {
    /// Returns the innermost call.
    pub fn frame(&self) -> &FunctionFrame<'h> {
        self.frames.last().expect("a function is being lowered")
    }

    /// Returns the innermost call.
    pub fn frame_mut(&mut self) -> &mut FunctionFrame<'h> {
        self.frames.last_mut().expect("a function is being lowered")
    }

    /// Returns the kernel's function.
    pub fn kernel(&self) -> &'h Function {
        self.frames[0].function
    }

    /// Returns the number of nested calls.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    pub fn push(&mut self, frame: FunctionFrame<'h>) {
        self.frames.push(frame);
    }

    pub fn pop(&mut self) {
        self.frames.pop();
    }

    /// Returns a number that identifies a new call.
    pub fn next_call(&mut self) -> u32 {
        self.entered += 1;
        self.entered
    }

    /// Returns a new label.
    pub fn next_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Returns the index of a new closure or function value.
    pub fn add_callable(&mut self, callable: Callable<'h>) -> u32 {
        self.callables.push(callable);
        self.callables.len() as u32 - 1
    }

    /// Returns the closure or function with this index.
    pub fn callable(&self, index: u32) -> Callable<'h> {
        self.callables[index as usize].clone()
    }

    /// Returns the function of a call that has not returned yet.
    pub fn function_of(&self, call: u32) -> Option<&'h Function> {
        Some(self.frames.iter().find(|f| f.id == call)?.function)
    }

    /// Moves the call in which a closure was created to the top, for as long as the closure runs.
    ///
    /// Returns `None` if the call has already returned.
    pub fn raise(&mut self, call: u32, caller: Location) -> Option<RaisedFrame> {
        let depth = self.frames.iter().position(|f| f.id == call)?;
        let mut frame = self.frames.remove(depth);
        let caller = frame.caller.replace(caller);
        let loops = std::mem::take(&mut frame.loops);
        let hidden = loops.iter().filter(|l| l.repeats).count() as u32;
        self.hidden_loops += hidden;
        self.frames.push(frame);
        Some(RaisedFrame { depth, caller, loops, hidden })
    }

    /// Moves a raised call back to its depth.
    pub fn restore(&mut self, raised: RaisedFrame) {
        if let Some(mut frame) = self.frames.pop() {
            (frame.caller, frame.loops) = (raised.caller, raised.loops);
            self.frames.insert(raised.depth, frame);
        }
        self.hidden_loops -= raised.hidden;
    }

    /// Returns whether the code that is being lowered may run more than once.
    pub fn in_a_loop(&self) -> bool {
        self.hidden_loops > 0 || self.frames.iter().any(|f| f.loops.iter().any(|l| l.repeats))
    }

    /// Returns whether a kernel with this many values has room for one more call.
    pub fn has_room(&self, values: usize) -> bool {
        self.labels <= MAX_LABELS && values <= MAX_VALUES
    }

    /// Returns true at the first call: the error that the kernel is too large is reported once.
    pub fn report_too_large(&mut self) -> bool {
        !std::mem::replace(&mut self.too_large, true)
    }
}
