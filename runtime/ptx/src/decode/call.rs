//! Calls, which are inlined: each has a copy of the callee's code with separate registers and
//! memory.

use super::super::body::{Join, comparison};
use super::super::code::{Kind, NOWHERE, Pc, Window};
use super::super::memory::function_address;
use super::operand::Home;
use super::{Decoded, Decoder, Frame, GAP, Result};
use kernel_dsl_compiler::ptx::ast::Call;
use kernel_dsl_compiler::ptx::{Callee, Callees, Module, Operand, Parameter, Register, Statement, Symbol};

/// Returns the functions whose addresses the module takes.
pub fn addressed(module: &Module) -> Vec<usize> {
    let mut found = Vec::new();
    let mut add = |symbol: Symbol| {
        if let Symbol::Function(i) = symbol
            && !found.contains(&(i as usize))
        {
            found.push(i as usize);
        }
    };
    for variable in module.variables() {
        variable.initializer.iter().for_each(|i| super::place::symbols(i, &mut add));
    }
    for function in module.functions() {
        for statement in function.statements() {
            if let Statement::Instruction(instruction) = statement {
                for operand in &instruction.operands {
                    if let Operand::Symbol(symbol, _) = operand {
                        add(*symbol);
                    }
                }
            }
        }
        for targets in &function.call_targets {
            if let Callees::Functions(list) = &targets.callees {
                list.iter().for_each(|i| add(Symbol::Function(*i)));
            }
        }
    }
    found.retain(|i| module.functions()[*i].body.is_some() && !module.functions()[*i].is_entry());
    found
}

/// Returns the functions that an indirect call may reach, among those whose addresses are taken.
fn candidates(module: &Module, callees: &Callees) -> Vec<usize> {
    let alike = |a: &[Parameter], b: &[Parameter]| {
        let same =
            |(a, b): (&Parameter, &Parameter)| a.size() == b.size() && a.register.is_some() == b.register.is_some();
        a.len() == b.len() && a.iter().zip(b).all(same)
    };
    match callees {
        Callees::Functions(list) => list.iter().map(|i| *i as usize).collect(),
        Callees::Prototype { returns, parameters, .. } => {
            let mut found = addressed(module);
            found.retain(|i| {
                let function = &module.functions()[*i];
                alike(&function.returns, returns) && alike(&function.parameters, parameters)
            });
            found
        }
    }
}

impl<'m> Decoder<'m> {
    pub(super) fn call(&mut self, frame: &mut Frame<'m>, call: &Call) -> Result<()> {
        let site = self.site;
        // Lanes that do not call jump past the body.
        let around = match &call.guard {
            Some(guard) => {
                let condition = self.condition(frame, guard.register, !guard.negated)?;
                self.push(Some(condition), Decoded::plain(Kind::Branch(NOWHERE)), site);
                Some(self.here() - 1)
            }
            None => None,
        };
        match call.callee {
            Callee::Function(index) => self.inline(frame, call, index as usize)?,
            Callee::Indirect { register, targets } => self.indirect(frame, call, register, targets)?,
        }
        if let Some(pc) = around {
            self.arrive_here(&[pc]);
        }
        Ok(())
    }

    /// Directs branches to the next instruction.
    fn arrive_here(&mut self, branches: &[Pc]) {
        let here = self.here();
        for pc in branches {
            self.code.insts[*pc as usize].kind = Kind::Branch(here);
        }
    }

    /// Decodes an indirect call: it compares the register with each possible function, and inlines
    /// that function.
    fn indirect(&mut self, frame: &mut Frame<'m>, call: &Call, register: Register, targets: u32) -> Result<()> {
        let Some(targets) = frame.function.call_targets.get(targets as usize) else {
            return Err("its possible callees are not declared".to_string());
        };
        let address = self.register(frame, register)?;
        let mut done = Vec::new();
        for index in candidates(self.module, &targets.callees) {
            // A call of a function that is being called would be recursive. Such a function is not
            // compared, so that a call of it is reported.
            if self.chain.contains(&index) {
                continue;
            }
            let this = self.constant(function_address(index), 64);
            let other = self.fresh(1);
            let rows = [address.wide()?, this.wide()?];
            let body = comparison([Some(other.predicate()?), None], rows, Join::None, |a: u64, b: u64| a != b);
            let compare = self.compute(other, &[address, this], body);
            let site = self.site;
            self.push(None, compare, site);
            let condition = super::Condition { predicate: other.predicate()?, id: other.id, negated: false };
            self.push(Some(condition), Decoded::plain(Kind::Branch(NOWHERE)), site);
            let next = self.here() - 1;
            self.inline(frame, call, index)?;
            self.push(None, Decoded::plain(Kind::Branch(NOWHERE)), site);
            done.push(self.here() - 1);
            self.arrive_here(&[next]);
        }
        let site = self.site;
        self.push(None, Decoded::plain(Kind::Trap("it calls a function that is not among its possible callees")), site);
        self.arrive_here(&done);
        Ok(())
    }

