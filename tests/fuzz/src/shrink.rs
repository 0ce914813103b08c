//! Reduction of a failing kernel to a small one that still fails.

use crate::program::{Expr, Kernel, Statement};
use kernel_dsl_compiler::Scalar;

/// Returns the smallest kernel, reached by removing one piece at a time, for which `is_wrong` stays
/// true.
pub fn shrink(kernel: Kernel, mut is_wrong: impl FnMut(&Kernel) -> bool) -> Kernel {
    let mut kernel = kernel;
    loop {
        let before = kernel.clone();
        let mut n = 0;
        // After a change is kept, the next change has its index.
        while let Some(smaller) = changed(&kernel, n) {
            if is_wrong(&smaller) { kernel = smaller } else { n += 1 }
        }
        if kernel == before {
            return kernel;
        }
    }
}

/// Returns the kernel after change number `n`; `None` if there are fewer changes.
fn changed(kernel: &Kernel, n: usize) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    let mut cursor = Cursor { left: n, done: false };
    cursor.kernel(&mut kernel);
    cursor.done.then_some(kernel)
}

/// Countdown to the change to make.
struct Cursor {
    left: usize,
    done: bool,
}

impl Cursor {
    /// Returns whether the current change is the requested one.
    fn hit(&mut self) -> bool {
        if self.done {
            return false;
        }
        self.done = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        self.done
    }

    fn kernel(&mut self, kernel: &mut Kernel) {
        self.list(&mut kernel.body);
        for i in 0..kernel.functions.len() {
            if self.hit() {
                kernel.functions.remove(i);
            }
            if self.done {
                return;
            }
            let function = &mut kernel.functions[i];
            self.list(&mut function.body);
            self.expr(&mut function.value);
            for p in 0..function.parameters.len() {
                if self.hit() {
                    function.parameters.remove(p);
                    let name = function.name.clone();
                    forget(&mut kernel.body, &name, p);
                    return;
                }
            }
        }
        for p in 0..kernel.parameters.len() {
            if self.hit() {
                kernel.parameters.remove(p);
                return;
            }
        }
        if kernel.grid > 1 && self.hit() {
            kernel.grid = 1;
        }
        if kernel.block != [32, 1] && self.hit() {
            kernel.block = [32, 1];
        }
        if !kernel.clauses.is_empty() && self.hit() {
            kernel.clauses = "";
        }
    }

    fn list(&mut self, list: &mut Vec<Statement>) {
        // Larger pieces come first.
        let mut size = list.len() / 2;
        while size > 1 && !self.done {
            for start in (0..list.len()).step_by(size) {
                if self.hit() {
                    list.drain(start..(start + size).min(list.len()));
                    return;
                }
            }
            size /= 2;
        }
        for i in (0..list.len()).rev() {
            if self.hit() {
                list.remove(i);
                return;
            }
            for block in 0..list[i].blocks.len() {
                if self.hit() {
                    let inside = std::mem::take(&mut list[i].blocks[block]);
                    list.splice(i..=i, inside);
                    return;
                }
            }
            let Statement { values, blocks, .. } = &mut list[i];
            values.iter_mut().for_each(|value| self.expr(value));
            blocks.iter_mut().for_each(|block| self.list(block));
            if self.done {
                return;
            }
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        let simple = simple(expr.ty);
        if expr.text != simple && expr.construct != "a variable" && self.hit() {
            *expr = Expr::leaf("a literal", expr.ty, simple);
        }
        for i in 0..expr.arguments.len() {
            if self.done {
                return;
            }
            if expr.arguments[i].ty == expr.ty && self.hit() {
                *expr = expr.arguments.swap_remove(i);
                return;
            }
        }
        expr.arguments.iter_mut().for_each(|argument| self.expr(argument));
    }
}

/// Removes argument number `parameter` from all calls of `function`.
fn forget(list: &mut [Statement], function: &str, parameter: usize) {
    fn within(expr: &mut Expr, call: &str, parameter: usize) {
        if expr.text.starts_with(call) && expr.construct == "a call of a device function" {
            expr.arguments.remove(parameter);
            let holes: Vec<_> = (0..expr.arguments.len()).map(|n| format!("${n}")).collect();
            expr.text = format!("{call}{})", holes.join(", "));
        }
        expr.arguments.iter_mut().for_each(|argument| within(argument, call, parameter));
    }
    for Statement { values, blocks, .. } in list {
        values.iter_mut().for_each(|value| within(value, &format!("{function}("), parameter));
        blocks.iter_mut().for_each(|block| forget(block, function, parameter));
    }
}

/// Returns the simplest value of a type, as text.
fn simple(ty: Scalar) -> String {
    match ty {
        Scalar::Bool => "true".to_string(),
        Scalar::F32 | Scalar::F64 => format!("1.0{ty}"),
        Scalar::F16 | Scalar::Bf16 => format!("{ty}::ONE"),
        _ => format!("1{ty}"),
    }
}
