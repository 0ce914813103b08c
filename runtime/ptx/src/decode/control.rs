//! Branches, ends, barriers, and operations of several lanes.

use super::super::arithmetic::lanes::MemberResult;
use super::super::code::{
    Barrier, BarrierReduction, Condition, Gather, InstructionKind, NOWHERE, Poll, Shuffle, ShuffleSource, Vote,
};
use super::super::registers::{RegisterPlace, StateId};
use super::operand::OperandLocation;
use super::words::Words;
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::{SmallVec, smallvec};

/// The opcodes that [`Decoder::control`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[
        Bra, Brkpt, Brx, Ret, Exit, Trap, Bar, Barrier, Membar, Fence, Shfl, Vote, Match, Redux, Activemask, Nanosleep,
        Pmevent,
    ]
};

impl<'m> Decoder<'m> {
    pub(super) fn control(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        match opcode {
            Opcode::Bra => {
                words.take(Modifier::Uni);
                let Some(Operand::Label(label)) = operands.first() else {
                    return Err("its target is not a label".to_string());
                };
                frame.forward.push((self.next_pc(), 0, *label));
                Ok(Decoded::plain(InstructionKind::Branch(NOWHERE)))
            }
            Opcode::Brx => self.branch_indexed(frame, words, operands),
            Opcode::Ret => {
                words.take(Modifier::Uni);
                match &mut frame.returns_at {
                    None => Ok(Decoded::plain(InstructionKind::Exit)),
                    Some(places) => {
                        places.push(self.code.insts.len() as u32);
                        Ok(Decoded::plain(InstructionKind::Branch(NOWHERE)))
                    }
                }
            }
            Opcode::Exit => Ok(Decoded::plain(InstructionKind::Exit)),
            Opcode::Trap => Ok(Decoded::plain(InstructionKind::Trap("the kernel traps"))),
            Opcode::Brkpt => {
                Ok(Decoded::plain(InstructionKind::Trap("the kernel stops for a debugger, and there is none")))
            }
            Opcode::Bar | Opcode::Barrier => self.barrier(frame, words, operands),
            Opcode::Shfl => self.shuffle(frame, words, operands),
            Opcode::Vote => self.vote(frame, words, operands),
            Opcode::Match | Opcode::Redux => self.gather(frame, opcode, words, operands),
            Opcode::Activemask => {
                words.ty()?;
                let to = self.to(frame, operands, 0)?;
                Ok(Decoded {
                    kind: InstructionKind::ActiveMask(to.place),
                    reads: smallvec![],
                    writes: smallvec![to.id],
                })
            }
            // All accesses happen at once and in order here, and no thread sleeps.
            _ => {
                self.code.ordered = true;
                let is_of_block = words.take(Modifier::Cta);
                words.pass(&[
                    Modifier::Gl,
                    Modifier::Gpu,
                    Modifier::Sys,
                    Modifier::Sc,
                    Modifier::AcqRel,
                    Modifier::Proxy,
                    Modifier::Alias,
                    Modifier::Mask,
                    Modifier::U32,
                ]);
                let is_fence = matches!(opcode, Opcode::Membar | Opcode::Fence);
                let kind = if is_fence { InstructionKind::Fence { is_of_block } } else { InstructionKind::Nothing };
                Ok(Decoded::plain(kind))
            }
        }
    }

    fn branch_indexed(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        words.pass(&[Modifier::Idx, Modifier::Uni]);
        let index = self.operand(frame, operands, 0, Type::U32)?;
        let Some(Operand::BranchTargets(list)) = operands.get(1) else {
            return Err("it has no list of targets".to_string());
        };
        let Some(list) = frame.function.branch_targets.get(*list as usize) else {
            return Err("its list of targets is not declared".to_string());
        };
        let here = self.next_pc();
        frame.forward.extend(list.labels.iter().enumerate().map(|(i, label)| (here, i, *label)));
        let targets = vec![NOWHERE; list.labels.len()].into();
        let kind = InstructionKind::BranchIndexed { index: pair(index), targets };
        Ok(Decoded { kind, reads: smallvec![index.id], writes: smallvec![] })
    }

    fn barrier(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        if words.take(Modifier::Warp) {
            words.take(Modifier::Sync);
            let members = self.operand(frame, operands, 0, Type::U32)?;
            let kind = InstructionKind::WarpBarrier { members: pair(members) };
            return Ok(Decoded { kind, reads: smallvec![members.id], writes: smallvec![] });
        }
        words.take(Modifier::Aligned);
        words.take(Modifier::Cta);
        let arrive = words.take(Modifier::Arrive);
        let reduces = words.take(Modifier::Red);
        if !arrive && !reduces && !words.take(Modifier::Sync) {
            return Err("it has neither `.sync`, `.arrive` nor `.red`".to_string());
        }
        let mut reads = SmallVec::new();
        let (first, last) = if reduces { (1, operands.len() - 1) } else { (0, operands.len()) };
        let number = self.operand(frame, operands, first, Type::U32)?;
        reads.push(number.id);
        let threads = if last > first + 1 { Some(self.operand(frame, operands, first + 1, Type::U32)?) } else { None };
        reads.extend(threads.map(|t| t.id));
        let (mut reduction, mut writes) = (None, SmallVec::new());
        if reduces {
            let how = words.take_as(|m| match m {
                Modifier::Popc => Some(BarrierReduction::Count),
                Modifier::And => Some(BarrierReduction::All),
                Modifier::Or => Some(BarrierReduction::Any),
                _ => None,
            });
            let Some(how) = how else { return Err("it has no reduction operation".to_string()) };
            words.ty()?;
            let to = self.to(frame, operands, 0)?;
            let condition = self.predicate(frame, operands.last())?;
            reads.push(condition.id);
            writes.push(to.id);
            reduction = Some((how, condition, to.place));
        }
        let kind =
            InstructionKind::Barrier(Barrier { number: pair(number), threads: threads.map(pair), arrive, reduction });
        Ok(Decoded { kind, reads, writes })
    }

