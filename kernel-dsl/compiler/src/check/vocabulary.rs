//! What the language itself names, as data: for documentation, and for tests that see to it that nothing is left out.

use super::prelude::{FUNCTIONS, METHODS, On, SHARED};
use super::{array, option};

/// A word of the language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// A function of the prelude, by its path: `block::sum`.
    Function(&'static str),
    /// A constructor of `Shared`.
    Constructor(&'static str),
    /// A method, and what has it: `Float`, `Integer`, `View`, ….
    #[allow(missing_docs)]
    Method { on: &'static str, name: &'static str },
}

/// All words, in the order of the checker's tables.
pub fn words() -> Vec<Word> {
    let method = |on: &'static str| move |name: &&'static str| Word::Method { on, name };
    let functions = FUNCTIONS.iter().map(|f| Word::Function(f.path));
    let constructors = SHARED.iter().map(|c| Word::Constructor(c.name));
    let methods = METHODS.iter().map(|m| Word::Method { on: receiver(m.on), name: m.name });
    let arrays = array::METHODS.iter().map(method("Array"));
    let options = option::METHODS.iter().map(method("Option"));
    functions.chain(constructors).chain(methods).chain(arrays).chain(options).collect()
}

fn receiver(on: On) -> &'static str {
    match on {
        On::Float => "Float",
        On::Half => "Half",
        On::Integer | On::Signed | On::Unsigned => "Integer",
        On::Slice => "Slice",
        On::View | On::View1 | On::View2 | On::ViewDeep | On::Contiguous | On::Strided2 => "View",
        On::Shared | On::SharedDeep => "Shared",
        On::Memory | On::Writable | On::Atomic | On::Global | On::GlobalMut => "Memory",
        On::Pending => "Pending",
        On::Group => "Group",
    }
}
