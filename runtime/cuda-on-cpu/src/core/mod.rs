//! The driver without its C interface: everything is checked here, in Rust's types.

pub mod assembly;
pub mod attribute;
pub mod context;
pub mod demangle;
pub mod driver;
pub mod engine;
pub mod error;
pub mod event;
pub mod findings;
pub mod graph;
pub mod handle;
pub mod image;
pub mod inject;
pub mod leaks;
pub mod library;
pub mod link;
pub mod log;
pub mod memory;
pub mod module;
pub mod occupancy;
pub mod origin;
pub mod settings;
pub mod stream;
pub mod texture;
pub mod user_object;
pub mod work;
