//! Functions of graphs, a file for each subject.

mod array;
mod capture;
mod dependency;
mod executable;
mod lifetime;
mod node;
mod operation;
mod parameters;
mod user_object;

use std::ffi::c_void;

/// The names of the functions, by file.
pub(super) const NAMES: [&[&str]; 7] = [
    capture::NAMES,
    lifetime::NAMES,
    node::NAMES,
    parameters::NAMES,
    dependency::NAMES,
    executable::NAMES,
    user_object::NAMES,
];

/// Returns the function of that name.
pub(super) fn find(name: &str) -> Option<*mut c_void> {
    let files = [
        capture::find,
        lifetime::find,
        node::find,
        parameters::find,
        dependency::find,
        executable::find,
        user_object::find,
    ];
    files.iter().find_map(|find| find(name))
}
