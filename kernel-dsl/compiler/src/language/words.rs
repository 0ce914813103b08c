//! All built-in names as one list, for the documentation and for tests that compare with it.

use super::{ARRAY_METHODS, FUNCTIONS, METHODS, OPTION_METHODS, RESULT_METHODS, Receiver, SHARED_CONSTRUCTORS};

/// A built-in name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BuiltinName {
    /// A function of the prelude, by its path, such as `block::sum`.
    Function(&'static str),
    /// A constructor of `Shared`.
    Constructor(&'static str),
    /// A method, and the kind of its receiver: `Float`, `Integer`, `View`, ….
    #[allow(missing_docs)]
    Method { on: &'static str, name: &'static str },
}

/// Returns all built-in names, in the order of the tables.
pub fn words() -> Vec<BuiltinName> {
    let method = |on: &'static str| move |name: &&'static str| BuiltinName::Method { on, name };
    let functions = FUNCTIONS.iter().map(|f| BuiltinName::Function(f.path));
    let constructors = SHARED_CONSTRUCTORS.iter().map(|c| BuiltinName::Constructor(c.name));
    let methods = METHODS.iter().map(|m| BuiltinName::Method { on: receiver(m.on), name: m.name });
    let arrays = ARRAY_METHODS.iter().map(method("Array"));
    let options = OPTION_METHODS.iter().map(method("Option"));
    let results = RESULT_METHODS.iter().map(method("Result"));
    functions.chain(constructors).chain(methods).chain(arrays).chain(options).chain(results).collect()
}

fn receiver(on: Receiver) -> &'static str {
    match on {
        Receiver::Float => "Float",
        Receiver::Half => "Half",
        Receiver::Integer | Receiver::Signed | Receiver::Unsigned => "Integer",
        Receiver::Slice => "Slice",
        Receiver::View
        | Receiver::View1
        | Receiver::View2
        | Receiver::ViewDeep
        | Receiver::Contiguous
        | Receiver::Strided2 => "View",
        Receiver::Shared | Receiver::SharedDeep => "Shared",
        Receiver::Memory | Receiver::Writable | Receiver::Atomic | Receiver::Global | Receiver::GlobalMut => "Memory",
        Receiver::Pending => "Pending",
        Receiver::Group => "Group",
    }
}
