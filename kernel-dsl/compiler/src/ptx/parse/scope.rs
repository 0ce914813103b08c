//! The scopes of names in a function.

use crate::ptx::ast::{Label, RegisterId, Symbol};
use crate::ptx::parse::lex::Token;
use std::collections::HashMap;

/// The largest nesting depth of blocks.
pub(super) const MAX_DEPTH: usize = 128;

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Name {
    Register(RegisterId),
    /// A vector of this number of registers. Each element has its own declaration, and these
    /// declarations are consecutive.
    Vector(RegisterId, u32),
    Symbol(Symbol),
    Label(Label),
    BranchTargets(u32),
    CallTargets(u32),
}

impl Name {
    /// Returns the meaning of a register's or a vector's name.
    pub fn registers(first: RegisterId, elements: u32) -> Name {
        if elements == 1 { Name::Register(first) } else { Name::Vector(first, elements) }
    }
}

/// Numbered registers, or numbered vectors of registers.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    /// The declaration; of vectors, that of the first elements.
    pub declaration: u32,
    /// The number of registers or vectors.
    pub count: u32,
    /// The number of elements of a vector; 1 for a register.
    pub elements: u32,
}

/// The names of one block.
#[derive(Default)]
struct BlockNames<'a> {
    names: HashMap<&'a str, Name>,
    /// The numbered registers, by prefix.
    numbered: HashMap<&'a str, Numbered>,
    /// The labels that branches in the block use and that are not placed in it yet.
    awaited: HashMap<&'a str, (Label, Token)>,
}

/// The names of a function.
#[derive(Default)]
pub(super) struct FunctionNames<'a> {
    /// The open blocks, from the function's own block inwards.
    blocks: Vec<BlockNames<'a>>,
    /// The resolution of each label: itself, or the label of an outer block.
    same: Vec<u32>,
}

impl<'a> FunctionNames<'a> {
    /// Opens a block. Returns false if the nesting is too deep.
    pub fn open(&mut self) -> bool {
        self.blocks.push(BlockNames::default());
        self.blocks.len() <= MAX_DEPTH
    }

    /// Closes a block. The unplaced labels move to the enclosing block; those of the outermost
    /// block are returned.
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

    /// Returns the number of open blocks.
    pub fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the meaning of `name`, except for labels.
    pub fn find(&self, name: &str) -> Option<Name> {
        self.blocks.iter().rev().find_map(|block| block.find(name)).filter(|n| !matches!(n, Name::Label(_)))
    }

    /// Declares `name` in the innermost block. Returns false if the block already declares it.
    pub fn declare(&mut self, name: &'a str, meaning: Name) -> bool {
        let Some(block) = self.blocks.last_mut() else { return false };
        let free = block.find(name).is_none() && !block.awaited.contains_key(name);
        if free {
            block.names.insert(name, meaning);
        }
        free
    }

    /// Declares `prefix0`, `prefix1`, … in the innermost block. Returns false if the block already
    /// declares the prefix.
    pub fn declare_numbered(&mut self, prefix: &'a str, numbered: Numbered) -> bool {
        let Some(block) = self.blocks.last_mut() else { return false };
        block.numbered.insert(prefix, numbered).is_none()
    }

    /// Returns the label that a branch names. A new label gets the next number.
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

    /// Places a label; `None` if the block already has one with this name. A new label gets the
    /// next number.
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

    /// Returns the final resolution of each label.
    pub fn resolutions(mut self) -> Vec<u32> {
        for i in 0..self.same.len() {
            // The label of a block can resolve to that of the enclosing block, and so on.
            let mut last = i as u32;
            while self.same[last as usize] != last {
                last = self.same[last as usize];
            }
            self.same[i] = last;
        }
        self.same
    }
}

impl BlockNames<'_> {
    fn find(&self, name: &str) -> Option<Name> {
        if let Some(meaning) = self.names.get(name) {
            return Some(*meaning);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A prefix can end in a digit. A number has at most ten digits.
        (name.len() - digits.min(10)..name.len()).find_map(|split| {
            let (prefix, number) = name.split_at(split);
            let Numbered { declaration, count, elements } = *self.numbered.get(prefix)?;
            let number: u32 =
                number.parse().ok().filter(|n: &u32| *n < count && n.to_string().len() == number.len())?;
            Some(Name::registers(RegisterId { declaration, number }, elements))
        })
    }
}