    /// Inlines the function's body here.
    fn inline(&mut self, frame: &mut Frame<'m>, call: &Call, index: usize) -> Result<()> {
        let callee = &self.module.functions()[index];
        if callee.body.is_none() {
            let known = "the module does not define it";
            return Err(format!("{known}, and the interpreter does not provide the function `{}`", callee.name));
        }
        if self.chain.contains(&index) {
            return Err("it is recursive; calls are inlined here".to_string());
        }
        if callee.parameters.len() != call.arguments.len() || callee.returns.len() != call.returns.len() {
            return Err(format!("`{}` has a different number of parameters or results", callee.name));
        }
        let site = self.site;
        let parameters = self.handed(frame, &call.arguments)?;
        let returns = self.handed(frame, &call.returns)?;
        let mut inlined = self.frame(index, parameters, returns);
        self.take_registers(&mut inlined)?;
        let stack = self.keep_stack(callee);
        self.function(&mut inlined);
        let returns = inlined.returns_at.take().unwrap_or_default();
        self.arrive_here(&returns);
        self.site = site;
        // The allocations of a function end with it.
        if let Some((stack, kept)) = stack {
            self.move_register(stack, kept);
        }
        self.give_registers(frame, &mut inlined, call)
    }

    /// Returns the arguments or results of a call.
    fn handed(&mut self, frame: &mut Frame<'m>, operands: &[Operand]) -> Result<Vec<Home>> {
        let mut homes = Vec::new();
        for operand in operands {
            homes.push(match operand {
                Operand::Register(r) => Home::Value(self.register(frame, *r)?),
                Operand::Symbol(Symbol::Variable(i), 0) => frame.variables[*i as usize]
                    .ok_or_else(|| "the interpreter has no location for an argument".to_string())?,
                Operand::Symbol(Symbol::Parameter(i), 0) => frame.parameters[*i as usize],
                Operand::Symbol(Symbol::Return(i), 0) => frame.returns[*i as usize],
                Operand::Integer(n) => Home::Constant { bits: *n as u64 },
                Operand::Bits(n) | Operand::F64(n) => Home::Constant { bits: *n },
                Operand::F32(n) => Home::Constant { bits: u64::from(*n) },
                Operand::Sink => Home::Value(self.fresh(64)),
                _ => return Err("the interpreter does not support such an argument".to_string()),
            });
        }
        Ok(homes)
    }

    /// Copies arguments in registers to the callee's registers.
    fn take_registers(&mut self, callee: &mut Frame<'m>) -> Result<()> {
        let function = callee.function;
        for (i, parameter) in function.parameters.iter().enumerate() {
            let home = callee.parameters[i];
            let Some(register) = parameter.register else {
                // Memory is passed by its address; a register must first be stored there.
                match home {
                    Home::Value(from) => {
                        let to = self.code.local.add(&parameter.name, parameter.size(), parameter.alignment(), GAP);
                        self.store_local(from, to, parameter.size());
                        callee.parameters[i] = Home::local(to);
                    }
                    Home::Constant { bits } => {
                        let from = self.constant(bits, parameter.ty.bits());
                        let to = self.code.local.add(&parameter.name, parameter.size(), parameter.alignment(), GAP);
                        self.store_local(from, to, parameter.size());
                        callee.parameters[i] = Home::local(to);
                    }
                    Home::Memory { .. } | Home::Buffer { .. } => {}
                }
                continue;
            };
            let to = self.register(callee, register)?;
            let from = match home {
                Home::Value(from) => from,
                Home::Constant { bits } => self.constant(bits, parameter.ty.bits()),
                Home::Memory { .. } | Home::Buffer { .. } => {
                    return Err("bytes are passed where a register is expected".to_string());
                }
            };
            self.move_register(to, from);
        }
        for (i, result) in function.returns.iter().enumerate() {
            if result.register.is_none()
                && let Home::Value(_) | Home::Constant { .. } = callee.returns[i]
            {
                let to = self.code.local.add(&result.name, result.size(), result.alignment(), GAP);
                callee.returns[i] = Home::local(to);
            }
        }
        Ok(())
    }

    /// Copies results in registers to the caller's registers.
    fn give_registers(&mut self, caller: &mut Frame<'m>, callee: &mut Frame<'m>, call: &Call) -> Result<()> {
        let function = callee.function;
        for (i, result) in function.returns.iter().enumerate() {
            let to = match call.returns.get(i) {
                Some(Operand::Register(r)) => Some(self.register(caller, *r)?),
                _ => None,
            };
            match (result.register, to) {
                (Some(from), Some(to)) => {
                    let from = self.register(callee, from)?;
                    self.move_register(to, from);
                }
                (None, Some(to)) => {
                    if let Home::Memory { window: Window::Local, offset } = callee.returns[i] {
                        self.load_local(to, offset, result.size());
                    }
                }
                (Some(_), None) => return Err("a register is returned where bytes are expected".to_string()),
                (None, None) => {}
            }
        }
        Ok(())
    }
}