    fn shuffle(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let sync = words.take(Modifier::Sync);
        let mode = words.take_as(|m| match m {
            Modifier::Up => Some(ShuffleSource::Up),
            Modifier::Down => Some(ShuffleSource::Down),
            Modifier::Bfly => Some(ShuffleSource::Butterfly),
            Modifier::Idx => Some(ShuffleSource::Index),
            _ => None,
        });
        let Some(mode) = mode else { return Err("it has no shuffle mode".to_string()) };
        words.ty()?;
        let [result, inside] = self.destinations(frame, operands, "register")?;
        let value = self.operand(frame, operands, 1, Type::B32)?;
        let selector = self.operand(frame, operands, 2, Type::U32)?;
        let clamp = self.operand(frame, operands, 3, Type::U32)?;
        let members = if sync { Some(self.operand(frame, operands, 4, Type::U32)?) } else { None };
        let reads = [Some(value), Some(selector), Some(clamp), members].into_iter().flatten().map(|s| s.id).collect();
        let writes = [result, inside].into_iter().flatten().map(|s| s.id).collect();
        let inside = match inside {
            Some(p) => Some((p.predicate()?, p.id)),
            None => None,
        };
        let kind = InstructionKind::Shuffle(Shuffle {
            mode,
            result: result.map(pair),
            inside,
            value: pair(value),
            selector: pair(selector),
            clamp: pair(clamp),
            members: members.map(pair),
        });
        Ok(Decoded { kind, reads, writes })
    }

    fn vote(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let sync = words.take(Modifier::Sync);
        let mode = words.take_as(|m| match m {
            Modifier::All => Some(Poll::All),
            Modifier::Any => Some(Poll::Any),
            Modifier::Uni => Some(Poll::Uniform),
            Modifier::Ballot => Some(Poll::Ballot),
            _ => None,
        });
        let Some(mode) = mode else { return Err("it has no vote mode".to_string()) };
        words.ty()?;
        let to = self.to(frame, operands, 0)?;
        let condition: Condition = self.predicate(frame, operands.get(1))?;
        let members = if sync { Some(self.operand(frame, operands, 2, Type::U32)?) } else { None };
        let reads = [Some(condition.id), members.map(|m| m.id)].into_iter().flatten().collect();
        let kind = InstructionKind::Vote(Vote { mode, result: to.place, condition, members: members.map(pair) });
        Ok(Decoded { kind, reads, writes: smallvec![to.id] })
    }

    fn gather(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        words.take(Modifier::Sync);
        let how = words.take_one(&[
            Modifier::Any,
            Modifier::All,
            Modifier::Add,
            Modifier::Min,
            Modifier::Max,
            Modifier::And,
            Modifier::Or,
            Modifier::Xor,
        ]);
        let ty = words.ty()?;
        let signed = ty == Type::S32;
        let function = match (opcode, how) {
            (Opcode::Match, Some(Modifier::Any)) => MemberResult::Same,
            (Opcode::Match, Some(Modifier::All)) => MemberResult::AllSame,
            (Opcode::Redux, Some(Modifier::Add)) => MemberResult::Sum,
            (Opcode::Redux, Some(Modifier::Min)) => MemberResult::Least { signed },
            (Opcode::Redux, Some(Modifier::Max)) => MemberResult::Most { signed },
            (Opcode::Redux, Some(Modifier::And)) => MemberResult::And,
            (Opcode::Redux, Some(Modifier::Or)) => MemberResult::Or,
            (Opcode::Redux, Some(Modifier::Xor)) => MemberResult::Xor,
            _ => return Err("it has no match mode".to_string()),
        };
        let [result, predicate] = self.destinations(frame, operands, "register")?;
        let value = self.operand(frame, operands, 1, ty)?;
        let members = self.operand(frame, operands, 2, Type::U32)?;
        let writes = [result, predicate].into_iter().flatten().map(|s| s.id).collect();
        let predicate = predicate.map(|p| p.predicate()).transpose()?;
        let kind = InstructionKind::Gather(Gather {
            function,
            result: result.map(|r| r.place),
            predicate,
            value: pair(value),
            members: pair(members),
        });
        Ok(Decoded { kind, reads: smallvec![value.id, members.id], writes })
    }
}

fn pair(source: OperandLocation) -> (RegisterPlace, StateId) {
    (source.place, source.id)
}
