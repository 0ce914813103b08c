//! Text to a [`Module`], as NVRTC, nvcc, clang and this project write it: PTX 5.0 to 8.8 with 64-bit addresses.
//!
//! Every instruction is checked against the table, for the text's own `.target` and `.version`. All mistakes are
//! reported at once, each with its line and column. No text makes the parser panic or run on.
//!
//! What is not kept of a text: blank lines and indentation, comments inside a statement, the order of modifiers where
//! it is not the form's, how a number was written (but hexadecimal integers stay so), and constant expressions, which
//! are worked out.
//!
//! The instructions of [inline PTX](super::inline) are read here too, with names in braces for operands.

mod body;
mod call;
mod cursor;
mod declaration;
mod error;
mod expression;
mod inline;
mod instruction;
mod lex;
mod module;
mod operand;
mod scope;

pub use error::{Error, Errors, Mistake};
pub(super) use inline::inline;

use super::ast::{Function, Module, Symbol};
use super::print::Names;
use super::words::Version;
use crate::target::Target;
use cursor::{Cursor, Failed};
use lex::Token;
use scope::Scope;
use std::collections::{HashMap, HashSet};

/// The module that `text` is.
pub fn parse(text: &str) -> Result<Module, Errors> {
    let mut parser = Parser::new(text)?;
    parser.module();
    let Parser { cursor, module, .. } = parser;
    cursor.finish(module)
}

/// A text being read, and what has been read of it.
struct Parser<'a> {
    cursor: Cursor<'a>,
    module: Module,
    /// Names at module scope.
    globals: HashMap<&'a str, Symbol>,
    /// The function whose body is being read.
    function: usize,
    /// Its names.
    scope: Scope<'a>,
    /// Names that were found to have no meaning: told once.
    unknown: HashSet<&'a str>,
    /// Whether `{a}` stands for an operand, as in inline PTX.
    placeholders: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, Errors> {
        Ok(Parser {
            cursor: Cursor::new(text)?,
            // What a text without a header would be told of most is not what is wrong with it.
            module: Module::new(*module::VERSIONS.end(), Target::SM_61.into()),
            globals: HashMap::new(),
            function: 0,
            scope: Scope::default(),
            unknown: HashSet::new(),
            placeholders: false,
        })
    }

    fn function(&mut self) -> &mut Function {
        &mut self.module.functions[self.function]
    }

    /// Notes what is wrong, in words.
    fn wrong(&mut self, at: Token, text: impl Into<String>) -> Failed {
        self.cursor.fail(at, Mistake::Wrong(text.into()))
    }

    /// Notes it if the module's version or target does not have something.
    fn since(&mut self, at: Token, what: &'static str, version: Version, target: u16) {
        if self.module.version < version || self.module.target.sm < target {
            self.cursor.fail(at, Mistake::Later { what, version, target });
        }
    }

    fn names(&self) -> Names<'_> {
        Names { module: &self.module, function: &self.module.functions[self.function] }
    }
}
