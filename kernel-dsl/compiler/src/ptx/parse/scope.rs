//! What the names of a function stand for, block by block.

use crate::ptx::ast::{Label, Register, Symbol};
use crate::ptx::parse::lex::Token;
use std::collections::HashMap;

/// Blocks inside one another at most.
pub(super) const DEPTH: usize = 128;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Name {
    Register(Register),
    Symbol(Symbol),
    Label(Label),
    BranchTargets(u32),
    CallTargets(u32),
}

/// The names of one block.
#[derive(Default)]
struct Block<'a> {
    names: HashMap<&'a str, Name>,
    /// Of registers that are declared by number: the declaration, and how many there are.
    numbered: HashMap<&'a str, (u32, u32)>,
    /// Labels that branches here name, and that are not placed here as yet.
    awaited: HashMap<&'a str, (Label, Token)>,
}

/// The names of a function.
#[derive(Default)]
pub(super) struct Scope<'a> {
    /// From the function's own block inwards.
    blocks: Vec<Block<'a>>,
    /// The label that each label is: itself, or the one of an outer block that it was found to be.
    same: Vec<u32>,
}

impl<'a> Scope<'a> {
    /// Begins a block; whether that is not too deep.
    pub fn open(&mut self) -> bool {
        self.blocks.push(Block::default());
        self.blocks.len() <= DEPTH
    }

    /// Ends a block. Labels that it awaits are awaited by the one around it; those of the outermost are returned.
    pub fn close(&mut self) -> Vec<(&'a str, Token)> {
        let Some(inner) = self.blocks.pop() else { return Vec::new() };
        let Some(outer) = self.blocks.last_mut() else {
            return inner.awaited.into_iter().map(|(name, (_, at))| (name, at)).collect();
        };
        for (name, (label, at)) in inner.awaited {
            let placed = match outer.names.get(name) {
                Some(Name::Label(placed)) => Some(*placed),
                _ => outer.awaited.get(name).map(|(l, _)| *l),
            };
            match placed {
                Some(l) => self.same[label.0 as usize] = l.0,
                None => _ = outer.awaited.insert(name, (label, at)),
            }
        }
        Vec::new()
    }

    /// Blocks that are open.
    pub fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// What `name` stands for, labels apart.
    pub fn find(&self, name: &str) -> Option<Name> {
        self.blocks.iter().rev().find_map(|block| block.find(name)).filter(|n| !matches!(n, Name::Label(_)))
    }

    /// Gives `name` a meaning in the innermost block; whether it had none.
    pub fn declare(&mut self, name: &'a str, meaning: Name) -> bool {
        let Some(block) = self.blocks.last_mut() else { return false };
        let free = block.find(name).is_none() && !block.awaited.contains_key(name);
        if free {
            block.names.insert(name, meaning);
        }
        free
    }

    /// Gives `prefix0`, `prefix1`, … meanings in the innermost block; whether the prefix had none.
    pub fn declare_numbered(&mut self, prefix: &'a str, declaration: u32, count: u32) -> bool {
        let Some(block) = self.blocks.last_mut() else { return false };
        block.numbered.insert(prefix, (declaration, count)).is_none()
    }

    /// The label that a branch names. A label that was not known has the number of those before it.
    pub fn label(&mut self, name: &'a str, at: Token) -> Option<Label> {
        let fresh = Label(self.same.len() as u32);
        let block = self.blocks.last_mut()?;
        match block.names.get(name) {
            Some(Name::Label(l)) => return Some(*l),
            Some(_) => return None,
            None => {}
        }
        let (label, _) = *block.awaited.entry(name).or_insert((fresh, at));
        if label == fresh {
            self.same.push(label.0);
        }
        Some(label)
    }

    /// Places a label; `None` if the block has the name already. One that was not known has the number of those before
    /// it.
    pub fn place(&mut self, name: &'a str) -> Option<Label> {
        let fresh = Label(self.same.len() as u32);
        let block = self.blocks.last_mut()?;
        if block.find(name).is_some() {
            return None;
        }
        let label = block.awaited.remove(name).map_or(fresh, |(l, _)| l);
        block.names.insert(name, Name::Label(label));
        if label == fresh {
            self.same.push(label.0);
        }
        Some(label)
    }

    /// The label that each label is in the end.
    pub fn same(mut self) -> Vec<u32> {
        for i in 0..self.same.len() {
            // A block's label can be found to be the outer block's, that one the next outer one's, and so on.
            let mut last = i as u32;
            while self.same[last as usize] != last {
                last = self.same[last as usize];
            }
            self.same[i] = last;
        }
        self.same
    }
}

impl Block<'_> {
    fn find(&self, name: &str) -> Option<Name> {
        if let Some(meaning) = self.names.get(name) {
            return Some(*meaning);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A prefix can end in a digit itself. No number has more than ten.
        (name.len() - digits.min(10)..name.len()).find_map(|split| {
            let (prefix, number) = name.split_at(split);
            let (declaration, count) = *self.numbered.get(prefix)?;
            let number: u32 =
                number.parse().ok().filter(|n: &u32| *n < count && n.to_string().len() == number.len())?;
            Some(Name::Register(Register { declaration, number }))
        })
    }
}
